//===- InitializeStates.cpp - The states that a session starts with -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanTypes.h"
#include "runtime/executor/Bindings.h"
#include "runtime/executor/DeviceBuffers.h"
#include "runtime/executor/InitialValues.h"
#include "runtime/executor/Session.h"

#include <cstring>
#include <functional>
#include <map>
#include <set>

namespace dtc::runtime {

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

namespace {

/// Gives states of one device their initial values.
class StateInitializer {
public:
  /// `draws`: whether initialize() is called with a state.
  StateInitializer(const DeviceExecutor &device, const Mesh &mesh, uint64_t seed, int threads,
                   const std::function<bool(const plan::State &)> &draws)
      : device(device), mesh(mesh), seed(seed), threads(threads) {
    const plan::Program &program = *device.getProgram().program;
    for (const plan::State &state : program.states())
      if (const plan::State *parameter = masteredParameter(program, state))
        if (draws(state) && draws(*parameter) && canRound(state, *parameter)) {
          roundedTo[&state] = parameter;
          isRounded.insert(parameter);
        }
  }

  MaybeError initialize(const plan::State &state) {
    if (isRounded.contains(&state))
      return std::nullopt; // with its master weights
    plan::State start = asItStarts(*device.getProgram().program, state);
    if (startsAsZeros(start))
      return clearBuffer(device, state.buffer());
    ShardRegion region = regionOn(state);
    auto found = roundedTo.find(&state);
    MaybeError ofRounded;
    auto write = [&](std::byte *shard) {
      writeInitialValues(start, region, seed, shard, threads);
      if (found != roundedTo.end())
        ofRounded = writeRounded(shard, *found->second);
    };
    MaybeError error = writeBuffer(device, state.buffer(), write, &staging);
    return error ? error : ofRounded;
  }

private:
  ShardRegion regionOn(const plan::State &state) const {
    return regionOf(mesh, state, device.index());
  }

  /// Whether the shard of a parameter is that of its master weights in 16 bits. Rounding takes much
  /// less time than drawing the same numbers again.
  bool canRound(const plan::State &master, const plan::State &parameter) const {
    ShardRegion one = regionOn(master), other = regionOn(parameter);
    return toDType(master.dtype()) == DType::F32 && byteWidth(toDType(parameter.dtype())) == 2 &&
           !startsAsZeros(parameter) && one == other;
  }

  MaybeError writeRounded(const std::byte *master, const plan::State &parameter) {
    DType dtype = toDType(parameter.dtype());
    int64_t count = TensorType{dtype, regionOn(parameter).local}.numElements();
    return writeBuffer(
        device, parameter.buffer(),
        [&](std::byte *shard) {
          roundValues(reinterpret_cast<const float *>(master), count, dtype, shard);
        },
        &roundedStaging);
  }

  const DeviceExecutor &device;
  const Mesh &mesh;
  uint64_t seed;
  int threads;
  std::map<const plan::State *, const plan::State *> roundedTo; // parameters by master weights
  std::set<const plan::State *> isRounded;
  std::shared_ptr<DeviceMemory> staging, roundedStaging;
};

} // namespace

MaybeError Session::initializeStates(uint64_t seed) {
  shared->setStates.clear();
  return initializeOtherStates(seed);
}

MaybeError Session::initializeOtherStates(uint64_t seed) {
  if (MaybeError error = checkAtRest("states are initialized"))
    return error;
  // Drawing numbers takes longer than copying them: only one of the devices with the same shard
  // draws, where the others can read its memory.
  auto drawerOf = [&](size_t position, const plan::State &state) {
    bool canRead = shared->resources[position]->getDevice().isHostMemory();
    return canRead ? firstHere(position, state.sharding()) : position;
  };
  auto isSet = [&](const plan::State &state) { return shared->setStates.contains(state.name()); };
  MaybeError error = runOnDevices([&](DeviceExecutor &device) -> MaybeError {
    size_t position = positionOf(device.index());
    auto draws = [&](const plan::State &state) {
      return !isSet(state) && drawerOf(position, state) == position;
    };
    StateInitializer initializer(device, prepared->mesh, seed, threadsPerDevice, draws);
    for (const plan::State &state : device.getProgram().program->states())
      if (draws(state))
        if (MaybeError error = initializer.initialize(state))
          return error;
    return std::nullopt;
  });
  if (error)
    return error;
  return runOnDevices([&](DeviceExecutor &device) -> MaybeError {
    size_t position = positionOf(device.index());
    const plan::Program &program = *device.getProgram().program;
    for (const plan::State &state : program.states()) {
      size_t drawer = drawerOf(position, state);
      size_t bytes = typeOf(program.buffers(static_cast<int>(state.buffer()))).numBytes();
      if (drawer != position && !isSet(state) && bytes > 0)
        std::memcpy(device.buffer(state.buffer()), devices[drawer]->buffer(state.buffer()), bytes);
    }
    return std::nullopt;
  });
}

} // namespace dtc::runtime
