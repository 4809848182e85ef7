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
  sessionOptions.threadsPerDevice = options.threadsPerDevice;
  if (options.threadsPerDevice <= 0) {
    int64_t cores = std::max(1u, std::thread::hardware_concurrency());
    int64_t processes = options.processes.count();
    int64_t devices = (meshOf(*plan).numDevices() + processes - 1) / processes;
    sessionOptions.threadsPerDevice =
        static_cast<int>(std::max<int64_t>(cores / (devices * options.processes.onHost()), 1));
  }
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
