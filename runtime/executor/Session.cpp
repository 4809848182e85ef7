//===- Session.cpp - A plan at work ---------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/Session.h"

#include "plan/PlanTypes.h"
#include "plan/PlanValidator.h"
#include "runtime/executor/InitialValues.h"
#include "runtime/executor/ShardRegion.h"
#include "runtime/executor/StallDetector.h"
#include "runtime/fabrics/local/LocalCommunicator.h"
#include "runtime/fabrics/local/LocalTransfers.h"
#include "support/CheckedMath.h"
#include "support/Format.h"
#include "support/StartThread.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <fmt/format.h>
#include <set>

namespace dtc::runtime {

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

Session::Session(std::shared_ptr<const Backend> backend,
                 std::shared_ptr<const PreparedPlan> prepared)
    : backend(std::move(backend)), prepared(std::move(prepared)),
      shared(std::make_shared<Shared>()) {}

Session::~Session() = default;

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
  if (int64_t count = meshOf(*plan).numDevices(); count > maxLocalDevices)
    return Error{fmt::format("the plan is for {} devices; at most {} run in one process", count,
                             maxLocalDevices)};
  options.threadsPerDevice = std::max(options.threadsPerDevice, 1);
  Expected<std::shared_ptr<const PreparedPlan>> prepared =
      PreparedPlan::create(std::move(plan), *backend, options.threadsPerDevice);
  if (!prepared)
    return prepared.error();
  return create(std::move(*prepared), std::move(backend), std::move(options));
}

Expected<std::unique_ptr<Session>> Session::create(std::shared_ptr<const PreparedPlan> prepared,
                                                   std::shared_ptr<const Backend> backend,
                                                   SessionOptions options) {
  options.threadsPerDevice = std::max(options.threadsPerDevice, 1);
  std::unique_ptr<Session> session(new Session(std::move(backend), std::move(prepared)));
  if (MaybeError error = session->checkMemory(options))
    return *error;
  if (MaybeError error = session->allocate())
    return *error;
  try {
    if (MaybeError error = session->open(options))
      return *error;
  } catch (const ThreadStartError &error) {
    return Error{error.what()};
  }
  return session;
}

MaybeError Session::checkMemory(const SessionOptions &options) const {
  auto count = static_cast<uint64_t>(numDevices());
  auto [available, holder] = memoryLimit();
  // At most 2^10 devices with three times 2^46 bytes each; what is more is beyond all memory too.
  uint64_t needed = 0, traces = 0;
  for (size_t i = 0; i < prepared->programs.size(); ++i) {
    uint64_t devices = count / prepared->programs.size();
    needed += devices * (prepared->arenaBytes(i) +
                         std::min<uint64_t>(prepared->workspaceBytes(i), maxArenaBytes));
    if (options.traceSteps > 0)
      traces += devices * std::min(DeviceTrace::bytesFor(prepared->programs[i], options.traceSteps,
                                                         options.batches),
                                   maxArenaBytes);
  }
  if (needed <= available && needed + traces > available)
    return Error{fmt::format("the trace of {} steps needs {} beside the {} of the plan, but {} "
                             "has {}; trace fewer steps",
                             options.traceSteps, formatBytes(traces), formatBytes(needed), holder,
                             formatBytes(available))};
  if (needed <= available)
    return std::nullopt;
  return Error{fmt::format(
      "the plan needs {} for {} devices ({}{} and {} of scratch memory each), "
      "but {} has {}; compile for more or smaller shards, or a smaller batch",
      formatBytes(needed), count, prepared->programs.size() > 1 ? "at most " : "",
      formatBytes(peakBytes()), formatBytes(workspaceBytes()), holder, formatBytes(available))};
}

/// By device.
Expected<std::vector<std::vector<PreparedInjection>>>
Session::prepareInjections(const SessionOptions &options) const {
  std::vector<std::vector<PreparedInjection>> byDevice(static_cast<size_t>(numDevices()));
  for (const Injection &injection : options.injections) {
    Expected<PreparedInjection> place = prepareInjection(*prepared, injection);
    if (!place)
      return place.error().inContext("what is to be injected");
    byDevice[static_cast<size_t>(injection.device)].push_back(*place);
  }
  return byDevice;
}

MaybeError Session::allocate() {
  for (int64_t i = 0; i < numDevices(); ++i) {
    auto program = static_cast<size_t>(prepared->mesh.programOf(i));
    auto allocated =
        ProgramMemory::allocate(prepared->arenaBytes(program), prepared->workspaceBytes(program));
    if (!allocated)
      return allocated.error().inContext(fmt::format("device {}", i));
    memory.push_back(std::move(*allocated));
  }
  return std::nullopt;
}

/// Opens the devices of this entry point and of all others.
MaybeError Session::open(const SessionOptions &options) {
  Expected<std::vector<std::vector<PreparedInjection>>> injections = prepareInjections(options);
  if (!injections)
    return injections.error();
  world = std::make_shared<LocalWorld>(prepared->mesh);
  inputs.resize(static_cast<size_t>(options.batches));
  DeviceOptions deviceOptions{options.profile, options.traceSteps, options.batches, {}};
  for (int64_t i = 0; i < numDevices(); ++i) {
    deviceOptions.injections = (*injections)[static_cast<size_t>(i)];
    auto device = DeviceExecutor::create(prepared, i, memory[static_cast<size_t>(i)],
                                         std::make_unique<LocalCommunicator>(world, i),
                                         std::make_unique<LocalTransfers>(world, i), deviceOptions);
    if (!device)
      return device.error().inContext(fmt::format("device {}", i));
    devices.push_back(std::move(*device));
  }
  if (options.stallTimeout > 0)
    stallDetector =
        std::make_unique<StallDetector>(*prepared, devices, options.stallTimeout, options.onHang);
  threads = std::make_unique<DeviceThreads>(devices.size(), [this] { world->abort(); });
  if (prepared->backend)
    backend = prepared->backend;
  if (MaybeError error =
          runOnDevices([&](DeviceExecutor &device) { return device.openQueue(*backend); }))
    return error;
  SessionOptions others = options;
  others.traceSteps = 0;
  others.batches = 1;
  others.injections.clear();
  for (const std::shared_ptr<const PreparedPlan> &companion : prepared->companions) {
    std::unique_ptr<Session> &added = companions.emplace_back(new Session(backend, companion));
    added->memory = memory;
    added->shared = shared;
    if (MaybeError error = added->open(others))
      return error->inContext(fmt::format("entry point \"{}\"", companion->plan->entry()));
  }
  return std::nullopt;
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
  failure = threads->run([&](size_t device) { return work(*devices[device]); }, watch);
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
template <typename T>
int64_t Session::firstHolder(const DeviceExecutor &device, const T &binding) const {
  std::vector<std::string> axes;
  for (const plan::DimSharding &dim : binding.sharding().dims())
    axes.insert(axes.end(), dim.axes().begin(), dim.axes().end());
  if (const MeshAxis *pipelineAxis = prepared->mesh.pipelineAxis())
    axes.push_back(pipelineAxis->name);
  return prepared->mesh.firstReplica(device.index(), axes);
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
  // Drawing numbers takes longer than copying them, so that only one device of those with the same
  // shard draws.
  MaybeError error = runOnDevices([&](DeviceExecutor &device) -> MaybeError {
    const plan::Program &program = *device.getProgram().program;
    for (const plan::State &state : program.states())
      if (firstHolder(device, state) == device.index())
        writeInitialValues(asItStarts(program, state),
                           regionOf(prepared->mesh, state, device.index()), seed,
                           device.buffer(state.buffer()));
    return std::nullopt;
  });
  if (error)
    return error;
  return runOnDevices([&](DeviceExecutor &device) -> MaybeError {
    const plan::Program &program = *device.getProgram().program;
    for (const plan::State &state : program.states()) {
      int64_t first = firstHolder(device, state);
      size_t bytes = typeOf(program.buffers(static_cast<int>(state.buffer()))).numBytes();
      if (first != device.index() && bytes > 0)
        std::memcpy(device.buffer(state.buffer()),
                    devices[static_cast<size_t>(first)]->buffer(state.buffer()), bytes);
    }
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
    if (const plan::State *shard = findByName(device.getProgram().program->states(), name))
      copyToShard(regionOf(prepared->mesh, *shard, device.index()), byteWidth(value.type.dtype),
                  value.bytes.data(), device.buffer(shard->buffer()));
    return std::nullopt;
  });
}

Expected<HostTensor> Session::getState(const std::string &name) const {
  if (shared->failure && !shared->statesAreWhole)
    return *shared->failure;
  for (const plan::Program &program : plan().programs())
    if (const plan::State *state = findByName(program.states(), name))
      return gather(program, *state, fileTypeOf(*state));
  return Error{fmt::format("the plan has no state \"{}\"", name)};
}

/// Reads a binding of a program, the devices of which hold all of it.
template <typename T>
Expected<HostTensor> Session::gather(const plan::Program &program, const T &binding,
                                     TensorType type) const {
  HostTensor whole(std::move(type));
  for (const std::unique_ptr<DeviceExecutor> &device : devices)
    if (device->getProgram().program == &program &&
        firstHolder(*device, binding) == device->index())
      copyFromShard(regionOf(prepared->mesh, binding, device->index()), byteWidth(whole.type.dtype),
                    device->buffer(binding.buffer()), whole.bytes.data());
  return whole;
}

std::vector<StateShard> Session::stateShards() const {
  // A state that several programs have is that of the first one.
  std::map<std::string, const plan::Program *> programOf;
  for (const plan::Program &program : plan().programs())
    for (const plan::State &state : program.states())
      programOf.try_emplace(state.name(), &program);
  std::vector<StateShard> shards;
  for (const std::unique_ptr<Device> &device : devices) {
    const plan::Program &program = *device->getProgram().program;
    for (const plan::State &state : program.states())
      shards.push_back({&state, device->index(), regionOf(prepared->mesh, state, device->index()),
                        programOf.at(state.name()) == &program &&
                            firstHolder(*device, state) == device->index()});
  }
  return shards;
}

MaybeError Session::readShards(std::span<const HostShard> shards) {
  if (shared->failure && !shared->statesAreWhole)
    return *shared->failure;
  auto read = [&](const Device &device) {
    for (const HostShard &host : shards)
      if (host.shard.device == device.index())
        copyFromShard(host.shard.region, byteWidth(toDType(host.shard.state->dtype())),
                      device.buffer(host.shard.state->buffer()), host.box);
    return MaybeError();
  };
  if (!shared->failure)
    return runOnDevices(read);
  // The devices do nothing more together, but what they hold can be read.
  for (const std::unique_ptr<Device> &device : devices)
    if (MaybeError error = read(*device))
      return error;
  return std::nullopt;
}

MaybeError Session::writeShards(std::span<const HostShard> shards) {
  return runOnDevices([&](Device &device) -> MaybeError {
    for (const HostShard &host : shards)
      if (host.shard.device == device.index())
        copyToShard(host.shard.region, byteWidth(toDType(host.shard.state->dtype())), host.box,
                    device.buffer(host.shard.state->buffer()));
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

void Session::loadInputs(const DeviceExecutor &device, int64_t batch) const {
  const auto &own = inputs[static_cast<size_t>(batch)];
  // Every step, because the plan may use the bytes for other things once an input is not needed.
  for (const plan::Input &input : device.getProgram().program->inputs()) {
    auto found = own.find(input.name());
    const HostTensor &value = found != own.end() ? found->second : inputs.front().at(input.name());
    copyToShard(regionOf(prepared->mesh, input, device.index()), byteWidth(value.type.dtype),
                value.bytes.data(), device.buffer(input.buffer()));
  }
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
        return device.runSchedule([&](int64_t batch) { loadInputs(device, batch); });
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
      return gather(program, *output, typeOf(*output));
    }
  return Error{fmt::format("the plan has no output \"{}\"", name)};
}

} // namespace dtc::runtime
