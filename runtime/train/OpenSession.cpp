//===- OpenSession.cpp - From options to a session with its weights -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/OpenSession.h"

#include "plan/PlanTypes.h"
#include "runtime/train/PredictedTimes.h"
#include "runtime/train/SavedWeights.h"
#include "runtime/train/Weights.h"
#include "support/Print.h"
#include "support/Printable.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <thread>

namespace dtc::runtime {

Expected<int> threadsOfDevice(const std::vector<int> &given, const ProcessPlace &place,
                              int64_t devices) {
  if (given.size() > 1 && static_cast<int64_t>(given.size()) != place.processes)
    return Error{fmt::format(
        "--threads has {} numbers, but there {}; give one number for all, or "
        "one for each process",
        given.size(),
        place.processes == 1 ? "is 1 process" : fmt::format("are {} processes", place.processes))};
  if (!given.empty())
    return given[given.size() > 1 ? static_cast<size_t>(place.process) : 0];
  int64_t ofProcess = (devices + place.processes - 1) / place.processes;
  return static_cast<int>(std::max<int64_t>(place.cores / (ofProcess * place.onHost), 1));
}

Expected<std::unique_ptr<Session>> openSession(std::shared_ptr<const plan::Plan> plan,
                                               std::shared_ptr<const Backend> backend,
                                               const TrainOptions &options, int64_t firstStep) {
  SessionOptions sessionOptions;
  sessionOptions.profile = options.profile;
  sessionOptions.stallTimeout = options.stallTimeout;
  sessionOptions.onHang = options.onHang;
  sessionOptions.watch = options.watch;
  sessionOptions.predict = predictTimes(*plan);
  if (!options.tracePath.empty())
    sessionOptions.traceSteps = options.traceSteps;
  sessionOptions.batches = options.batches;
  // In generation, each step needs the tokens that the one before has chosen.
  sessionOptions.stepsInFlight = generates(*plan) ? 1 : 2;
  for (Injection injection : options.injections)
    if (injection.step -= firstStep - 1; injection.step > 0)
      sessionOptions.injections.push_back(injection);
  sessionOptions.measureWaits = options.processes.areSeveral();
  sessionOptions.delays = options.delays;
  // A step of decoding takes little more than its collectives.
  sessionOptions.marksCommunication = options.marksCommunication && !generates(*plan);
  sessionOptions.graphs = options.graphs;
  sessionOptions.openFabric = options.openFabric;
  if (!options.openFabric)
    sessionOptions.openFabric = [&](const Mesh &mesh) {
      return options.processes.openFabric(mesh);
    };
  const Processes &processes = options.processes;
  Expected<int> threads =
      threadsOfDevice(options.threadsPerDevice,
                      {processes.process(), processes.count(), processes.onHost(),
                       std::max(1u, std::thread::hardware_concurrency())},
                      meshOf(*plan).numDevices());
  if (!threads)
    return threads.error();
  sessionOptions.threadsPerDevice = *threads;
  Expected<std::unique_ptr<Session>> session =
      Session::create(std::move(plan), std::move(backend), sessionOptions);
  if (!session)
    return session.error().inContext(options.planPath);
  return session;
}

MaybeError loadInitialWeights(Session &session, const TrainOptions &options, std::FILE *notes) {
  if (options.initPaths.empty())
    return std::nullopt;
  Expected<std::vector<std::string>> loaded =
      loadWeights(session, options.initPaths, options.allowUnusedAdapters);
  if (!loaded)
    return loaded.error();
  for (const std::string &text : *loaded)
    printTo(notes, "note: {}\n", printableMessage(text));
  std::fflush(notes);
  if (options.allowNonfinite)
    return std::nullopt;
  Expected<std::optional<std::string>> nonfinite =
      SavedWeights(session.plan()).findNonfinite(session);
  if (!nonfinite)
    return nonfinite.error();
  if (*nonfinite)
    return Error{fmt::format("--init {}: {}, expected finite numbers only; give weights of a run "
                             "that did not diverge, or pass --allow-nonfinite to go on",
                             fmt::join(options.initPaths, ", "), **nonfinite)};
  return std::nullopt;
}

} // namespace dtc::runtime
