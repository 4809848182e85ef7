//===- Session.cpp - A plan at work ---------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/Session.h"

#include "runtime/communicators/local/LocalCommunicator.h"
#include "runtime/executor/InitialValues.h"
#include "runtime/executor/ShardRegion.h"
#include "runtime/plan/PlanTypes.h"
#include "runtime/plan/PlanValidator.h"
#include "runtime/support/CheckedMath.h"
#include "runtime/support/Format.h"

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
                 std::shared_ptr<const PreparedProgram> prepared)
    : backend(std::move(backend)), prepared(std::move(prepared)) {
  const plan::Program &program = this->prepared->program();
  inputs.resize(static_cast<size_t>(program.inputs_size()));
  inputIsSet.resize(inputs.size(), false);
}

Session::~Session() = default;

Expected<std::unique_ptr<Session>> Session::create(std::shared_ptr<const plan::Plan> plan,
                                                   std::shared_ptr<const Backend> backend,
                                                   SessionOptions options) {
  if (MaybeError error = validatePlan(*plan))
    return *error;
  // Before anything is prepared: what is prepared for a collective grows with its members.
  if (int64_t count = meshOf(*plan).numDevices(); count > maxLocalDevices)
    return Error{fmt::format("the plan is for {} devices; at most {} run in one process", count,
                             maxLocalDevices)};
  options.threadsPerDevice = std::max(options.threadsPerDevice, 1);
  Expected<std::shared_ptr<const PreparedProgram>> prepared =
      PreparedProgram::create(std::move(plan), *backend, options.threadsPerDevice);
  if (!prepared)
    return prepared.error();
  std::unique_ptr<Session> session(new Session(std::move(backend), std::move(*prepared)));
  if (MaybeError error = session->allocate(options))
    return *error;
  return session;
}

MaybeError Session::allocate(const SessionOptions &options) {
  int64_t count = prepared->mesh.numDevices();
  uint64_t arena = prepared->program().arena_bytes();
  uint64_t scratch = prepared->workspaceBytes;
  uint64_t available = physicalMemoryBytes();
  // At most 2^10 devices with 2^46 bytes each; a scratch beyond all memory is refused on its own.
  uint64_t needed = static_cast<uint64_t>(count) * (arena + std::min(scratch, maxArenaBytes));
  if (needed > available)
    return Error{fmt::format("the plan needs {} for {} devices ({} and {} of scratch memory each), "
                             "but this machine has {}; compile for more or smaller shards, or a "
                             "smaller batch",
                             formatBytes(needed), count, formatBytes(arena), formatBytes(scratch),
                             formatBytes(available))};
  world = std::make_shared<LocalWorld>(prepared->mesh);
  for (int64_t i = 0; i < count; ++i) {
    auto device = Device::create(prepared, i, std::make_unique<LocalCommunicator>(world, i),
                                 options.threadsPerDevice, options.profile);
    if (!device)
      return device.error().inContext(fmt::format("device {}", i));
    devices.push_back(std::move(*device));
  }
  threads = std::make_unique<DeviceThreads>(devices.size(), [this] { world->abort(); });
  return std::nullopt;
}

MaybeError Session::runOnDevices(const std::function<MaybeError(Device &)> &work) {
  if (failure)
    return failure;
  failure = threads->run([&](size_t device) { return work(*devices[device]); });
  // The failing device has aborted the network, so this ends. Until then one device's collectives
  // may still use the memory of the others.
  if (failure)
    for (const std::unique_ptr<Device> &device : devices)
      device->drain();
  return failure;
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

template <typename T>
static ShardRegion regionOf(const Mesh &mesh, const T &binding, int64_t device) {
  return ShardRegion::of(mesh, binding.sharding(), toVector(binding.shape()), device);
}

/// The axes that split a state, an input or an output.
template <typename T> static std::vector<std::string> shardingAxes(const T &binding) {
  std::vector<std::string> axes;
  for (const plan::DimSharding &dim : binding.sharding().dims())
    axes.insert(axes.end(), dim.axes().begin(), dim.axes().end());
  return axes;
}

MaybeError Session::initializeStates(uint64_t seed) {
  const Mesh &mesh = prepared->mesh;
  const auto &states = prepared->program().states();
  // Drawing numbers takes longer than copying them, so that only one device of those with the same
  // shard draws.
  MaybeError error = runOnDevices([&](Device &device) -> MaybeError {
    for (const plan::State &state : states)
      if (mesh.firstReplica(device.index(), shardingAxes(state)) == device.index())
        writeInitialValues(state, regionOf(mesh, state, device.index()), seed,
                           device.buffer(state.buffer()));
    return std::nullopt;
  });
  if (error)
    return error;
  return runOnDevices([&](Device &device) -> MaybeError {
    for (const plan::State &state : states) {
      int64_t first = mesh.firstReplica(device.index(), shardingAxes(state));
      size_t bytes =
          typeOf(prepared->program().buffers(static_cast<int>(state.buffer()))).numBytes();
      if (first != device.index() && bytes > 0)
        std::memcpy(device.buffer(state.buffer()),
                    devices[static_cast<size_t>(first)]->buffer(state.buffer()), bytes);
    }
    return std::nullopt;
  });
}

const plan::State *Session::findState(const std::string &name) const {
  const auto &states = prepared->program().states();
  auto it = std::find_if(states.begin(), states.end(),
                         [&](const plan::State &state) { return state.name() == name; });
  return it == states.end() ? nullptr : &*it;
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
  const plan::State *state = findState(name);
  if (!state)
    return Error{fmt::format("the plan has no state \"{}\"", name)};
  if (MaybeError error = checkType("state", name, value, fileTypeOf(*state)))
    return error;
  return runOnDevices([&](Device &device) -> MaybeError {
    copyToShard(regionOf(prepared->mesh, *state, device.index()), byteWidth(value.type.dtype),
                value.bytes.data(), device.buffer(state->buffer()));
    return std::nullopt;
  });
}

Expected<HostTensor> Session::getState(const std::string &name) const {
  const plan::State *state = findState(name);
  if (!state)
    return Error{fmt::format("the plan has no state \"{}\"", name)};
  return gather(*state, fileTypeOf(*state));
}

template <typename T>
Expected<HostTensor> Session::gather(const T &binding, TensorType type) const {
  if (failure)
    return *failure;
  std::vector<std::string> axes = shardingAxes(binding);
  HostTensor whole(std::move(type));
  for (const std::unique_ptr<Device> &device : devices)
    if (prepared->mesh.firstReplica(device->index(), axes) == device->index())
      copyFromShard(regionOf(prepared->mesh, binding, device->index()), byteWidth(whole.type.dtype),
                    device->buffer(binding.buffer()), whole.bytes.data());
  return whole;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

const plan::Input *Session::findInput(plan::Input::Role role) const {
  for (const plan::Input &input : prepared->program().inputs())
    if (input.role() == role)
      return &input;
  return nullptr;
}

const plan::Output *Session::findOutput(const std::string &name) const {
  for (const plan::Output &output : prepared->program().outputs())
    if (output.name() == name)
      return &output;
  return nullptr;
}

static MaybeError checkIndices(const plan::Input &input, const HostTensor &value) {
  if (input.index_limit() == 0)
    return std::nullopt;
  const int32_t *values = value.as<int32_t>();
  for (int64_t i = 0; i < value.type.numElements(); ++i)
    if (values[i] < 0 || values[i] >= input.index_limit())
      return Error{fmt::format("input \"{}\": element {} is {}; expected an index from 0 to {}",
                               input.name(), i, values[i], input.index_limit() - 1)};
  return std::nullopt;
}

MaybeError Session::setInput(const std::string &name, HostTensor value) {
  const plan::Program &program = prepared->program();
  for (int i = 0; i < program.inputs_size(); ++i) {
    const plan::Input &input = program.inputs(i);
    if (input.name() != name)
      continue;
    if (MaybeError error = checkType("input", name, value, typeOf(input)))
      return error;
    if (MaybeError error = checkIndices(input, value))
      return error;
    inputs[static_cast<size_t>(i)] = std::move(value);
    inputIsSet[static_cast<size_t>(i)] = true;
    return std::nullopt;
  }
  return Error{fmt::format("the plan has no input \"{}\"", name)};
}

MaybeError Session::setScalar(plan::Input::Role role, double value) {
  const plan::Input *input = findInput(role);
  if (!input)
    return std::nullopt;
  HostTensor scalar(typeOf(*input));
  if (scalar.type.dtype == DType::F32)
    *scalar.as<float>() = static_cast<float>(value);
  else
    *scalar.as<double>() = value;
  return setInput(input->name(), std::move(scalar));
}

void Session::loadInputs(const Device &device) const {
  const plan::Program &program = prepared->program();
  // Every step, because the plan may use the bytes for other things once an input is not needed.
  for (int i = 0; i < program.inputs_size(); ++i) {
    const plan::Input &input = program.inputs(i);
    const HostTensor &value = inputs[static_cast<size_t>(i)];
    copyToShard(regionOf(prepared->mesh, input, device.index()), byteWidth(value.type.dtype),
                value.bytes.data(), device.buffer(input.buffer()));
  }
}

MaybeError Session::step(double learningRate, int64_t stepNumber) {
  if (MaybeError error = setScalar(plan::Input::LEARNING_RATE, learningRate))
    return error;
  if (MaybeError error = setScalar(plan::Input::STEP, static_cast<double>(stepNumber)))
    return error;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputIsSet[i])
      return Error{fmt::format("input \"{}\" has no value",
                               prepared->program().inputs(static_cast<int>(i)).name())};
  hasRun = true;
  return runOnDevices([&](Device &device) {
    loadInputs(device);
    return device.runSchedule();
  });
}

Expected<HostTensor> Session::getOutput(const std::string &name) const {
  const plan::Output *output = findOutput(name);
  if (!output)
    return Error{fmt::format("the plan has no output \"{}\"", name)};
  if (!hasRun)
    return Error{fmt::format("output \"{}\" has no value before the first step", name)};
  return gather(*output, typeOf(*output));
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

uint64_t Session::peakBytes() const { return prepared->program().arena_bytes(); }

CommunicatorBytes Session::communicatorBytes() const {
  CommunicatorBytes total;
  for (const std::unique_ptr<Device> &device : devices)
    total += device->getCommunicator().sent();
  return total;
}

std::vector<ProfileEntry> Session::profile() const {
  std::map<std::string, ProfileEntry> byName;
  for (const std::unique_ptr<Device> &device : devices)
    for (size_t i = 0; i < device->times().size(); ++i) {
      const InstructionTime &time = device->times()[i];
      const plan::Instruction &instruction = prepared->source(i);
      if (instruction.has_wait())
        continue;
      std::string kind = instruction.has_kernel()
                             ? instruction.kernel().kernel()
                             : dtc::runtime::name(instruction.collective().kind());
      ProfileEntry &entry = byName[kind];
      entry.name = kind;
      entry.calls += time.calls;
      entry.seconds += time.seconds;
      entry.flops += static_cast<double>(time.calls) * instruction.flops();
    }
  std::vector<ProfileEntry> entries;
  for (auto &[name, entry] : byName)
    entries.push_back(std::move(entry));
  std::stable_sort(
      entries.begin(), entries.end(),
      [](const ProfileEntry &a, const ProfileEntry &b) { return a.seconds > b.seconds; });
  return entries;
}

CollectiveTime Session::collectiveTime() const {
  CollectiveTime total;
  for (const std::unique_ptr<Device> &device : devices)
    for (size_t i = 0; i < device->times().size(); ++i)
      if (std::holds_alternative<PreparedCollective>(prepared->instructions[i])) {
        total.seconds += device->times()[i].seconds;
        total.exposedSeconds += device->times()[i].exposedSeconds;
      }
  return total;
}

double CollectiveTime::hiddenShare() const {
  // Waking up takes time as well: the exposed time may be the longer one.
  return seconds > exposedSeconds ? 1 - exposedSeconds / seconds : 0;
}

} // namespace dtc::runtime
