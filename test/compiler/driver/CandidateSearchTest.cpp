//===- CandidateSearchTest.cpp - Tests of the search for a candidate ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/compiler/driver/SearchedPlans.h"

#include "compiler/driver/CandidateSearch.h"
#include "compiler/driver/KnownTrials.h"
#include "compiler/export/ExportPlan.h"
#include "compiler/passes/Passes.h"
#include "plan/PlanReader.h"
#include "plan/PlanSummary.h"
#include "support/Format.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLExtras.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <limits>
#include <memory>
#include <set>

namespace candidateSearchTest {

using namespace dtc;
using namespace dtc::test;

namespace {

/// The memory and the time of one device of a plan.
struct DeviceCost {
  int64_t arena = 0;
  double flops = 0;
  double seconds = 0; ///< of all tasks, by estimate
};

/// Bounds on what is kept, one for all devices, from nothing to everything: the costs of each
/// program. The local view is made once.
class Sweep {
public:
  Sweep(const SearchedModel &model, CompileOptions options);
  void run(int steps);

  std::vector<std::vector<DeviceCost>> costs; ///< by bound, then program

private:
  std::vector<DeviceCost> lower(llvm::ArrayRef<int64_t> keepBytes);

  Compiler compiler;
  CompileOptions options;
  mlir::OwningOpRef<mlir::ModuleOp> front;
};

} // namespace

static std::vector<DeviceCost> costsOf(const plan::Plan &plan) {
  PlanSummary summary = summarizePlan(plan);
  std::vector<DeviceCost> costs;
  for (const plan::Program &program : plan.programs()) {
    costs.push_back({int64_t(program.arena_bytes()), 0, 0});
    for (const plan::ScheduleEntry &entry : program.schedule())
      costs.back().seconds += program.tasks(int(entry.task())).seconds();
  }
  for (const TaskSummary &task : summary.tasks)
    costs[task.program].flops += task.flops * double(task.runs);
  return costs;
}

Sweep::Sweep(const SearchedModel &model, CompileOptions given) : options(std::move(given)) {
  options.recompute = Recompute::Auto;
  front = model.load(compiler);
  mlir::PassManager manager(&compiler.context());
  buildPartitioning(manager, options);
  if (failed(declareMesh(*front, options)) || failed(manager.run(*front)))
    ADD_FAILURE() << compiler.diagnostics();
}

std::vector<DeviceCost> Sweep::lower(llvm::ArrayRef<int64_t> keepBytes) {
  mlir::OwningOpRef<mlir::ModuleOp> module = front->clone();
  mlir::PassManager manager(&compiler.context());
  buildLowering(manager, options, keepBytes);
  manager.addPass(createPlanMemoryPass());
  plan::Plan plan;
  if (succeeded(manager.run(*module)) && succeeded(exportPlan(*module, "test", plan)))
    return costsOf(plan);
  ADD_FAILURE() << compiler.diagnostics();
  return {};
}

void Sweep::run(int steps) {
  // More than everything: the saved bytes are a part of the arena, with views some of them twice.
  std::vector<DeviceCost> all = lower({});
  int64_t most = 0;
  for (const DeviceCost &device : all)
    most = std::max(most, 2 * device.arena);
  auto isAll = [&] {
    return llvm::equal(costs.back(), all, [](const DeviceCost &a, const DeviceCost &b) {
      return a.arena == b.arena && a.flops == b.flops;
    });
  };
  for (int step = 0; step < steps && (costs.empty() || !isAll()); ++step)
    costs.push_back(lower({int64_t(double(most) * step / steps)}));
  costs.push_back(all);
}

//===----------------------------------------------------------------------===//
// --recompute auto
//===----------------------------------------------------------------------===//

namespace {
struct SweepCase {
  SearchedModel model;
  const char *strategy;
  bool roofline = false; ///< bytes count as well as floating point operations
  int firstLimit = 0;    ///< the first of the limits at which a plan is demanded
};

void PrintTo(const SweepCase &each, std::ostream *os) {
  *os << each.model.name << " " << each.strategy << (each.roofline ? " roofline" : "");
}

class RecomputeAuto : public testing::TestWithParam<SweepCase> {};
} // namespace

// At each limit the plan fits, and each device computes hardly longer than with the best bound on
// what is kept that a fine sweep found; a higher limit never needs more recomputation.
TEST_P(RecomputeAuto, UsesTheMemoryThatThereIs) {
  constexpr int kLimits = 7, kBounds = 160;
  constexpr double kTolerance = 0.03;
  CompileOptions options = searchedStrategy(GetParam().strategy);
  if (!GetParam().roofline) {
    // So slow that nothing else takes time.
    options.deviceFlops = 1e6;
    options.deviceBandwidth = 1e15;
  }
  Sweep sweep(GetParam().model, options);
  sweep.run(kBounds);
  ASSERT_GT(sweep.costs.size(), 20u);
  size_t devices = sweep.costs.front().size();
  int64_t none = 0, least = 0;
  for (size_t device = 0; device < devices; ++device) {
    int64_t leastOfDevice = sweep.costs.front()[device].arena;
    for (const std::vector<DeviceCost> &bound : sweep.costs)
      leastOfDevice = std::min(leastOfDevice, bound[device].arena);
    least = std::max(least, leastOfDevice);
    none = std::max(none, sweep.costs.back()[device].arena);
  }
  ASSERT_LT(least, none);
  options.recompute = Recompute::Auto;
  double lastSeconds = 0;
  for (int i = GetParam().firstLimit; i < kLimits; ++i) {
    options.memoryLimit = least + (none - least) * (i + 1) / kLimits;
    SCOPED_TRACE("limit " + std::to_string(options.memoryLimit));
    std::string diagnostics;
    auto plan = compileModel(GetParam().model, options, &diagnostics);
    if (!plan) {
      ADD_FAILURE() << diagnostics;
      continue;
    }
    EXPECT_LE(arenaOf(*plan), options.memoryLimit);
    std::vector<DeviceCost> costs = costsOf(*plan);
    ASSERT_EQ(costs.size(), devices);
    double seconds = 0;
    for (size_t device = 0; device < devices; ++device) {
      auto best = std::numeric_limits<double>::infinity();
      for (const std::vector<DeviceCost> &bound : sweep.costs)
        if (bound[device].arena <= options.memoryLimit)
          best = std::min(best, bound[device].seconds);
      EXPECT_LE(costs[device].seconds, best * (1 + kTolerance)) << "device " << device;
      seconds += costs[device].seconds;
    }
    if (lastSeconds > 0)
      EXPECT_LE(seconds, lastSeconds * 1.01) << "more memory, more to compute";
    lastSeconds = seconds;
  }
}

static std::string sweepName(const testing::TestParamInfo<SweepCase> &info) {
  std::string name = info.param.model.name;
  for (char c : std::string("_") + info.param.strategy)
    if (c != '=')
      name += isalnum(c) ? c : '_';
  return name + (info.param.roofline ? "_roofline" : "");
}

INSTANTIATE_TEST_SUITE_P(
    Strategies, RecomputeAuto,
    testing::Values(SweepCase{kGpt2, ""}, SweepCase{kGpt2, "", true}, SweepCase{kLlama, ""},
                    // One layer for each device: its recomputation is what makes the peak.
                    SweepCase{kGpt2, "pp=2 m=4"}, SweepCase{kGpt2, "pp=2 m=4", true},
                    SweepCase{kLlama, "pp=2 m=4"}, SweepCase{kDeepLlama, "dp=2"},
                    SweepCase{kDeepLlama, "m=4"}, SweepCase{kDeepLlama, "pp=2 m=4"},
                    // Near the least that it can take, one bound of many fits, and is not found.
                    SweepCase{kDeepLlama, "pp=2 m=4 schedule=zb-h1", false, 1},
                    SweepCase{kDeepLlama, "pp=4 m=4"}, SweepCase{kDeepLlama, "pp=4 m=4", true},
                    SweepCase{kDeepLlama, "dp=2 m=2 zero=3"},
                    // Three matrices more or less are 6% of all.
                    SweepCase{chain(512, {8, 64, 8, 64, 8, 64, 8}), ""},
                    SweepCase{chain(512, {32, 48, 64, 80, 64, 48, 32, 16}, true), ""}),
    sweepName);

// Auto fits every limit that selective or full fits.
TEST(RecomputeAutoLimits, MeetsWhatOtherModesMeet) {
  for (const char *strategy : {"", "pp=2", "pp=2 m=4", "dp=2 m=2 zero=3"})
    for (Recompute mode : {Recompute::Selective, Recompute::Full}) {
      SCOPED_TRACE(std::string(strategy) + " " + wordOf(mode));
      CompileOptions options = searchedStrategy(strategy);
      options.recompute = mode;
      auto fixed = compileModel(kGpt2, options);
      ASSERT_TRUE(fixed);
      options.recompute = Recompute::Auto;
      options.memoryLimit = arenaOf(*fixed);
      auto plan = compileModel(kGpt2, options);
      ASSERT_TRUE(plan);
      EXPECT_LE(arenaOf(*plan), options.memoryLimit);
    }
}

// With room for everything nothing is recomputed.
TEST(RecomputeAutoLimits, KeepsAllThatFits) {
  for (const char *strategy : {"", "pp=2 m=4 schedule=zb-v"}) {
    CompileOptions options = searchedStrategy(strategy);
    auto all = lowerModel(kLlama, options);
    ASSERT_TRUE(all);
    options.recompute = Recompute::Auto;
    options.memoryLimit = arenaOf(*all);
    auto plan = compileModel(kLlama, options);
    ASSERT_TRUE(plan);
    // Only a whole compilation has these.
    plan->clear_entry_points();
    plan->clear_model_flops();
    plan->clear_masked_flops();
    plan->clear_model_fingerprint();
    plan->clear_update_settings();
    EXPECT_EQ(serializePlan(*plan), serializePlan(*all));
  }
}

//===----------------------------------------------------------------------===//
// --schedule auto
//===----------------------------------------------------------------------===//

// The fastest by simulation of those that fit; a tight limit makes it another one.
TEST(ScheduleAuto, IsTheFastestThatFits) {
  struct Tried {
    std::string schedule;
    int64_t arena;
    double seconds;
  };
  for (const char *strategy : {"pp=2 m=4", "pp=3 m=6", "pp=2,dp=2 m=4 zero=1"}) {
    SCOPED_TRACE(strategy);
    CompileOptions options = searchedStrategy(strategy);
    std::vector<Tried> all;
    for (const char *schedule : {"naive", "gpipe", "1f1b", "interleaved", "zb-h1", "zb-v"}) {
      options.schedule = schedule;
      auto plan = compileModel(kDeepLlama, options);
      ASSERT_TRUE(plan);
      all.push_back({schedule, arenaOf(*plan), secondsOf(*plan)});
    }
    options.schedule = "auto";
    std::set<std::string> winners;
    auto check = [&](int64_t limit) {
      double best = std::numeric_limits<double>::infinity();
      for (const Tried &each : all)
        if (limit == 0 || each.arena <= limit)
          best = std::min(best, each.seconds);
      options.memoryLimit = limit;
      std::string diagnostics;
      auto plan = compileModel(kDeepLlama, options, &diagnostics);
      ASSERT_TRUE(plan) << diagnostics;
      EXPECT_EQ(secondsOf(*plan), best) << diagnostics;
      auto found = llvm::find_if(all, [&](const Tried &each) {
        return each.arena == arenaOf(*plan) && each.seconds == secondsOf(*plan);
      });
      ASSERT_NE(found, all.end()) << diagnostics;
      EXPECT_TRUE(limit == 0 || found->arena <= limit);
      EXPECT_NE(diagnostics.find("the schedule is " + found->schedule + ": "), std::string::npos)
          << diagnostics;
      winners.insert(found->schedule);
    };
    check(0);
    for (const Tried &each : all)
      check(each.arena);
    EXPECT_GT(winners.size(), 1u) << "no limit makes a difference";
  }
}

TEST(CandidateSearch, HasTheSameBytesTwice) {
  for (const char *strategy :
       {"pp=2 m=4 schedule=auto", "dp=2 m=2 zero=3 recompute=auto limit=1300000",
        "pp=2 m=4 schedule=auto recompute=auto limit=1600000"}) {
    SCOPED_TRACE(strategy);
    auto first = compileModel(kDeepLlama, searchedStrategy(strategy));
    auto second = compileModel(kDeepLlama, searchedStrategy(strategy));
    ASSERT_TRUE(first && second);
    EXPECT_EQ(serializePlan(*first), serializePlan(*second));
  }
}

// A trial lowers the functions that no trial before it had.
TEST(KnownTrials, LeaveFunctionsThatAreNew) {
  auto parse = [compiler = std::make_shared<Compiler>()](const char *first, const char *second,
                                                         const char *sum) {
    auto module = compiler->parse(fmt::format(
        R"(func.func @a(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {{
    %s = dtc.sub {}, {} : tensor<4xf32>
    return %s : tensor<4xf32>
  }}
  func.func @b(%x: tensor<4xf32>) -> tensor<f32> {{
    %s = dtc.reduce {} %x dims [0] : (tensor<4xf32>) -> tensor<f32>
    return %s : tensor<f32>
  }})",
        first, second, sum));
    EXPECT_TRUE(module) << compiler->diagnostics();
    return module;
  };
  struct Trial {
    const char *first, *second, *sum;
    std::vector<int64_t> lowered, arenas;
  };
  const Trial trials[] = {{"%x", "%y", "sum", {10, 20}, {10, 20}},
                          {"%x", "%y", "max", {21}, {10, 21}},
                          {"%y", "%x", "sum", {11}, {11, 20}}, // the same ops of other values
                          {"%y", "%x", "max", {}, {11, 21}}};
  KnownTrials known;
  for (const Trial &trial : trials) {
    auto module = parse(trial.first, trial.second, trial.sum);
    ASSERT_TRUE(module);
    std::vector<std::optional<int64_t>> found = known.eraseKnown(*module);
    ASSERT_EQ(found.size(), 2u);
    auto left = module->getOps<mlir::func::FuncOp>();
    EXPECT_EQ(size_t(std::distance(left.begin(), left.end())), trial.lowered.size());
    EXPECT_EQ(known.complete(found, trial.lowered), trial.arenas);
  }
}

// A step that recomputes takes longer than one that does not. Where that is too long already, no
// candidate is looked for.
TEST(CandidateSearch, EndsWhereAStepIsTooSlow) {
  CompileOptions options = searchedStrategy("pp=2 m=4");
  auto all = lowerModel(kDeepLlama, options);
  ASSERT_TRUE(all);
  options.recompute = Recompute::Auto;
  options.memoryLimit = arenaOf(*all) - 1;
  Compiler compiler;
  mlir::OwningOpRef<mlir::ModuleOp> module = kDeepLlama.load(compiler);
  ASSERT_TRUE(module);
  for (double times : {0.5, 2.0}) {
    CandidateSearch search(*module, "model");
    search.slowest = times * secondsOf(*all);
    std::optional<Candidate> candidate = search.run(options);
    EXPECT_EQ(candidate.has_value(), times > 1);
    EXPECT_EQ(search.leastSeconds.has_value(), times < 1);
    if (search.leastSeconds)
      EXPECT_DOUBLE_EQ(*search.leastSeconds, secondsOf(*all));
    EXPECT_TRUE(search.failure.empty());
    // The first plan of a search that goes on does not fit.
    EXPECT_EQ(search.closest.has_value(), times > 1);
    ASSERT_TRUE(search.boundSeconds);
    EXPECT_DOUBLE_EQ(*search.boundSeconds, secondsOf(*all));
  }
  // The same holds where the limit falls while the search recomputes.
  for (double times : {0.5, 2.0}) {
    const std::atomic<double> slowestNow = times * secondsOf(*all);
    CandidateSearch search(*module, "model");
    search.slowest = std::numeric_limits<double>::max();
    search.slowestNow = &slowestNow;
    EXPECT_EQ(search.run(options).has_value(), times > 1);
    EXPECT_EQ(search.leastSeconds.has_value(), times < 1);
    ASSERT_TRUE(search.boundSeconds);
    EXPECT_DOUBLE_EQ(*search.boundSeconds, secondsOf(*all));
  }
  // A search that is to end makes no candidate.
  const std::atomic<bool> isEnding = true;
  CandidateSearch search(*module, "model");
  search.isEnding = &isEnding;
  EXPECT_FALSE(search.run(options));
  EXPECT_TRUE(search.failure.empty());
}

//===----------------------------------------------------------------------===//
// Where nothing fits
//===----------------------------------------------------------------------===//

/// The lines of a text that start with a prefix, without it.
static std::vector<std::string> linesAfter(const std::string &text, llvm::StringRef prefix) {
  std::vector<std::string> found;
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(text).split(lines, '\n');
  for (llvm::StringRef line : lines)
    if (line.consume_front(prefix))
      found.push_back(line.str());
  return found;
}

// The numbers of the message are those of the plan, and of the plan with the change.
TEST(MemoryLimit, SaysWhatIsTrue) {
  for (const char *strategy : {"", "dp=2", "dp=2 m=2", "pp=2 m=4", "dp=2 zero=2"})
    for (double share : {0.7, 0.05}) {
      SCOPED_TRACE(std::string(strategy) + ", limit " + std::to_string(share) + " of the need");
      CompileOptions options = searchedStrategy(strategy);
      auto plan = compileModel(kDeepLlama, options);
      ASSERT_TRUE(plan);
      options.memoryLimit = int64_t(share * double(arenaOf(*plan)));
      std::string text;
      ASSERT_FALSE(compileModel(kDeepLlama, options, &text));
      std::string needs = "the plan needs " + formatBytes(arenaOf(*plan)) + " on ";
      EXPECT_EQ(linesAfter(text, needs).size(), 1u) << text;
      EXPECT_NE(text.find("more than the limit of " + formatBytes(options.memoryLimit)),
                std::string::npos)
          << text;
      std::vector<std::string> changes = linesAfter(text, "fits: "),
                               others = linesAfter(text, "does not fit: ");
      EXPECT_EQ(linesAfter(text, "no single change of these is enough").size(), changes.empty())
          << text;
      size_t fitting = changes.size();
      changes.insert(changes.end(), others.begin(), others.end());
      EXPECT_FALSE(changes.empty()) << text;
      for (auto [index, change] : llvm::enumerate(changes)) {
        SCOPED_TRACE(change);
        auto [what, bytes] = llvm::StringRef(change).split(" needs ");
        CompileOptions changed = options;
        llvm::SmallVector<llvm::StringRef> words;
        what.split(words, ' ');
        for (size_t word = 0; word + 1 < words.size(); word += 2) {
          llvm::StringRef value = words[word + 1];
          if (words[word] == "--recompute")
            changed.recompute = *valueOf<Recompute>(value);
          else if (words[word] == "--zero")
            ASSERT_FALSE(value.getAsInteger(10, changed.zero));
          else if (words[word] == "--microbatches")
            ASSERT_FALSE(value.getAsInteger(10, changed.microbatches));
          else if (words[word] == "--offload")
            changed.offload = value.str();
        }
        if (what.consume_front("--mesh with pp=")) {
          llvm::erase_if(changed.mesh, [](auto &axis) { return axis.first == "pp"; });
          int64_t size = 0;
          ASSERT_FALSE(what.getAsInteger(10, size));
          changed.mesh.push_back({"pp", size});
        }
        bool fits = index < fitting;
        if (!fits && changed.recompute != Recompute::Auto)
          changed.memoryLimit = 0;
        std::string why;
        auto better = compileModel(kDeepLlama, changed, &why);
        if (better) {
          EXPECT_EQ(arenaOf(*better) <= options.memoryLimit, fits);
          EXPECT_EQ(bytes.str(), formatBytes(arenaOf(*better)));
        } else {
          // The search itself says what is the least.
          EXPECT_FALSE(fits) << why;
          EXPECT_NE(why.find("the plan needs " + bytes.str()), std::string::npos) << why;
        }
      }
    }
}

} // namespace candidateSearchTest
