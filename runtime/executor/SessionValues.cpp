//===- SessionValues.cpp - States and outputs of a session ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/Session.h"

#include "plan/PlanTypes.h"
#include "plan/Replicas.h"
#include "runtime/executor/Bindings.h"
#include "runtime/executor/DeviceBuffers.h"
#include "runtime/executor/ShardRegion.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <set>

namespace dtc::runtime {

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

/// The first of the devices with the same program that hold the same shard of a state or an output
/// as `device`, which has it.
int64_t Session::firstHolder(int64_t device, const plan::Sharding &sharding) const {
  std::vector<std::string> axes;
  for (const plan::DimSharding &dim : sharding.dims())
    axes.insert(axes.end(), dim.axes().begin(), dim.axes().end());
  if (const MeshAxis *pipelineAxis = prepared->mesh.pipelineAxis())
    axes.push_back(pipelineAxis->name);
  return prepared->mesh.firstReplica(device, axes);
}

/// The position of the first of those in this process.
size_t Session::firstHere(size_t position, const plan::Sharding &sharding) const {
  std::span<const int64_t> held = fabric().devices();
  int64_t first = firstHolder(held[position], sharding);
  if (std::binary_search(held.begin(), held.end(), first))
    return positionOf(first);
  size_t found = 0;
  while (firstHolder(held[found], sharding) != first)
    ++found;
  return found;
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
  if (MaybeError error = checkAtRest(fmt::format("state \"{}\" is set", name)))
    return error;
  shared->setStates.insert(name);
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
  if (shared->failure && !shared->statesAreWhole && !shared->stepping)
    return *shared->failure;
  std::vector<Holder<plan::State>> holders;
  for (int program = 0; program < plan().programs_size(); ++program)
    if (const plan::State *state = findByName(plan().programs(program).states(), name))
      holders.push_back({program, state});
  if (holders.empty())
    return Error{fmt::format("the plan has no state \"{}\"", name)};
  return gather(holders, fileTypeOf(*holders.front().binding), "state", shared->stepping == this);
}

/// The devices of a process that have the program and stand for all that hold the same shard in
/// that process; for process -1, in all processes.
template <typename T>
std::vector<int64_t> Session::standIns(const Holder<T> &holder, int64_t process) const {
  std::set<int64_t> found;
  std::vector<int64_t> devices;
  for (int64_t device = 0; device < numDevices(); ++device)
    if (prepared->mesh.programOf(device) == holder.program &&
        (process < 0 || fabric().processOf(device) == process) &&
        found.insert(firstHolder(device, holder.binding->sharding())).second)
      devices.push_back(device);
  return devices;
}

/// The first program with the binding whose shards are all in this process; null if some process
/// has no such program.
template <typename T>
const Session::Holder<T> *Session::heldEverywhere(const std::vector<Holder<T>> &holders) const {
  const Holder<T> *own = nullptr;
  for (int64_t process = 0; process < fabric().numProcesses(); ++process) {
    auto whole = std::ranges::find_if(holders, [&](const Holder<T> &holder) {
      return standIns(holder, process).size() == standIns(holder, -1).size();
    });
    if (whole == holders.end())
      return nullptr;
    if (process == fabric().process())
      own = &*whole;
  }
  return own;
}

/// Reads a tensor that programs have, each the same one. All processes get it. `readsKept`: as it
/// was at the end of the last step that was finished, if that is kept.
template <typename T>
Expected<HostTensor> Session::gather(const std::vector<Holder<T>> &holders, TensorType type,
                                     const char *what, bool readsKept) const {
  HostTensor whole(std::move(type));
  size_t width = byteWidth(whole.type.dtype);
  const Holder<T> *local = heldEverywhere(holders);
  const Holder<T> &holder = local ? *local : holders.front();
  auto regionOn = [&](int64_t device) { return regionOf(prepared->mesh, *holder.binding, device); };
  auto read = [&](int64_t device, const ShardRegion &region, std::byte *to) -> MaybeError {
    const DeviceExecutor &holding = this->device(device);
    uint32_t buffer = holder.binding->buffer();
    auto copy = [&](const std::byte *shard) { copyFromShard(region, width, shard, to); };
    std::string name = fmt::format("{} \"{}\"", what, holder.binding->name());
    if (const std::byte *kept = readsKept ? holding.lastResult(buffer) : nullptr) {
      copy(kept);
      return std::nullopt;
    }
    if (MaybeError error = checkAtRest(name + " is read"))
      return error;
    MaybeError error = readBuffer(holding, buffer, copy);
    return error ? error->inContext(name) : error;
  };
  if (local) {
    for (int64_t device : standIns(holder, fabric().process()))
      if (MaybeError error = read(device, regionOn(device), whole.bytes.data()))
        return *error;
    return whole;
  }
  // Each process in turn gives the others the shards for which its devices stand.
  std::vector<int64_t> all = standIns(holder, -1);
  for (int64_t process = 0; process < fabric().numProcesses(); ++process) {
    std::vector<std::pair<ShardRegion, size_t>> boxes; // dense ones of a message, and where
    std::string message;
    MaybeError failure;
    for (int64_t device : all) {
      if (fabric().processOf(device) != process)
        continue;
      ShardRegion region = regionOn(device), box = region;
      box.offset.assign(box.offset.size(), 0);
      box.global = box.size;
      boxes.emplace_back(region, message.size());
      message.resize(message.size() + TensorType{whole.type.dtype, box.size}.numBytes());
      if (process == fabric().process() && !failure)
        failure =
            read(device, box, reinterpret_cast<std::byte *>(message.data()) + boxes.back().second);
    }
    if (failure)
      return *failure;
    if (boxes.empty())
      continue;
    Expected<std::string> given = fabric().broadcast(process, std::move(message));
    if (!given)
      return given.error();
    for (auto &[region, at] : boxes) {
      region.local = region.size; // without the padding
      copyFromShard(region, width, reinterpret_cast<const std::byte *>(given->data()) + at,
                    whole.bytes.data());
    }
  }
  return whole;
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

Expected<HostTensor> Session::getOutput(const std::string &name) const {
  std::vector<Holder<plan::Output>> holders;
  for (int program = 0; program < plan().programs_size(); ++program)
    if (const plan::Output *output = findByName(plan().programs(program).outputs(), name))
      holders.push_back({program, output});
  if (holders.empty())
    return Error{fmt::format("the plan has no output \"{}\"", name)};
  if (!hasRun)
    return Error{fmt::format("output \"{}\" has no value before the first step", name)};
  if (shared->failure && !shared->stepping)
    return *shared->failure;
  if (const Session *last = shared->lastRun; last != this)
    return Error{fmt::format("output \"{}\" is of a step before the last one, which was of "
                             "{} and uses the same memory; read it before that",
                             name,
                             last->plan().entry().empty()
                                 ? "the plan's own entry point"
                                 : fmt::format("the entry point \"{}\"", last->plan().entry()))};
  return gather(holders, typeOf(*holders.front().binding), "output", /*readsKept=*/true);
}

//===----------------------------------------------------------------------===//
// Shards
//===----------------------------------------------------------------------===//

/// The shard of a state with a copy for each replica: the first dimension is that of the replicas.
static ShardRegion ofReplica(ShardRegion region, int64_t replica, int64_t replicas) {
  region.global.insert(region.global.begin(), replicas);
  region.offset.insert(region.offset.begin(), replica);
  region.size.insert(region.size.begin(), 1);
  region.local.insert(region.local.begin(), 1);
  return region;
}

std::vector<StateShard> Session::stateShards() const {
  std::optional<Replicas> replicas = replicasOf(plan());
  const Mesh &mesh = prepared->mesh;
  // A state that several programs have is that of the first one.
  std::map<std::string, const plan::Program *> programOf;
  for (const plan::Program &program : plan().programs())
    for (const plan::State &state : program.states())
      programOf.try_emplace(state.name(), &program);
  std::vector<StateShard> shards;
  for (const std::unique_ptr<DeviceExecutor> &device : devices) {
    const plan::Program &program = *device->getProgram().program;
    for (const plan::State &state : program.states()) {
      ShardRegion region = regionOf(mesh, state, device->index());
      plan::Sharding sharding = state.sharding();
      if (replicas && replicas->differ(state)) {
        sharding.add_dims()->add_axes(replicas->axis);
        region = ofReplica(std::move(region), mesh.blockIndex(device->index(), {replicas->axis}),
                           replicas->count);
      }
      shards.push_back({&state, device->index(), std::move(region),
                        programOf.at(state.name()) == &program &&
                            firstHolder(device->index(), sharding) == device->index()});
    }
  }
  return shards;
}

MaybeError Session::readShards(std::span<const HostShard> shards) {
  if (MaybeError error = checkAtRest("states are read"))
    return error;
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
  if (MaybeError error = checkAtRest("states are written"))
    return error;
  for (const HostShard &host : shards)
    shared->setStates.insert(host.shard.state->name());
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

} // namespace dtc::runtime
