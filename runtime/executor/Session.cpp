//===- Session.cpp - Sessions: a plan, its devices and memory -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/Session.h"

#include "plan/PlanTypes.h"
#include "plan/PlanVerifier.h"
#include "runtime/executor/DeviceBuffers.h"
#include "runtime/executor/DevicePlaces.h"
#include "runtime/executor/StallDetector.h"
#include "runtime/fabrics/local/LocalFabric.h"
#include "support/StartThread.h"

#include <algorithm>
#include <cassert>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <utility>

namespace dtc::runtime {

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

Session::Session(std::shared_ptr<const Backend> backend,
                 std::shared_ptr<const PreparedPlan> prepared, std::shared_ptr<Shared> shared)
    : backend(std::move(backend)), prepared(std::move(prepared)), shared(std::move(shared)) {}

/// The memory of steps must not be freed before their work is done.
Session::~Session() {
  if (shared->failure)
    end = expectRest();
  if (watch)
    watch->remove(this);
  while (stepsInFlight() > 0)
    (void)finishStep();
}

/// Tells onHang if what follows, which ends when nothing runs any more, does not end in time.
std::unique_ptr<Deadline> Session::expectRest() const {
  if (!shared->onHang)
    return nullptr;
  try {
    return std::make_unique<Deadline>(
        kTimeToRest, [onHang = shared->onHang, reason = *shared->failure] { onHang(reason); });
  } catch (const ThreadStartError &) {
    return nullptr;
  }
}

static Expected<std::shared_ptr<Fabric>> openFabric(const SessionOptions &options,
                                                    const Mesh &mesh) {
  return options.openFabric ? options.openFabric(mesh) : openLocalFabric(mesh);
}

Expected<std::unique_ptr<Session>> Session::create(std::shared_ptr<const plan::Plan> plan,
                                                   std::shared_ptr<const Backend> backend,
                                                   const SessionOptions &options) {
  if (options.batches > 1 && !plan->one_batch().empty())
    return Error{"a step has one batch, since several do not make what one large batch has: " +
                 plan->one_batch()};
  if (MaybeError error = findPlanError(*plan, /*repeatsLoop=*/options.batches > 1))
    return *error;
  if (options.batches > 1 && !trains(*plan))
    return Error{"the plan does not train, so that a step has one batch"};
  if (options.batches > 1)
    for (const plan::Program &program : plan->programs())
      if (program.loop_begin() == program.loop_end())
        return Error{"the plan does not sum gradients over microbatches, so that a step has one "
                     "batch; compile with --accumulate, or with --microbatches 2 or more"};
  // Before anything is prepared: the preparation of a collective grows with its members.
  Expected<std::shared_ptr<Fabric>> fabric = openFabric(options, meshOf(*plan));
  if (!fabric)
    return fabric.error();
  Expected<std::shared_ptr<const PreparedPlan>> prepared = PreparedPlan::create(
      std::move(plan), *backend, std::max(options.threadsPerDevice, 1), (*fabric)->devices(),
      // A value with an injection has to be read.
      /*fuses=*/options.injections.empty());
  if (!prepared)
    return prepared.error();
  return create(std::move(*prepared), std::move(backend), std::move(*fabric), options);
}

Expected<std::unique_ptr<Session>> Session::create(std::shared_ptr<const PreparedPlan> prepared,
                                                   std::shared_ptr<const Backend> backend,
                                                   const SessionOptions &options) {
  Expected<std::shared_ptr<Fabric>> fabric = openFabric(options, prepared->mesh);
  if (!fabric)
    return fabric.error();
  return create(std::move(prepared), std::move(backend), std::move(*fabric), options);
}

Expected<std::unique_ptr<Session>> Session::create(std::shared_ptr<const PreparedPlan> prepared,
                                                   std::shared_ptr<const Backend> backend,
                                                   std::shared_ptr<Fabric> fabric,
                                                   const SessionOptions &options) {
  if (auto threaded = backend->withThreads(std::max(options.threadsPerDevice, 1)))
    backend = std::move(threaded);
  auto shared = std::make_shared<Shared>();
  shared->fabric = std::move(fabric);
  shared->onHang = options.onHang;
  std::unique_ptr<Session> session(
      new Session(std::move(backend), std::move(prepared), std::move(shared)));
  try {
    if (MaybeError error = session->openResources(options))
      return *error;
    if (MaybeError error = session->open(options))
      return *error;
    if (MaybeError error = session->prepare())
      return *error;
    if (MaybeError error = session->clearStates())
      return *error;
  } catch (const ThreadStartError &error) {
    return Error{error.what()};
  }
  return session;
}

/// Opens the devices of this process, with the memory that all entry points need.
MaybeError Session::openResources(const SessionOptions &options) {
  std::span<const int64_t> held = fabric().devices();
  auto inContext = [&](size_t i, const Error &error) {
    return error.inContext(fmt::format("device {}", held[i]));
  };
  for (size_t i = 0; i < held.size(); ++i) {
    auto opened = DeviceResources::open(*backend, held[i]);
    if (!opened)
      return inContext(i, opened.error());
    shared->resources.push_back(std::move(*opened));
  }
  if (MaybeError error = checkMemory(options))
    return error;
  auto programOf = [&](size_t i) { return static_cast<size_t>(prepared->mesh.programOf(held[i])); };
  for (size_t i = 0; i < held.size(); ++i)
    if (MaybeError error = shared->resources[i]->allocate(
            {prepared->arenaBytes(programOf(i)), prepared->workspaceBytes(programOf(i)),
             prepared->usesHost(programOf(i)), prepared->hostArenaBytes(programOf(i)),
             prepared->hostWorkspaceBytes(programOf(i))}))
      return inContext(i, *error);
  shared->threads = std::make_unique<DeviceThreads>(
      held.size(), [fabric = shared->fabric.get()](const Error &error) { fabric->abort(error); },
      std::vector(held.begin(), held.end()));
  if (MaybeError error = shared->threads->run([&](size_t i) {
        return shared->resources[i]->openQueues(prepared->hasAsync(programOf(i)),
                                                prepared->usesHost(programOf(i)));
      }))
    return error;
  return openBeside();
}

/// Opens what the entry points that run beside the others have for themselves.
MaybeError Session::openBeside() {
  if (std::ranges::none_of(prepared->entryPoints,
                           [](const auto &entry) { return entry->runsBeside(); }))
    return std::nullopt;
  auto beside = std::make_shared<Shared>();
  beside->fabric = shared->fabric;
  beside->onHang = shared->onHang;
  std::span<const int64_t> held = fabric().devices();
  auto programOf = [&](size_t i) { return static_cast<size_t>(prepared->mesh.programOf(held[i])); };
  for (size_t i = 0; i < held.size(); ++i) {
    auto opened = shared->resources[i]->openBeside(prepared->workspaceBeside(programOf(i)));
    if (!opened)
      return opened.error().inContext(fmt::format("device {}", held[i]));
    beside->resources.push_back(std::move(*opened));
  }
  beside->threads = std::make_unique<DeviceThreads>(
      held.size(), [fabric = shared->fabric.get()](const Error &error) { fabric->abort(error); },
      std::vector(held.begin(), held.end()));
  shared->beside = beside;
  return beside->threads->run([&](size_t i) {
    return beside->resources[i]->openQueues(prepared->hasAsync(programOf(i)), /*usesHost=*/false);
  });
}

/// The injections of each device of this process.
Expected<std::vector<std::vector<PreparedInjection>>>
Session::prepareInjections(const SessionOptions &options) const {
  std::span<const int64_t> held = fabric().devices();
  std::vector<std::vector<PreparedInjection>> byDevice(held.size());
  for (const Injection &injection : options.injections) {
    auto device = std::find(held.begin(), held.end(), injection.device);
    if (device == held.end() && injection.device >= 0 && injection.device < numDevices())
      continue; // another process's
    Expected<PreparedInjection> place = prepareInjection(*prepared, injection);
    if (!place)
      return place.error().inContext("what is to be injected");
    byDevice[static_cast<size_t>(device - held.begin())].push_back(*place);
  }
  return byDevice;
}

Expected<double> Session::delayOf(int64_t device, const SessionOptions &options) const {
  double seconds = 0;
  for (const InjectedDelay &each : options.delays) {
    if (each.device >= numDevices())
      return Error{
          fmt::format("what is to be injected: there is no device {}; the plan has devices "
                      "0 to {}",
                      each.device, numDevices() - 1)};
    seconds += each.device == device ? each.seconds : 0;
  }
  return seconds;
}

/// Whether the devices get graphs. An error says why they cannot, where they have to.
Expected<bool> Session::choosesGraphs(const SessionOptions &options) const {
  const char *obstacle = nullptr;
  if (!std::all_of(shared->resources.begin(), shared->resources.end(),
                   [](const auto &each) { return each->getDevice().capturesGraphs(); }))
    obstacle = "the devices are no GPUs (--device cuda)";
  else if (options.profile || options.traceSteps > 0)
    obstacle = "a profile or a trace takes the time of each instruction, which graphs hide";
  else if (!options.injections.empty())
    obstacle = "what is injected into one step would be in the graphs of all";
  if (obstacle && options.graphs == true)
    return Error{fmt::format("--cuda-graphs on: {}; leave one of the two out", obstacle)};
  return !obstacle && options.graphs != false;
}

/// Opens the devices of this entry point and of all others.
MaybeError Session::open(const SessionOptions &options) {
  Expected<std::vector<std::vector<PreparedInjection>>> injections = prepareInjections(options);
  if (!injections)
    return injections.error();
  inputs.resize(static_cast<size_t>(options.batches));
  mostInFlight = std::max<size_t>(options.stepsInFlight, 1);
  threadsPerDevice = std::max(options.threadsPerDevice, 1);
  DeviceOptions deviceOptions{
      options.profile, options.traceSteps, options.batches, mostInFlight, {}, options.measureWaits};
  Expected<bool> graphs = choosesGraphs(options);
  if (!graphs)
    return graphs.error();
  deviceOptions.graphs = *graphs;
  deviceOptions.marks = options.stallTimeout > 0 && options.marksCommunication;
  deviceOptions.copyTimeout = options.stallTimeout;
  deviceOptions.onHang = options.onHang;
  deviceOptions.lane = prepared->runsBeside() ? 1 : 0;
  std::span<const int64_t> held = fabric().devices();
  for (size_t i = 0; i < held.size(); ++i) {
    deviceOptions.injections = (*injections)[i];
    Expected<double> delay = delayOf(held[i], options);
    if (!delay)
      return delay.error();
    deviceOptions.delay = *delay;
    auto device =
        DeviceExecutor::create(prepared, held[i], *shared->resources[i], fabric(), deviceOptions);
    if (!device)
      return device.error().inContext(fmt::format("device {}", held[i]));
    devices.push_back(std::move(*device));
  }
  if (MaybeError error = fabric().connect())
    return *error;
  if (options.stallTimeout > 0)
    stallDetector =
        std::make_unique<StallDetector>(*prepared, devices, options.stallTimeout, options.onHang);
  if (options.watch) {
    watch = options.watch;
    places = std::make_unique<DevicePlaces>(*prepared, devices, options.predict);
    watch->add(this, {[this] { return places->describe(); }, [this] { return places->flight(); }});
  }
  SessionOptions others = options;
  others.traceSteps = 0;
  others.batches = 1;
  others.stepsInFlight = 1;
  others.injections.clear();
  others.delays.clear();
  for (const std::shared_ptr<const PreparedPlan> &entryPoint : prepared->entryPoints) {
    std::unique_ptr<Session> &added = entryPoints.emplace_back(
        new Session(backend, entryPoint, entryPoint->runsBeside() ? shared->beside : shared));
    if (MaybeError error = added->open(others))
      return error->inContext(fmt::format("entry point \"{}\"", entryPoint->plan->entry()));
  }
  return std::nullopt;
}

/// Does on all devices what may wait for one (Device.h), for all entry points: after this, nothing
/// of a step does.
MaybeError Session::prepare() {
  if (std::all_of(shared->resources.begin(), shared->resources.end(),
                  [](const auto &each) { return each->getDevice().isHostMemory(); }))
    return std::nullopt;
  std::vector<Session *> all = {this};
  for (const std::unique_ptr<Session> &entryPoint : entryPoints)
    all.push_back(entryPoint.get());
  // Returns when the devices of all processes have come to the end of a part.
  auto runPart = [&](Session &session, const std::function<MaybeError(DeviceExecutor &)> &part) {
    StallDetector *detector = session.stallDetector.get();
    MaybeError error = session.runOnDevices(part, detector ? &detector->begin() : nullptr);
    Expected<bool> met = error ? Expected<bool>(*error) : fabric().any(false);
    return met ? std::nullopt : MaybeError(met.error());
  };
  for (Session *session : all)
    if (MaybeError error =
            runPart(*session, [](DeviceExecutor &device) { return device.prepareKernels(); }))
      return error;
  for (Session *session : all)
    for (size_t group = 0; group < session->prepared->groups.size(); ++group)
      for (const std::vector<int64_t> &members : session->rehearsedTogether(group)) {
        auto rehearse = [&](DeviceExecutor &device) {
          return std::binary_search(members.begin(), members.end(), device.index())
                     ? device.rehearseCollectives(group)
                     : std::nullopt;
        };
        if (MaybeError error = runPart(*session, rehearse))
          return error;
      }
  for (Session *session : all)
    if (MaybeError error =
            runPart(*session, [](DeviceExecutor &device) { return device.captureGraphs(); }))
      return error;
  return std::nullopt;
}

/// The devices that rehearse the collectives of a group of the plan at the same time, in rising
/// order: all, or where devices wait for each other on one GPU, which they must not while another
/// one sets up something there, those that have the collectives together.
std::vector<std::vector<int64_t>> Session::rehearsedTogether(size_t group) const {
  const Mesh &mesh = prepared->mesh;
  std::map<int64_t, std::vector<int64_t>> together; // by the first
  for (int64_t device = 0; device < mesh.numDevices(); ++device)
    together[fabric().sharesGpus() ? mesh.group(device, prepared->groups[group]).front() : 0]
        .push_back(device);
  std::vector<std::vector<int64_t>> all;
  for (auto &[first, devices] : together)
    all.push_back(std::move(devices));
  return all;
}

/// Memory of the system is zero already.
MaybeError Session::clearStates() {
  return runOnDevices([](DeviceExecutor &device) -> MaybeError {
    const DeviceResources &resources = device.getResources();
    const plan::Program &program = *device.getProgram().program;
    for (const plan::State &state : program.states()) {
      bool isHost = isOnHost(program.buffers(static_cast<int>(state.buffer())));
      if ((isHost ? resources.hostArena() : resources.arena()).isZeroed())
        continue;
      if (MaybeError error = clearBuffer(device, state.buffer()))
        return error;
    }
    return std::nullopt;
  });
}

size_t Session::positionOf(int64_t device) const {
  std::span<const int64_t> held = fabric().devices();
  auto found = std::lower_bound(held.begin(), held.end(), device);
  assert(found != held.end() && *found == device && "a device of this process");
  return static_cast<size_t>(found - held.begin());
}

Session *Session::findEntry(const std::string &name) const {
  for (const std::unique_ptr<Session> &entryPoint : entryPoints)
    if (entryPoint->plan().entry() == name)
      return entryPoint.get();
  return nullptr;
}

static bool updatesStates(const plan::Plan &plan) {
  return std::any_of(
      plan.programs().begin(), plan.programs().end(), [](const plan::Program &program) {
        return std::any_of(program.states().begin(), program.states().end(),
                           [](const plan::State &state) { return state.has_update(); });
      });
}

MaybeError Session::runOnDevices(const std::function<MaybeError(DeviceExecutor &)> &work,
                                 const DeviceThreads::Watch *watch) {
  MaybeError &failure = shared->failure;
  if (failure)
    return failure;
  failure = shared->threads->run([&](size_t device) { return work(*devices[device]); }, watch);
  // The failing device has aborted the fabric, so this ends. Until then one device's communication
  // may still use the memory of the others.
  if (failure) {
    std::unique_ptr<Deadline> rest = expectRest();
    for (const std::unique_ptr<DeviceExecutor> &device : devices)
      device->drain();
    shared->statesAreWhole &= !updatesStates(plan());
  }
  return failure;
}

} // namespace dtc::runtime
