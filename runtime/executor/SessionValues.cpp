//===- SessionValues.cpp - States and outputs of a session ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/Session.h"

#include "plan/PlanTypes.h"
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

std::vector<Session::Holder<plan::State>> Session::holdersOfState(const std::string &name) const {
  std::vector<Holder<plan::State>> holders;
  for (int program = 0; program < plan().programs_size(); ++program)
    if (const plan::State *state = findByName(plan().programs(program).states(), name))
      holders.push_back({program, state});
  return holders;
}

Expected<HostTensor> Session::readState(const std::string &name, ReplicaRows rows) const {
  if (shared->failure && !shared->statesAreWhole && !shared->stepping)
    return *shared->failure;
  std::vector<Holder<plan::State>> holders = holdersOfState(name);
  if (holders.empty())
    return Error{fmt::format("the plan has no state \"{}\"", name)};
  return gather(holders, fileTypeOf(*holders.front().binding), "state", shared->stepping == this,
                rows);
}

Expected<HostTensor> Session::getState(const std::string &name) const {
  return readState(name, ReplicaRows::None);
}

Expected<HostTensor> Session::getStateOfReplicas(const std::string &name) const {
  return readRows(name, ReplicaRows::Own);
}

Expected<HostTensor> Session::getStateOfAllReplicas(const std::string &name) const {
  return readRows(name, ReplicaRows::All);
}

Expected<HostTensor> Session::readRows(const std::string &name, ReplicaRows rows) const {
  if (prepared->replicas && prepared->replicas->states.count(name))
    return readState(name, rows);
  Expected<HostTensor> value = readState(name, ReplicaRows::None);
  if (value)
    value->type.shape.insert(value->type.shape.begin(), 1);
  return value;
}

/// The sharding of a tensor, or that of its copies for each replica in a further dimension.
plan::Sharding Session::shardingOf(const plan::Sharding &sharding, bool ofReplicas) const {
  plan::Sharding result = sharding;
  if (ofReplicas)
    result.add_dims()->add_axes(prepared->replicas->axis);
  return result;
}

/// The devices of a process that have the program and stand for all that hold the same shard in
/// that process; for process -1, in all processes.
std::vector<int64_t> Session::standIns(int64_t program, const plan::Sharding &sharding,
                                       int64_t process) const {
  std::set<int64_t> found;
  std::vector<int64_t> devices;
  for (int64_t device = 0; device < numDevices(); ++device)
    if (prepared->mesh.programOf(device) == program &&
        (process < 0 || fabric().processOf(device) == process) &&
        found.insert(firstHolder(device, sharding)).second)
      devices.push_back(device);
  return devices;
}

/// Whether the process has all shards of a tensor; `ofReplicas`: of each replica that it has a part
/// of.
template <typename T>
bool Session::holdsWhole(const Holder<T> &holder, int64_t process, bool ofReplicas) const {
  const plan::Sharding &sharding = holder.binding->sharding();
  const size_t shards = standIns(holder.program, sharding, -1).size();
  std::map<int64_t, size_t> held; // by replica
  for (int64_t device : standIns(holder.program, shardingOf(sharding, ofReplicas), process))
    ++held[ofReplicas ? replicaOf(device) : 0];
  return !held.empty() &&
         std::ranges::all_of(held, [&](const auto &each) { return each.second == shards; });
}

/// The first program with the binding whose shards are all in this process, as holdsWhole() says;
/// null if some process has no such program.
template <typename T>
const Session::Holder<T> *Session::heldEverywhere(const std::vector<Holder<T>> &holders,
                                                  bool ofReplicas) const {
  const Holder<T> *own = nullptr;
  for (int64_t process = 0; process < fabric().numProcesses(); ++process) {
    auto whole = std::ranges::find_if(
        holders, [&](const Holder<T> &holder) { return holdsWhole(holder, process, ofReplicas); });
    if (whole == holders.end())
      return nullptr;
    if (process == fabric().process())
      own = &*whole;
  }
  return own;
}

/// The shard of a state with a copy for each replica: the first dimension is that of the replicas.
static ShardRegion ofReplica(ShardRegion region, int64_t replica, int64_t replicas) {
  region.global.insert(region.global.begin(), replicas);
  region.offset.insert(region.offset.begin(), replica);
  region.size.insert(region.size.begin(), 1);
  region.local.insert(region.local.begin(), 1);
  return region;
}

/// Some indices of the first dimension.
static HostTensor rowsOf(const HostTensor &tensor, const std::set<int64_t> &rows) {
  TensorType type = tensor.type;
  size_t bytes = type.numBytes() / static_cast<size_t>(type.shape.front());
  type.shape.front() = std::ssize(rows);
  HostTensor result(type);
  std::byte *to = result.bytes.data();
  for (int64_t row : rows)
    to = std::copy_n(tensor.bytes.data() + static_cast<size_t>(row) * bytes, bytes, to);
  return result;
}

/// Reads a tensor that programs have, each the same one. All processes get it. `readsKept`: as it
/// was at the end of the last step that was finished, if that is kept. `ofReplicas`: the tensors of
/// the replicas of this process, or of all unless readsOwnResults().
template <typename T>
Expected<HostTensor> Session::gather(const std::vector<Holder<T>> &holders, TensorType type,
                                     const char *what, bool readsKept, ReplicaRows rows) const {
  const bool ofReplicas = rows != ReplicaRows::None;
  if (ofReplicas)
    type.shape.insert(type.shape.begin(), prepared->replicas->count);
  HostTensor whole(std::move(type));
  size_t width = byteWidth(whole.type.dtype);
  const bool ofOthers =
      rows == ReplicaRows::All || (rows == ReplicaRows::Own && !readsOwnResults());
  const Holder<T> *local = ofOthers ? nullptr : heldEverywhere(holders, ofReplicas);
  const Holder<T> &holder = local ? *local : holders.front();
  const plan::Sharding sharding = shardingOf(holder.binding->sharding(), ofReplicas);
  auto regionOn = [&](int64_t device) {
    ShardRegion region = regionOf(prepared->mesh, *holder.binding, device);
    return ofReplicas ? ofReplica(std::move(region), replicaOf(device), prepared->replicas->count)
                      : region;
  };
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
    std::set<int64_t> replicas;
    for (int64_t device : standIns(holder.program, sharding, fabric().process())) {
      if (MaybeError error = read(device, regionOn(device), whole.bytes.data()))
        return *error;
      if (ofReplicas)
        replicas.insert(replicaOf(device));
    }
    return ofReplicas ? rowsOf(whole, replicas) : whole;
  }
  // Each process in turn gives the others the shards for which its devices stand.
  std::vector<int64_t> all = standIns(holder.program, sharding, -1);
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

std::vector<Session::Holder<plan::Output>> Session::holdersOfOutput(const std::string &name) const {
  std::vector<Holder<plan::Output>> holders;
  for (int program = 0; program < plan().programs_size(); ++program)
    if (const plan::Output *output = findByName(plan().programs(program).outputs(), name))
      holders.push_back({program, output});
  return holders;
}

/// The mean over the first dimension.
static HostTensor meanOfRows(const HostTensor &rows) {
  TensorType type = rows.type;
  const int64_t count = type.shape.front();
  type.shape.erase(type.shape.begin());
  HostTensor mean(type);
  const int64_t elements = type.numElements();
  for (int64_t i = 0; i < elements; ++i) {
    double sum = 0;
    for (int64_t row = 0; row < count; ++row)
      sum += elementAt(rows, row * elements + i);
    setElement(mean, i, sum / static_cast<double>(count));
  }
  return mean;
}

int64_t Session::replicaOf(int64_t device) const {
  return prepared->mesh.blockIndex(device, {prepared->replicas->axis});
}

int64_t Session::numReplicasRead() const {
  if (!prepared->replicas)
    return 1;
  if (!readsOwnResults())
    return prepared->replicas->count;
  std::set<int64_t> found;
  for (int64_t device : fabric().devices())
    found.insert(replicaOf(device));
  return std::ssize(found);
}

bool Session::readsOwnResults() const {
  if (ownResults)
    return *ownResults;
  auto isOutputHeld = [&](const plan::Output *output) {
    const bool differs = prepared->replicas && prepared->replicas->outputs.count(output->name());
    return heldEverywhere(holdersOfOutput(output->name()), differs) != nullptr;
  };
  auto isHeld = [&](const plan::State *state) {
    const bool differs = prepared->replicas && prepared->replicas->differ(*state);
    return !isStepState(state->kind()) ||
           heldEverywhere(holdersOfState(state->name()), differs) != nullptr;
  };
  ownResults = std::ranges::all_of(distinctOutputs(plan()), isOutputHeld) &&
               std::ranges::all_of(distinctStates(plan()), isHeld);
  return *ownResults;
}

Expected<HostTensor> Session::getOutput(const std::string &name) const {
  std::vector<Holder<plan::Output>> holders = holdersOfOutput(name);
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
  const bool differs = prepared->replicas && prepared->replicas->outputs.count(name);
  Expected<HostTensor> found =
      gather(holders, typeOf(*holders.front().binding), "output", /*readsKept=*/true,
             differs ? ReplicaRows::Own : ReplicaRows::None);
  return found && differs ? Expected<HostTensor>(meanOfRows(*found)) : found;
}

//===----------------------------------------------------------------------===//
// Shards
//===----------------------------------------------------------------------===//

std::vector<StateShard> Session::stateShards() const {
  const std::optional<Replicas> &replicas = prepared->replicas;
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
        sharding = shardingOf(sharding, /*ofReplicas=*/true);
        region = ofReplica(std::move(region), replicaOf(device->index()), replicas->count);
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
