//===- EndTraining.cpp - Last part of a training run ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/TrainingRun.h"

#include "plan/PlanTypes.h"
#include "runtime/train/ChromeTrace.h"
#include "runtime/train/Guarded.h"
#include "runtime/train/SavedWeights.h"
#include "simulator/PlanSimulation.h"
#include "support/Format.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dtc::runtime {

/// Weights that are not finite are no result, however good the last loss was.
MaybeError TrainingRun::checkWeights() const {
  if (!trains() || (options.allowNonfinite && savedFiles.paths().empty() && !checkpoints))
    return std::nullopt;
  Expected<std::optional<std::string>> found = SavedWeights(*plan).findNonfinite(*session);
  if (!found)
    return found.error();
  if (!*found)
    return std::nullopt;
  std::string since = outcomes.lastFiniteStep() > 0
                          ? fmt::format("the update of step {}", outcomes.lastFiniteStep())
                          : "the start";
  return Error{
      fmt::format("the parameters after step {} are not finite, and have not been since {}, "
                  "as far as the losses tell: {}; lower the learning rate (--lr {})",
                  result.stepsDone, since, **found, options.learningRate)};
}

/// Saves the states after the last step, unless they are no result or are saved already, and waits
/// for the disk. Returns the error of the run, or its own.
MaybeError TrainingRun::saveCheckpoint(MaybeError failure) {
  if (!checkpoints)
    return failure;
  bool isNew = result.stepsDone > checkpoints->lastStep();
  MaybeError error;
  if (isNew && statesAreWhole && !hasDiverged && !checkpoints->hasFailed())
    error = guarded([&]() -> MaybeError {
      if (MaybeError nonfinite = checkWeights())
        return nonfinite;
      StepMetrics unused;
      if (MaybeError failed = checkpoints->copy(unused))
        return failed;
      checkpoints->write(result.stepsDone, outcomes);
      return std::nullopt;
    });
  Expected<std::string> saved = checkpoints->finish();
  if (!saved && !error)
    error = saved.error();
  if (saved && !saved->empty())
    printTo(out, "checkpoint {}\n", printable(*saved));
  std::fflush(out);
  if (!failure || !error || failure->message == error->message)
    return failure ? failure : error;
  return Error{fmt::format("{}; {}", failure->message, error->message)};
}

/// Saves what was trained, also if the run has failed since. Returns the error of the run, and says
/// in it what became of the states.
MaybeError TrainingRun::save(MaybeError failure) {
  const std::vector<std::string> &paths = savedFiles.paths();
  auto explain = [&](const std::string &text) {
    return paths.empty() ? failure : Error{fmt::format("{}; {}", failure->message, text)};
  };
  auto nothing = [&](const std::string &reason) {
    std::vector<std::string> kept = paths;
    std::erase_if(kept, [](const std::string &path) { return !std::filesystem::exists(path); });
    return explain(fmt::format("{}nothing is saved{}", reason,
                               kept.empty()
                                   ? ""
                                   : fmt::format(", {} {} as before", fmt::join(kept, ", "),
                                                 kept.size() == 1 ? "is" : "are")));
  };
  // A failed run that has trained nothing has nothing to say.
  if (failure && (result.stepsDone == begin.step || !trains()))
    return failure;
  if (failure && !statesAreWhole)
    return nothing("some of the parameters may be those after the failed step, so that ");
  if (failure && hasDiverged)
    return nothing("");
  if (MaybeError error = guarded([&] { return checkWeights(); })) {
    failure = failure ? Error{fmt::format("{}; {}", failure->message, error->message)} : *error;
    return nothing("");
  }
  MaybeError error;
  std::vector<std::string> saved;
  MaybeError exception = guarded([&] {
    saved = savedFiles.save(*session, error);
    return MaybeError();
  });
  for (const std::string &path : saved)
    printTo(out, "saved {}\n", printable(path));
  std::fflush(out);
  if (!error)
    error = exception;
  if (!failure)
    return error;
  if (!saved.empty())
    failure = explain(fmt::format("what was trained up to step {} is saved: {}", result.stepsDone,
                                  fmt::join(saved, ", ")));
  return error ? explain(error->message) : failure;
}

MaybeError TrainingRun::finish() {
  // A run that has no step has no lines to put in the place of others.
  if (MaybeError error = begin.step < steps || begin.step == 0 ? beginMetrics() : std::nullopt)
    return error;
  if (!trains() && result.stepsDone > 0)
    for (const plan::Output *output : distinctOutputs(*plan)) {
      Expected<HostTensor> value = session->getOutput(output->name());
      if (!value)
        return value.error();
      printTo(out, "{}\n", formatTensor(printable(output->name()), *value));
    }
  if (PipelineTime time = session->pipelineTime(); time.deviceSeconds > 0) {
    std::optional<double> predicted;
    if (auto timeline = simulatePlan(*plan))
      predicted = timeline->bubbleShare();
    printTo(out, "{}", formatPipelineTime(time, predicted));
  }
  if (MaybeError error = reportWaits())
    return error;
  if (options.profile) {
    printTo(out, "{}{}{}", formatProfile(session->profile()),
            formatMeasuredCollectives(session->measuredCollectives()),
            formatTransferTime(session->transferTime()));
    auto writeSent = [&](const CommunicatorBytes &sent, const char *where) {
      for (CollectiveKind kind : kAllCollectiveKinds)
        if (sent.of(kind) > 0)
          printTo(out, "{} sent {} {}\n", name(kind), formatBytes(sent.of(kind)), where);
    };
    CommunicatorBytes sent = session->communicatorBytes();
    writeSent(sent, "in all");
    if (outerSteps)
      writeSent(outerSteps->sent(), "in outer steps besides");
    if (outerSteps && !outerSteps->whole())
      printTo(out, "sending fragments took {:.3f} s; steps waited for it for {:.3f} s\n",
              outerSteps->sendingSeconds(), outerSteps->waitedSeconds());
    if (sent.transfers > 0)
      printTo(out, "transfers sent {} in all\n", formatBytes(sent.transfers));
  }
  if (!options.tracePath.empty()) {
    if (MaybeError error = writeChromeTrace(*session, options.tracePath))
      return error;
    printTo(out, "traced {}\n{}", printable(options.tracePath),
            formatTracedCommunication(tracedCommunication(*session)));
  }
  // The printed output is the purpose of a plan that does not train.
  if ((std::fflush(out) != 0 || std::ferror(out)) && !trains()) {
    if (!stop)
      return Error{fmt::format("the outputs cannot be written: {}", std::strerror(errno))};
    result.interrupted = true; // by the reader of the pipe, which has closed it
  }
  return std::nullopt;
}

} // namespace dtc::runtime
