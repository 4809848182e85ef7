//===- StrategyTrials.cpp - Strategies compiled and simulated on all cores ===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/StrategyTrials.h"

#include "compiler/planner/Planner.h"
#include "simulator/Simulation.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Threading.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

using namespace mlir;
using namespace dtc;

/// No more threads than this, with the one that asks: each has its copies of the model.
static constexpr size_t kMostThreads = 8;
/// How long a search waits for another thread before it asks whether it goes on.
static constexpr std::chrono::milliseconds kBetweenQuestions{100};

StrategyTrials::StrategyTrials(ModuleOp model, StringRef name, const PlannerOptions &options)
    : model(model), name(name), options(options), slowest(std::numeric_limits<double>::max()) {}

StrategyTrials::~StrategyTrials() {
  {
    std::unique_lock lock(mutex);
    isEnding = true;
    wanted.clear();
  }
  changed.notify_all();
  threads.clear();
}

StrategyTrial StrategyTrials::run(ModuleOp ofThread, const ParallelStrategy &strategy) {
  StrategyTrial trial;
  // An error of a strategy takes it out of the search.
  ScopedDiagnosticHandler quiet(ofThread.getContext(), [](Diagnostic &) { return success(); });
  auto search = std::make_unique<CandidateSearch>(ofThread, name, options.cluster);
  search->slowest = slowest;
  search->slowestNow = &slowest;
  search->isEnding = &isEnding;
  search->provesPlan = false;
  search->verifies = false;
  std::optional<Candidate> candidate = search->run(optionsOf(strategy, options));
  trial.boundSeconds = search->boundSeconds;
  if (!candidate) {
    if (!search->leastSeconds && !search->failure.empty())
      trial.failure = firstErrorOf(search->failure);
    else if (!search->leastSeconds && search->closest)
      trial.closestBytes = search->closest->peak();
    return trial;
  }
  trial.simulation = std::exchange(candidate->simulation, {});
  if (!trial.simulation) {
    auto failed = simulateOnCluster(candidate->plan, *options.cluster);
    trial.failure = failed.error().message;
    return trial;
  }
  trial.simulation->step = {}; // tables need no timeline
  trial.candidate = std::move(candidate);
  if (ofThread == model) {
    trial.search = std::move(search);
  } else {
    trial.candidate->module = nullptr;
    trial.candidate->diagnostics.clear(); // these are of the thread's context
  }
  return trial;
}

void StrategyTrials::runUnlocked(std::unique_lock<std::mutex> &lock, ModuleOp ofThread,
                                 const ParallelStrategy &strategy) {
  trials.try_emplace(strategy);
  lock.unlock();
  StrategyTrial trial = run(ofThread, strategy);
  lock.lock();
  trials[strategy] = std::move(trial);
  changed.notify_all();
}

std::optional<ParallelStrategy> StrategyTrials::nextWanted() {
  while (!wanted.empty()) {
    ParallelStrategy next = std::move(wanted.front());
    wanted.pop_front();
    if (!trials.contains(next))
      return next;
  }
  return std::nullopt;
}

void StrategyTrials::work() {
  MLIRContext context(model.getContext()->getDialectRegistry(), MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> copy =
      parseSourceString<ModuleOp>(bytes, ParserConfig(&context, /*verifyAfterParse=*/false));
  if (!copy)
    return;
  std::unique_lock lock(mutex);
  while (!isEnding) {
    if (std::optional<ParallelStrategy> next = nextWanted())
      runUnlocked(lock, *copy, *next);
    else
      changed.wait(lock);
  }
}

void StrategyTrials::startThreads(size_t count) {
  if (threads.size() >= count)
    return;
  if (bytes.empty()) {
    llvm::raw_string_ostream stream(bytes);
    if (failed(writeBytecodeToFile(model, stream)))
      return;
  }
  while (threads.size() < count)
    threads.emplace_back([this] { work(); });
}

StrategyTrial StrategyTrials::take(const ParallelStrategy &strategy,
                                   ArrayRef<ParallelStrategy> next, double slowestUseful,
                                   llvm::function_ref<bool()> goesOn) {
  slowest = std::min(slowestUseful, std::numeric_limits<double>::max());
  std::unique_lock lock(mutex);
  wanted.assign(next.begin(), next.end());
  const size_t all = options.threads > 0
                         ? options.threads
                         : size_t(llvm::hardware_concurrency().compute_thread_count());
  startThreads(std::min({next.size(), kMostThreads - 1, all - 1}));
  changed.notify_all();
  if (!trials.contains(strategy))
    runUnlocked(lock, model, strategy);
  // Where another thread has it, this one does something else meanwhile.
  std::optional<StrategyTrial> &trial = trials[strategy];
  while (!trial) {
    if (std::optional<ParallelStrategy> other = nextWanted())
      runUnlocked(lock, model, *other);
    else
      changed.wait_for(lock, kBetweenQuestions);
    lock.unlock();
    bool ends = !goesOn();
    lock.lock();
    if (ends)
      return {};
  }
  return std::move(*trial);
}

MaybeError StrategyTrials::complete(StrategyTrial &trial) const {
  if (trial.search) {
    if (succeeded(verify(*trial.candidate->module)))
      return std::nullopt;
    return Error{"its program is not valid, which is an error of dtc"};
  }
  trial.search = std::make_unique<CandidateSearch>(model, name, options.cluster);
  plan::Plan plan = std::move(trial.candidate->plan);
  trial.candidate = trial.search->withModule(std::move(*trial.candidate));
  if (!trial.candidate)
    return Error{"it does not compile a second time"};
  trial.candidate->plan = std::move(plan);
  return std::nullopt;
}
