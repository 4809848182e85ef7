//===- StartTraining.cpp - First part of a training run -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/TrainingRun.h"

#include "plan/PlanReader.h"
#include "plan/PlanTypes.h"
#include "runtime/checkpoint/RunIdentity.h"
#include "runtime/data/Sampling.h"
#include "runtime/train/OpenSession.h"
#include "runtime/train/OwnRows.h"
#include "support/AtomicFile.h"
#include "support/Format.h"
#include "support/OuterEntries.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

namespace dtc::runtime {

/// The default number of steps: none where the run only evaluates.
int64_t TrainingRun::defaultSteps() const {
  if (trains())
    return kDefaultTrainSteps;
  return options.dataPaths.empty() && !options.evalDataPaths.empty() ? 0 : 1;
}

/// The steps of the whole run that take as many samples as --epochs passes over the data have, or
/// the least number above. Those that a run goes on after may have had another batch.
int64_t TrainingRun::stepsOfEpochs() const {
  double wanted = std::ceil(*options.epochs * static_cast<double>(data->samplesPerEpoch()));
  int64_t seen = begin.nextBatch * data->batchSize();
  int64_t left = std::max<int64_t>(static_cast<int64_t>(wanted) - seen, 0);
  int64_t ofStep = std::max<int64_t>(options.batches * data->batchSize(), 1);
  return begin.step + (left + ofStep - 1) / ofStep;
}

/// Finds where the run begins, and how many steps it has.
MaybeError TrainingRun::openCheckpoints() {
  steps = options.steps.value_or(defaultSteps());
  auto opened = CheckpointedRun::open(
      *plan, options, options.epochs || options.rounds ? std::nullopt : std::optional(steps),
      [this](const std::string &text) { note(text); });
  if (!opened)
    return opened.error();
  checkpoints = std::move(*opened);
  if (checkpoints)
    begin = checkpoints->begin();
  result.stepsDone = begin.step;
  return std::nullopt;
}

MaybeError TrainingRun::openData() {
  if (MaybeError error = checkClients())
    return error;
  std::vector<DataInput> inputs = dataInputsOf(*plan);
  if (inputs.empty()) {
    if (options.epochs)
      return Error{"--epochs: the plan has no data inputs to pass over; give --steps"};
    unitsPerStep = 1;
    if (!options.dataPaths.empty())
      note("the plan has no data inputs; --data is not used");
    return std::nullopt;
  }
  // Without data, existing weights may only be exported or evaluated.
  const bool hasData = !options.dataPaths.empty() || !options.clientsPath.empty();
  if (!hasData && !options.epochs && !options.rounds && begin.step >= steps)
    return std::nullopt;
  if (!hasData) {
    std::vector<std::string> names;
    for (const DataInput &input : inputs)
      names.push_back(fmt::format("{} ({})", input.name, input.type.str()));
    return Error{
        fmt::format("the plan needs data for {}; give a file with --data", fmt::join(names, ", "))};
  }
  Expected<std::unique_ptr<DataSource>> source = openSource(inputs);
  if (!source)
    return source.error();
  data = std::move(*source);
  if (MaybeError error = checkSameData())
    return error;
  if (MaybeError error = noteFrom(*data, ""))
    return error;
  if (options.epochs)
    steps = stepsOfEpochs();
  if (clientsData && options.rounds)
    steps = *options.rounds * outerEvery;
  for (const DataInput &input : inputs)
    if (input.name == "tokens" && input.type.rank() == 2) {
      unit = "tokens";
      unitsPerStep = input.type.numElements() * options.batches;
      return std::nullopt;
    }
  unit = "samples";
  unitsPerStep =
      options.batches * (inputs.front().type.rank() > 0 ? inputs.front().type.shape[0] : 1);
  return std::nullopt;
}

/// Prints the notes of the data set. `flag` goes before each.
MaybeError TrainingRun::noteFrom(const DataSource &source, const char *flag) const {
  Expected<std::vector<std::string>> texts = source.notes();
  if (!texts)
    return texts.error();
  for (const std::string &text : *texts)
    note(flag + text);
  return std::nullopt;
}

/// Each process reads the data itself.
MaybeError TrainingRun::checkSameData() const {
  if (!options.processes.areSeveral())
    return std::nullopt;
  Expected<std::string> fingerprint = data->fingerprint();
  Expected<std::string> others =
      options.processes.differing(fingerprint ? *fingerprint : fingerprint.error().message);
  if (!others)
    return others.error();
  if (others->empty())
    return std::nullopt;
  return Error{fmt::format("{}: {} found other data than process 0 at {}; give all the same files",
                           dataFlag(), *others, describeData())};
}

MaybeError TrainingRun::checkOptions() {
  Expected<LearningRateSchedule> rates = learningRateSchedule(options, steps);
  if (!rates)
    return rates.error();
  schedule = *rates;
  auto scaling = lossScaling(options, findState(*plan, plan::State::LOSS_SCALE) != nullptr);
  if (!scaling)
    return scaling.error();
  lossScale = *scaling;
  Expected<std::unique_ptr<Evaluation>> opened = Evaluation::open(*session, options, steps);
  if (!opened)
    return opened.error();
  evaluation = std::move(*opened);
  if (std::string left = evaluation ? evaluation->describeLeftOut() : ""; !left.empty())
    note(fmt::format("{}: {}", options.evalDataFlag, left));
  return evaluation
             ? noteFrom(evaluation->getData(), fmt::format("{}: ", options.evalDataFlag).c_str())
             : std::nullopt;
}

MaybeError TrainingRun::prepare(std::shared_ptr<const Backend> backend) {
  Expected<std::shared_ptr<const plan::Plan>> read = readPlan(options.planPath);
  if (!read)
    return read.error();
  plan = std::move(*read);
  if (generates(*plan))
    return Error{
        fmt::format("{}: the plan generates tokens; run it with dtc-run generate and a --prompt",
                    options.planPath)};
  if (MaybeError error = openCheckpoints())
    return error;
  if (MaybeError error = openData())
    return error;
  auto sinks =
      openMetricsSinks(options, plan->model(), [this](const std::string &text) { note(text); });
  if (!sinks)
    return sinks.error();
  metricsSinks = std::move(*sinks);
  if (!options.tracePath.empty())
    if (MaybeError error = checkWritable(options.tracePath))
      return error;

  Expected<std::unique_ptr<Session>> created =
      openSession(plan, std::move(backend), options, begin.step + 1);
  if (!created)
    return created.error();
  session = std::move(*created);
  Expected<bool> isAsync =
      options.processes.any(std::ranges::any_of(session->heldDevices(), [](const auto &device) {
        return !device->getResources().getDevice().isHostMemory();
      }));
  if (!isAsync)
    return isAsync.error();
  runsBesideHost = *isAsync;
  if (MaybeError error = checkOptions())
    return error;
  if (data)
    if (MaybeError error = startLoader())
      return error;
  // A run of days must not end with the discovery that its result has no place.
  Expected<SavedFiles> files = SavedFiles::create(*plan, options);
  if (!files)
    return files.error();
  savedFiles = std::move(*files);
  if (begin.step == 0)
    if (MaybeError error = loadInitialWeights(*session, options, notes))
      return error;
  if (MaybeError error = startStepState(*session, lossScale, options.seed, begin.nextBatch))
    return error;
  if (checkpoints)
    if (MaybeError error = loadCheckpoint())
      return error;
  if (MaybeError error = session->initializeOtherStates(options.seed))
    return error;
  if (MaybeError error = openOuterSteps())
    return error;
  if (MaybeError error = beginOutcomes())
    return error;
  // Last, as it takes longest.
  if (data) {
    Expected<bool> counts = checkData(*data, describeData());
    if (!counts)
      return counts.error();
    if (!*counts && trains())
      note(fmt::format("{}: no label counts, so that there is nothing to learn: all labels are the "
                       "one of dtc-import --ignore-index",
                       data->describe()));
  }
  if (evaluation) {
    Expected<bool> counts = checkData(evaluation->getData(), describeFiles(options.evalDataPaths));
    if (!counts)
      return counts.error().inContext(options.evalDataFlag);
    if (!*counts)
      noteNoLabelCounts();
  }
  return std::nullopt;
}

MaybeError TrainingRun::loadCheckpoint() {
  Expected<RunIdentity> identity =
      identityOf(*plan, options.batches, options.seed, data.get(), options.sampling);
  if (!identity)
    return identity.error();
  if (options.outerEvery)
    identity->updateSettings += fmt::format(", outer_every={}", *options.outerEvery);
  if (options.clientClip)
    identity->updateSettings += fmt::format(", client_clip={}, noise_multiplier={}",
                                            *options.clientClip, *options.noiseMultiplier);
  if (options.localEpochs)
    identity->updateSettings += fmt::format(", local_epochs={}", *options.localEpochs);
  bool hasSteps = begin.step < steps;
  if (MaybeError error = checkpoints->load(*session, *identity, schedule, hasSteps))
    return error;
  return hasSteps ? checkpoints->prepareToSave(*session) : std::nullopt;
}

/// Finds the outer steps of replicas that differ, and runs what comes before the first step.
MaybeError TrainingRun::openOuterSteps() {
  outerSteps = OuterSteps::find(*session);
  if (!outerSteps && options.outerEvery)
    return Error{"--outer-every: the plan has no outer step, as its replicas do not differ; "
                 "compile with --outer for one that has, or leave the flag out"};
  if (begin.step >= steps) { // it is only evaluated, or its weights are saved
    outerSteps = nullptr;
    return std::nullopt;
  }
  if (!clientsData)
    outerEvery = options.outerEvery.value_or(0);
  if (outerSteps && outerEvery == 0)
    return Error{"the plan has an outer step, after which its replicas have the same parameters "
                 "again; say with --outer-every after how many steps it runs, such as 50"};
  if (MaybeError error = outerSteps ? outerSteps->setEvery(outerEvery) : std::nullopt)
    return Error{"--outer-every " + error->message};
  if (outerSteps && checkpoints)
    outerSteps->forgetUntil(checkpoints->outerForgotten());
  if (clientsData)
    clients = std::make_unique<ClientTraining>(*clientsData, *session, clientNoise());
  else if (outerSteps && options.processes.areSeveral() && session->readsOwnResults())
    beside = std::make_unique<StepAgreement>(options.processes);
  Session *first = session->findEntry(kOuterBeginEntry);
  return first && begin.step == 0 ? first->step() : std::nullopt;
}

/// Reads the step state that the run begins with.
MaybeError TrainingRun::beginOutcomes() {
  Expected<StepState> state = readStepState(*session);
  if (!state)
    return state.error();
  if (trains() && state->stepsDone() != begin.step)
    return Error{fmt::format("--resume: the checkpoint is of step {}, but its step state counts {} "
                             "applied and {} skipped steps; it is damaged",
                             begin.step, state->appliedSteps, state->skippedSteps)};
  outcomes = StepOutcomes(*state, begin);
  result.stepsSkipped = state->skippedSteps;
  return std::nullopt;
}

/// Batches are read while the devices compute, of each the rows of this process.
MaybeError TrainingRun::startLoader() {
  BatchRows rows = rowsOf(*plan, session->getPrepared().mesh, session->fabric().devices());
  auto read = [this, rows, inputs = dataInputsOf(*plan)](int64_t number) -> Expected<Batch> {
    Expected<Batch> part = data->batch(number, rows);
    return part ? Expected<Batch>(intoWhole(std::move(*part), rows, inputs)) : part.error();
  };
  auto started =
      BatchLoader::start(std::move(read), batchesAhead(dataInputsOf(*plan), options.batches),
                         begin.nextBatch + (steps - begin.step) * options.batches);
  if (!started)
    return started.error();
  loader = std::move(*started);
  return std::nullopt;
}

/// Says once that an evaluation has no loss.
void TrainingRun::noteNoLabelCounts() {
  if (!std::exchange(saidNoLabelCounts, true))
    note(fmt::format("{}: {}: no label counts, so that there is no loss on them",
                     options.evalDataFlag, evaluation->describe(steps)));
}

/// Looks at all of a data set, so that an error near its end is not found after days. Returns
/// whether any label counts.
Expected<bool> TrainingRun::checkData(const DataSource &source, const std::string &name) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point told = Clock::now();
  auto check = [&](uint64_t done, uint64_t all) {
    if (Clock::now() - told > std::chrono::seconds(5)) {
      note(fmt::format("{}: {}% are checked", name, 100 * done / all));
      told = Clock::now();
    }
    return !stop;
  };
  if (MaybeError error = source.check(check))
    return *error;
  return source.hasLabelThatCounts([&] { return !stop; });
}

/// How much of the data the run takes: "0.14 epochs in 200 steps".
std::string TrainingRun::describeEpochs() const {
  double samples = static_cast<double>(steps) * static_cast<double>(options.batches) *
                   static_cast<double>(data->batchSize());
  return fmt::format("{:.3g} epochs in {} step{}{}",
                     samples / static_cast<double>(data->samplesPerEpoch()), steps,
                     steps == 1 ? "" : "s",
                     options.sampling == Sampling::Random ? ", drawn with replacement" : "");
}

void TrainingRun::describe() const {
  std::vector<std::string> axes;
  for (const plan::Axis &axis : plan->axes())
    axes.push_back(
        fmt::format("{}={}{}", axis.name(), axis.size(), axis.temporal() ? " temporal" : ""));
  int64_t parameters = 0;
  for (const plan::State *state : distinctStates(*plan))
    if (state->kind() == plan::State::PARAMETER)
      parameters += typeOf(*state).numElements();
  std::string mesh = axes.empty() ? "" : fmt::format(" ({})", fmt::join(axes, ", "));
  printTo(out, "{}: {} parameters, {} device{}{}, {} and {} of workspace each\n",
          printable(plan->model().empty() ? options.planPath : plan->model()), parameters,
          session->numDevices(), session->numDevices() == 1 ? "" : "s", printable(mesh),
          formatBytes(session->peakBytes()), formatBytes(session->workspaceBytes()));
  if (const Device &device = session->heldDevices().front()->getResources().getDevice();
      !device.isHostMemory())
    printTo(out, "on {}, {}\n", printable(device.describe()), session->describeGraphs());
  if (std::string memory = session->describeFabricMemory(); !memory.empty())
    printTo(out, "beside that, {}\n", memory);
  if (data)
    printTo(out, "{}; {}\n", printable(data->describe()), describeEpochs());
  if (evaluation)
    printTo(out, "{}\n", printable(evaluation->describe(steps)));
  if (checkpoints)
    printTo(out, "{}\n", printable(checkpoints->describe()));
  if (const std::optional<Replicas> &replicas = session->getPrepared().replicas;
      outerSteps && !clients && session->numReplicasRead() < replicas->count)
    printTo(out,
            "losses and norms are means over {} of {} replicas along {}, which are in this "
            "process\n",
            session->numReplicasRead(), replicas->count, printable(replicas->axis));
  std::fflush(out);
}

} // namespace dtc::runtime
