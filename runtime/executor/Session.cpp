//===- Session.cpp - A plan at work ---------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/Session.h"

#include "plan/PlanTypes.h"
#include "plan/PlanValidator.h"
#include "runtime/executor/HostView.h"
#include "runtime/executor/InitialValues.h"
#include "runtime/executor/ShardRegion.h"
#include "runtime/executor/StallDetector.h"
#include "runtime/fabrics/local/LocalFabric.h"
#include "support/CheckedMath.h"
#include "support/Format.h"
#include "support/Memory.h"
#include "support/StartThread.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <numeric>

namespace dtc::runtime {

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

Session::Session(std::shared_ptr<const Backend> backend,
                 std::shared_ptr<const PreparedPlan> prepared, std::shared_ptr<Shared> shared)
    : backend(std::move(backend)), prepared(std::move(prepared)), shared(std::move(shared)) {}

Session::~Session() = default;

static Expected<std::shared_ptr<Fabric>> openFabric(const SessionOptions &options,
                                                    const Mesh &mesh) {
  return options.openFabric ? options.openFabric(mesh) : openLocalFabric(mesh);
}

Expected<std::unique_ptr<Session>> Session::create(std::shared_ptr<const plan::Plan> plan,
                                                   std::shared_ptr<const Backend> backend,
                                                   SessionOptions options) {
  if (MaybeError error = validatePlan(*plan, /*repeatsLoop=*/options.batches > 1))
    return *error;
  auto trains = [](const plan::Program &program) {
    return std::any_of(program.inputs().begin(), program.inputs().end(), [](const auto &input) {
      return input.role() == plan::Input::LEARNING_RATE;
    });
  };
  if (options.batches > 1 && std::none_of(plan->programs().begin(), plan->programs().end(), trains))
    return Error{"the plan does not train, so that a step has one batch"};
  if (options.batches > 1)
    for (const plan::Program &program : plan->programs())
      if (program.loop_begin() == program.loop_end())
        return Error{"the plan does not sum gradients over microbatches, so that a step has one "
                     "batch; compile with --accumulate, or with --microbatches 2 or more"};
  // Before anything is prepared: what is prepared for a collective grows with its members.
  Expected<std::shared_ptr<Fabric>> fabric = openFabric(options, meshOf(*plan));
  if (!fabric)
    return fabric.error();
  Expected<std::shared_ptr<const PreparedPlan>> prepared =
      PreparedPlan::create(std::move(plan), *backend, std::max(options.threadsPerDevice, 1),
                           (*fabric)->devices());
  if (!prepared)
    return prepared.error();
  return create(std::move(*prepared), std::move(backend), std::move(*fabric), options);
}

Expected<std::unique_ptr<Session>> Session::create(std::shared_ptr<const PreparedPlan> prepared,
                                                   std::shared_ptr<const Backend> backend,
                                                   SessionOptions options) {
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
  std::unique_ptr<Session> session(
      new Session(std::move(backend), std::move(prepared), std::move(shared)));
  try {
    if (MaybeError error = session->openResources(options))
      return *error;
    if (MaybeError error = session->open(options))
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
    auto opened = DeviceResources::open(*backend, static_cast<int64_t>(i));
    if (!opened)
      return inContext(i, opened.error());
    shared->resources.push_back(std::move(*opened));
  }
  if (MaybeError error = checkMemory(options))
    return error;
  auto programOf = [&](size_t i) { return static_cast<size_t>(prepared->mesh.programOf(held[i])); };
  for (size_t i = 0; i < held.size(); ++i)
    if (MaybeError error = shared->resources[i]->allocate(prepared->arenaBytes(programOf(i)),
                                                          prepared->workspaceBytes(programOf(i))))
      return inContext(i, *error);
  shared->threads = std::make_unique<DeviceThreads>(
      held.size(), [fabric = shared->fabric.get()](const Error &error) { fabric->abort(error); },
      std::vector(held.begin(), held.end()));
  return shared->threads->run([&](size_t i) {
    return shared->resources[i]->openQueues(prepared->hasAsync(programOf(i)));
  });
}

/// Devices that share a memory have it together.
MaybeError Session::checkMemory(const SessionOptions &options) const {
  struct Holder {
    uint64_t available = 0, needed = 0, traces = 0, devices = 0;
  };
  std::map<std::string, Holder> holders;
  for (size_t i = 0; i < shared->resources.size(); ++i) {
    auto program = static_cast<size_t>(prepared->mesh.programOf(fabric().devices()[i]));
    Device &device = shared->resources[i]->getDevice();
    Expected<Device::FreeMemory> free = device.freeMemory();
    if (!free)
      return free.error();
    Holder &holder = holders[free->limitedBy];
    holder.available = free->bytes;
    ++holder.devices;
    // Programs of at most 2^46 bytes, and at most 2^16 devices of a process: no sum overflows.
    holder.needed += prepared->arenaBytes(program) +
                     std::min<uint64_t>(prepared->workspaceBytes(program), maxArenaBytes);
    if (options.traceSteps > 0 && device.isHostMemory())
      holder.traces += std::min(DeviceTrace::bytesFor(prepared->programs[program],
                                                      options.traceSteps, options.batches),
                                maxArenaBytes);
  }
  for (const auto &[name, holder] : holders) {
    if (holder.needed > holder.available)
      return Error{fmt::format(
          "the plan needs {} for {} devices ({}{} and {} of scratch memory each), "
          "but {} has {}; compile for more or smaller shards, or a smaller batch",
          formatBytes(holder.needed), holder.devices,
          prepared->programs.size() > 1 ? "at most " : "", formatBytes(peakBytes()),
          formatBytes(workspaceBytes()), name, formatBytes(holder.available))};
    if (holder.needed + holder.traces > holder.available)
      return Error{fmt::format("the trace of {} steps needs {} beside the {} of the plan, but {} "
                               "has {}; trace fewer steps",
                               options.traceSteps, formatBytes(holder.traces),
                               formatBytes(holder.needed), name, formatBytes(holder.available))};
  }
  return std::nullopt;
}

/// By device of this process.
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

/// Opens the devices of this entry point and of all others.
MaybeError Session::open(const SessionOptions &options) {
  Expected<std::vector<std::vector<PreparedInjection>>> injections = prepareInjections(options);
  if (!injections)
    return injections.error();
  inputs.resize(static_cast<size_t>(options.batches));
  DeviceOptions deviceOptions{options.profile, options.traceSteps, options.batches, {}};
  std::span<const int64_t> held = fabric().devices();
  for (size_t i = 0; i < held.size(); ++i) {
    deviceOptions.injections = (*injections)[i];
    auto device = DeviceExecutor::create(prepared, held[i], *shared->resources[i], fabric(),
                                         deviceOptions);
    if (!device)
      return device.error().inContext(fmt::format("device {}", held[i]));
    devices.push_back(std::move(*device));
  }
  if (options.stallTimeout > 0)
    stallDetector =
        std::make_unique<StallDetector>(*prepared, devices, options.stallTimeout, options.onHang);
  SessionOptions others = options;
  others.traceSteps = 0;
  others.batches = 1;
  others.injections.clear();
  for (const std::shared_ptr<const PreparedPlan> &companion : prepared->companions) {
    std::unique_ptr<Session> &added =
        companions.emplace_back(new Session(backend, companion, shared));
    if (MaybeError error = added->open(others))
      return error->inContext(fmt::format("entry point \"{}\"", companion->plan->entry()));
  }
  return std::nullopt;
}

/// Memory of the system is zero already.
MaybeError Session::clearStates() {
  return runOnDevices([](DeviceExecutor &device) -> MaybeError {
    const DeviceResources &resources = device.getResources();
    const plan::Program &program = *device.getProgram().program;
    if (resources.arena().isZeroed())
      return std::nullopt;
    for (const plan::State &state : program.states())
      if (MaybeError error = resources.compute().clear(
              device.buffer(state.buffer()),
              typeOf(program.buffers(static_cast<int>(state.buffer()))).numBytes()))
        return error;
    return resources.compute().finish();
  });
}

size_t Session::positionOf(int64_t device) const {
  std::span<const int64_t> held = fabric().devices();
  auto found = std::lower_bound(held.begin(), held.end(), device);
  assert(found != held.end() && *found == device && "a device of this process");
  return static_cast<size_t>(found - held.begin());
}

Session *Session::findEntry(const std::string &name) const {
  for (const std::unique_ptr<Session> &companion : companions)
    if (companion->plan().entry() == name)
      return companion.get();
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
  // The failing device has aborted the network, so this ends. Until then one device's communication
  // may still use the memory of the others.
  if (failure) {
    for (const std::unique_ptr<DeviceExecutor> &device : devices)
      device->drain();
    shared->statesAreWhole &= !updatesStates(plan());
  }
  return failure;
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

/// The binding of that name among those of a program, or null.
template <typename Bindings>
static auto findByName(const Bindings &bindings, const std::string &name) {
  auto it = std::find_if(bindings.begin(), bindings.end(),
                         [&](const auto &binding) { return binding.name() == name; });
  return it == bindings.end() ? nullptr : &*it;
}

template <typename T>
static ShardRegion regionOf(const Mesh &mesh, const T &binding, int64_t device) {
  return ShardRegion::of(mesh, binding.sharding(), toVector(binding.shape()), device);
}

/// The first of the devices with the same program that hold the same shard of a state or an output
/// as `device`, which has it.
template <typename T> int64_t Session::firstHolder(int64_t device, const T &binding) const {
  std::vector<std::string> axes;
  for (const plan::DimSharding &dim : binding.sharding().dims())
    axes.insert(axes.end(), dim.axes().begin(), dim.axes().end());
  if (const MeshAxis *pipelineAxis = prepared->mesh.pipelineAxis())
    axes.push_back(pipelineAxis->name);
  return prepared->mesh.firstReplica(device, axes);
}

/// The position of the first of those in this process.
template <typename T> size_t Session::firstHere(size_t position, const T &binding) const {
  std::span<const int64_t> held = fabric().devices();
  int64_t first = firstHolder(held[position], binding);
  if (std::binary_search(held.begin(), held.end(), first))
    return positionOf(first);
  size_t found = 0;
  while (firstHolder(held[found], binding) != first)
    ++found;
  return found;
}

/// Reads a buffer of a device's program.
static MaybeError readBuffer(const DeviceExecutor &device, uint32_t buffer,
                             const std::function<void(const std::byte *)> &read) {
  const DeviceResources &resources = device.getResources();
  TensorType type = typeOf(device.getProgram().program->buffers(static_cast<int>(buffer)));
  Expected<HostView> view = HostView::read(resources.getDevice(), resources.compute(),
                                           device.buffer(buffer), type.numBytes());
  if (!view)
    return view.error();
  read(view->data());
  return std::nullopt;
}

/// Writes all of a buffer.
static MaybeError writeBuffer(const DeviceExecutor &device, uint32_t buffer,
                              const std::function<void(std::byte *)> &write) {
  const DeviceResources &resources = device.getResources();
  TensorType type = typeOf(device.getProgram().program->buffers(static_cast<int>(buffer)));
  Expected<HostView> view =
      HostView::overwrite(resources.getDevice(), device.buffer(buffer), type.numBytes());
  if (!view)
    return view.error();
  write(view->data());
  return view->write(resources.compute());
}

/// The state with the name and the kind of the values that it starts with: master weights have
/// those of their parameter.
static plan::State asItStarts(const plan::Program &program, const plan::State &state) {
  plan::State start = state;
  if (const plan::State *parameter = masteredParameter(program, state)) {
    start.set_name(parameter->name());
    *start.mutable_init() = parameter->init();
  }
  return start;
}

MaybeError Session::initializeStates(uint64_t seed) {
  // Drawing numbers takes longer than copying them: of the devices with the same shard only one
  // draws, where the others can read its memory.
  auto drawerOf = [&](size_t position, const plan::State &state) {
    bool canRead = shared->resources[position]->getDevice().isHostMemory();
    return canRead ? firstHere(position, state) : position;
  };
  auto run = [&](const std::function<MaybeError(size_t, const plan::State &)> &work) {
    return runOnDevices([&](DeviceExecutor &device) -> MaybeError {
      for (const plan::State &state : device.getProgram().program->states())
        if (MaybeError error = work(positionOf(device.index()), state))
          return error;
      return std::nullopt;
    });
  };
  MaybeError error = run([&](size_t position, const plan::State &state) -> MaybeError {
    if (drawerOf(position, state) != position)
      return std::nullopt;
    const DeviceExecutor &device = *devices[position];
    return writeBuffer(device, state.buffer(), [&](std::byte *shard) {
      writeInitialValues(asItStarts(*device.getProgram().program, state),
                         regionOf(prepared->mesh, state, device.index()), seed, shard);
    });
  });
  if (error)
    return error;
  return run([&](size_t position, const plan::State &state) -> MaybeError {
    size_t drawer = drawerOf(position, state);
    size_t bytes = typeOf(devices[position]->getProgram().program->buffers(
                              static_cast<int>(state.buffer())))
                       .numBytes();
    if (drawer != position && bytes > 0)
      std::memcpy(devices[position]->buffer(state.buffer()),
                  devices[drawer]->buffer(state.buffer()), bytes);
    return std::nullopt;
  });
}

/// `value` has the type and, which only its maker can get wrong, as many bytes as that needs.
static MaybeError checkType(const char *what, const std::string &name, const HostTensor &value,
                            const TensorType &expected) {
  if (value.type != expected)
    return Error{
        fmt::format("{} \"{}\" is {}, found {}", what, name, expected.str(), value.type.str())};
  assert(value.bytes.size() == expected.numBytes() && "a tensor has the bytes of its type");
  return std::nullopt;
}

MaybeError Session::setState(const std::string &name, const HostTensor &value) {
  bool found = false;
  for (const plan::Program &program : plan().programs()) {
    const plan::State *state = findByName(program.states(), name);
    if (!state)
      continue;
    found = true;
    if (MaybeError error = checkType("state", name, value, fileTypeOf(*state)))
      return error;
  }
  if (!found)
    return Error{fmt::format("the plan has no state \"{}\"", name)};
  return runOnDevices([&](DeviceExecutor &device) -> MaybeError {
    const plan::State *state = findByName(device.getProgram().program->states(), name);
    if (!state)
      return std::nullopt;
    return writeBuffer(device, state->buffer(), [&](std::byte *shard) {
      copyToShard(regionOf(prepared->mesh, *state, device.index()), byteWidth(value.type.dtype),
                  value.bytes.data(), shard);
    });
  });
}

Expected<HostTensor> Session::getState(const std::string &name) const {
  if (shared->failure && !shared->statesAreWhole)
    return *shared->failure;
  for (const plan::Program &program : plan().programs())
    if (const plan::State *state = findByName(program.states(), name))
      return gather(program, *state, fileTypeOf(*state), "state");
  return Error{fmt::format("the plan has no state \"{}\"", name)};
}

/// Reads a binding of a program.
template <typename T>
Expected<HostTensor> Session::gather(const plan::Program &program, const T &binding,
                                     TensorType type, const char *what) const {
  HostTensor whole(std::move(type));
  int64_t missing = whole.type.numElements();
  for (size_t i = 0; i < devices.size(); ++i) {
    const DeviceExecutor &device = *devices[i];
    if (device.getProgram().program != &program || firstHere(i, binding) != i)
      continue;
    ShardRegion region = regionOf(prepared->mesh, binding, device.index());
    missing -= std::accumulate(region.size.begin(), region.size.end(), int64_t{1},
                               std::multiplies<>());
    if (MaybeError error =
            readBuffer(device, binding.buffer(), [&](const std::byte *shard) {
              copyFromShard(region, byteWidth(whole.type.dtype), shard, whole.bytes.data());
            }))
      return *error;
  }
  if (missing > 0)
    return Error{fmt::format("{} of the {} elements of {} \"{}\" are in other processes", missing,
                             whole.type.numElements(), what, binding.name())};
  return whole;
}

//===----------------------------------------------------------------------===//
// Shards
//===----------------------------------------------------------------------===//

std::vector<StateShard> Session::stateShards() const {
  // A state that several programs have is that of the first one.
  std::map<std::string, const plan::Program *> programOf;
  for (const plan::Program &program : plan().programs())
    for (const plan::State &state : program.states())
      programOf.try_emplace(state.name(), &program);
  std::vector<StateShard> shards;
  for (const std::unique_ptr<DeviceExecutor> &device : devices) {
    const plan::Program &program = *device->getProgram().program;
    for (const plan::State &state : program.states())
      shards.push_back({&state, device->index(), regionOf(prepared->mesh, state, device->index()),
                        programOf.at(state.name()) == &program &&
                            firstHolder(device->index(), state) == device->index()});
  }
  return shards;
}

MaybeError Session::readShards(std::span<const HostShard> shards) {
  if (shared->failure && !shared->statesAreWhole)
    return *shared->failure;
  auto read = [&](const DeviceExecutor &device) -> MaybeError {
    for (const HostShard &host : shards) {
      const plan::State &state = *host.shard.state;
      if (host.shard.device != device.index())
        continue;
      if (MaybeError error = readBuffer(device, state.buffer(), [&](const std::byte *from) {
            copyFromShard(host.shard.region, byteWidth(toDType(state.dtype())), from, host.box);
          }))
        return error;
    }
    return std::nullopt;
  };
  if (!shared->failure)
    return runOnDevices(read);
  // The devices do nothing more together, but what they hold can be read.
  for (const std::unique_ptr<DeviceExecutor> &device : devices)
    if (MaybeError error = read(*device))
      return error;
  return std::nullopt;
}

MaybeError Session::writeShards(std::span<const HostShard> shards) {
  return runOnDevices([&](DeviceExecutor &device) -> MaybeError {
    for (const HostShard &host : shards) {
      const plan::State &state = *host.shard.state;
      if (host.shard.device != device.index())
        continue;
      if (MaybeError error = writeBuffer(device, state.buffer(), [&](std::byte *to) {
            copyToShard(host.shard.region, byteWidth(toDType(state.dtype())), host.box, to);
          }))
        return error;
    }
    return std::nullopt;
  });
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

const plan::Input *Session::findInput(plan::Input::Role role) const {
  for (const plan::Program &program : plan().programs())
    for (const plan::Input &input : program.inputs())
      if (input.role() == role)
        return &input;
  return nullptr;
}

const plan::Output *Session::findOutput(const std::string &name) const {
  for (const plan::Program &program : plan().programs())
    if (const plan::Output *output = findByName(program.outputs(), name))
      return output;
  return nullptr;
}

static MaybeError checkIndices(const plan::Input &input, const HostTensor &value) {
  if (input.index_limit() == 0)
    return std::nullopt;
  const int32_t *values = value.as<int32_t>();
  for (int64_t i = 0; i < value.type.numElements(); ++i)
    if ((values[i] < 0 || values[i] >= input.index_limit()) &&
        !(input.has_ignored_index() && values[i] == input.ignored_index()))
      return Error{fmt::format("input \"{}\": element {} is {}; expected an index from 0 to {}",
                               input.name(), i, values[i], input.index_limit() - 1)};
  return std::nullopt;
}

MaybeError Session::checkBatch(const std::string &what, int64_t batch) const {
  auto count = static_cast<int64_t>(inputs.size());
  if (batch >= 0 && batch < count)
    return std::nullopt;
  return Error{fmt::format("{} is set for batch {}; a step has {} batch{}, the first is 0", what,
                           batch, count, count == 1 ? "" : "es")};
}

MaybeError Session::setInput(const std::string &name, HostTensor value, int64_t batch) {
  if (MaybeError error = checkBatch(fmt::format("input \"{}\"", name), batch))
    return error;
  bool found = false;
  for (const plan::Program &program : plan().programs()) {
    const plan::Input *input = findByName(program.inputs(), name);
    if (!input)
      continue;
    found = true;
    if (MaybeError error = checkType("input", name, value, typeOf(*input)))
      return error;
    if (MaybeError error = checkIndices(*input, value))
      return error;
  }
  if (!found)
    return Error{fmt::format("the plan has no input \"{}\"", name)};
  inputs[static_cast<size_t>(batch)].insert_or_assign(name, std::move(value));
  return std::nullopt;
}

/// Sets all inputs of the role to these elements.
MaybeError Session::setRole(plan::Input::Role role, std::initializer_list<double> values,
                            int64_t batch) {
  for (const plan::Input *input : distinctInputs(plan())) {
    if (input->role() != role)
      continue;
    HostTensor tensor(typeOf(*input));
    int64_t next = 0;
    for (double value : values)
      setElement(tensor, next++, value);
    if (MaybeError error = setInput(input->name(), std::move(tensor), batch))
      return error;
  }
  return std::nullopt;
}

MaybeError Session::setLossScale(double scale) { return setRole(plan::Input::LOSS_SCALE, {scale}); }

MaybeError Session::setRandomKey(std::array<uint32_t, 2> key, int64_t batch) {
  // Of a plan without random masks too.
  if (MaybeError error = checkBatch("the key of random masks", batch))
    return error;
  // The plan's words are signed; the bits are the same.
  return setRole(plan::Input::RANDOM_KEY,
                 {static_cast<double>(static_cast<int32_t>(key[0])),
                  static_cast<double>(static_cast<int32_t>(key[1]))},
                 batch);
}

MaybeError Session::loadInputs(DeviceExecutor &device, int64_t batch) const {
  const auto &own = inputs[static_cast<size_t>(batch)];
  const plan::Program &program = *device.getProgram().program;
  // Every step, because the plan may use the bytes for other things once an input is not needed.
  for (size_t i = 0; i < static_cast<size_t>(program.inputs_size()); ++i) {
    const plan::Input &input = program.inputs(static_cast<int>(i));
    auto found = own.find(input.name());
    const HostTensor &value = found != own.end() ? found->second : inputs.front().at(input.name());
    copyToShard(regionOf(prepared->mesh, input, device.index()), byteWidth(value.type.dtype),
                value.bytes.data(), device.inputPlace(i, batch));
    if (MaybeError error = device.enqueueInput(i, batch))
      return error;
  }
  return std::nullopt;
}

MaybeError Session::step(double learningRate, int64_t stepNumber) {
  if (MaybeError error = setRole(plan::Input::LEARNING_RATE, {learningRate}))
    return error;
  if (MaybeError error = setRole(plan::Input::BATCHES, {static_cast<double>(inputs.size())}))
    return error;
  if (MaybeError error = setRole(plan::Input::STEP, {static_cast<double>(stepNumber)}))
    return error;
  for (const plan::Input *input : distinctInputs(plan()))
    if (!inputs.front().count(input->name()))
      return Error{fmt::format("input \"{}\" has no value", input->name())};
  hasRun = true;
  shared->lastRun = this;
  MaybeError error = runOnDevices(
      [&](DeviceExecutor &device) {
        return device.runSchedule([&](int64_t batch) { return loadInputs(device, batch); });
      },
      stallDetector ? &stallDetector->begin() : nullptr);
  if (!error)
    addPipelineTime();
  return error;
}

Expected<HostTensor> Session::getOutput(const std::string &name) const {
  for (const plan::Program &program : plan().programs())
    if (const plan::Output *output = findByName(program.outputs(), name)) {
      if (!hasRun)
        return Error{fmt::format("output \"{}\" has no value before the first step", name)};
      if (shared->failure)
        return *shared->failure;
      if (const Session *last = shared->lastRun; last != this)
        return Error{
            fmt::format("output \"{}\" is of a step before the last one, which was of "
                        "{} and uses the same memory; read it before that",
                        name,
                        last->plan().entry().empty()
                            ? "the plan's own entry point"
                            : fmt::format("the entry point \"{}\"", last->plan().entry()))};
      return gather(program, *output, typeOf(*output), "output");
    }
  return Error{fmt::format("the plan has no output \"{}\"", name)};
}

} // namespace dtc::runtime
