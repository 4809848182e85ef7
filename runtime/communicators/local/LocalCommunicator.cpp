//===- LocalCommunicator.cpp - Devices that are threads -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/communicators/local/LocalCommunicator.h"

#include "runtime/communicators/local/Reduce.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace dtc::runtime {

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

std::shared_ptr<LocalGroup> LocalWorld::openGroup(int64_t device,
                                                  const std::vector<std::string> &axes) {
  std::vector<int64_t> members = mesh.group(device, axes);
  std::lock_guard lock(mutex);
  std::shared_ptr<LocalGroup> &group = groups[{axes, members.front()}];
  if (!group) {
    group = std::make_shared<LocalGroup>(members.size());
    if (aborted)
      group->abort();
  }
  return group;
}

void LocalWorld::abort() {
  std::lock_guard lock(mutex);
  aborted = true;
  for (auto &[key, group] : groups)
    group->abort();
}

Expected<Communicator::Group> LocalCommunicator::openGroup(const std::vector<std::string> &axes) {
  groups.push_back({world->openGroup(device, axes), world->getMesh().blockIndex(device, axes)});
  return groups.size() - 1;
}

int64_t LocalCommunicator::groupSize(Group group) const {
  return static_cast<int64_t>(groups[group].group->size());
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

namespace {

/// Tensors up to this size are reduced whole by every member: that saves a barrier, which costs
/// more than the additions.
constexpr size_t smallBytes = 4096;

int64_t product(const std::vector<int64_t> &shape, size_t begin, size_t end) {
  int64_t result = 1;
  for (size_t i = begin; i < end; ++i)
    result *= shape[i];
  return result;
}

/// One member's part in one collective.
class LocalCollective {
public:
  LocalCollective(LocalGroup &group, size_t rank, const CollectiveSpec &spec,
                  const std::byte *input, std::byte *output)
      : group(group), rank(rank), members(group.size()), spec(spec), input(input), output(output),
        width(byteWidth(spec.input.dtype)) {}

  /// False if the group was aborted, before or by this collective.
  bool run() {
    uint64_t mine = fingerprint();
    if (!group.publish(rank, {input, output, mine}))
      return false;
    for (size_t member = 0; member < members; ++member)
      if (group.slot(member).fingerprint != mine)
        return false;
    switch (spec.kind) {
    case CollectiveKind::AllReduce:
      return spec.input.numBytes() <= smallBytes ? smallAllReduce() : allReduce();
    case CollectiveKind::AllGather:
      allGather();
      break;
    case CollectiveKind::ReduceScatter:
      reduceScatter();
      break;
    case CollectiveKind::AllToAll:
      allToAll();
      break;
    }
    // The others may still be reading this member's input.
    return group.barrier();
  }

private:
  /// Differs, almost always, between collectives that do not match.
  uint64_t fingerprint() const {
    uint64_t hash = static_cast<uint64_t>(spec.kind);
    auto mix = [&](int64_t value) {
      hash = (hash ^ static_cast<uint64_t>(value)) * 0x9E3779B97F4A7C15;
      hash ^= hash >> 32;
    };
    mix(static_cast<int64_t>(spec.reduction));
    mix(static_cast<int64_t>(spec.input.dtype));
    mix(spec.dim);
    mix(spec.splitDim);
    for (int64_t size : spec.input.shape)
      mix(size);
    return hash;
  }

  /// Every member reduces everything, and writes when all have read.
  bool smallAllReduce() {
    alignas(64) std::byte result[smallBytes];
    reduceInto(result, 0, spec.input.numBytes() / width);
    if (!group.barrier())
      return false;
    if (size_t bytes = spec.input.numBytes())
      std::memcpy(output, result, bytes);
    return true;
  }

  /// Each member reduces one block, then takes the other blocks from those who reduced them. In
  /// place, a member's own block of its buffer is read by itself alone in the first part, so it may
  /// write there; in the second part it writes the other blocks, which nobody reads from it.
  bool allReduce() {
    size_t count = spec.input.numBytes() / width;
    // Whole cache lines, so that no two members write to the same one.
    size_t line = 64 / width;
    size_t block = ((count + members - 1) / members + line - 1) / line * line;
    auto blockBegin = [&](size_t member) { return std::min(member * block, count); };
    reduceInto(output + blockBegin(rank) * width, blockBegin(rank),
               blockBegin(rank + 1) - blockBegin(rank));
    if (!group.barrier())
      return false;
    for (size_t step = 1; step < members; ++step) {
      size_t member = (rank + step) % members;
      size_t begin = blockBegin(member) * width;
      if (size_t bytes = blockBegin(member + 1) * width - begin)
        std::memcpy(output + begin, group.slot(member).output + begin, bytes);
    }
    return group.barrier();
  }

  /// result = reduction of elements [begin, begin + count) of all inputs.
  void reduceInto(std::byte *result, size_t begin, size_t count) {
    operands.resize(members);
    for (size_t member = 0; member < members; ++member)
      operands[member] = group.slot(member).input + begin * width;
    reduceElements(spec.reduction, spec.input.dtype, operands, result, count);
  }

  void allGather() const {
    const std::vector<int64_t> &shape = spec.input.shape;
    auto dim = static_cast<size_t>(spec.dim);
    auto outer = static_cast<size_t>(product(shape, 0, dim));
    size_t run = static_cast<size_t>(product(shape, dim, shape.size())) * width;
    if (run == 0)
      return;
    for (size_t step = 0; step < members; ++step) {
      size_t member = (rank + step) % members;
      const std::byte *from = group.slot(member).input;
      for (size_t o = 0; o < outer; ++o)
        std::memcpy(output + (o * members + member) * run, from + o * run, run);
    }
  }

  void reduceScatter() {
    const std::vector<int64_t> &shape = spec.input.shape;
    auto dim = static_cast<size_t>(spec.dim);
    auto outer = static_cast<size_t>(product(shape, 0, dim));
    size_t run = static_cast<size_t>(product(shape, dim, shape.size())) / members;
    for (size_t o = 0; o < outer; ++o)
      reduceInto(output + o * run * width, (o * members + rank) * run, run);
  }

  /// The input is split along one dimension and the parts are joined along another; when both are
  /// the same, parts change places.
  void allToAll() const {
    const std::vector<int64_t> &in = spec.input.shape;
    std::vector<int64_t> out = spec.output().shape;
    auto dim = static_cast<size_t>(spec.dim);
    auto split = static_cast<size_t>(spec.splitDim);
    // The part that a member sends: the input with the split dimension divided.
    std::vector<int64_t> part = in;
    part[split] /= static_cast<int64_t>(members);
    if (product(part, 0, part.size()) == 0)
      return;
    // Dimensions inside the inner one of the two are whole in input, part and output.
    size_t low = std::min(dim, split), high = std::max(dim, split);
    int64_t inner = product(in, high + 1, in.size());
    int64_t middle = low == high ? 1 : product(in, low + 1, high);
    int64_t outer = product(in, 0, low);
    int64_t lowSize = low == high ? 1 : part[low];
    int64_t inLow = low == high ? 1 : in[low], outLow = low == high ? 1 : out[low];
    size_t run = static_cast<size_t>(part[high] * inner) * width;
    for (size_t step = 0; step < members; ++step) {
      size_t member = (rank + step) % members;
      // Where my part begins in the member's input, and where its part begins in my output.
      int64_t inOffset[2] = {0, 0}, outOffset[2] = {0, 0}; // along low, along high
      inOffset[split == high] = static_cast<int64_t>(rank) * part[split];
      outOffset[dim == high] = static_cast<int64_t>(member) * part[dim];
      const std::byte *from = group.slot(member).input;
      for (int64_t o = 0; o < outer; ++o)
        for (int64_t l = 0; l < lowSize; ++l)
          for (int64_t m = 0; m < middle; ++m) {
            int64_t inRow = (o * inLow + l + inOffset[0]) * middle + m;
            int64_t outRow = (o * outLow + l + outOffset[0]) * middle + m;
            std::memcpy(
                output + static_cast<size_t>((outRow * out[high] + outOffset[1]) * inner) * width,
                from + static_cast<size_t>((inRow * in[high] + inOffset[1]) * inner) * width, run);
          }
    }
  }

  LocalGroup &group;
  size_t rank;
  size_t members;
  const CollectiveSpec &spec;
  const std::byte *input;
  std::byte *output;
  size_t width;
  std::vector<const std::byte *> operands; // scratch of reduceInto()
};

} // namespace

MaybeError LocalCommunicator::doRun(Group index, const CollectiveSpec &spec, const void *input,
                                    void *output) {
  const Membership &membership = groups[index];
  if (static_cast<size_t>(spec.members) != membership.group->size())
    return Error{"the collective is for a group of another size"};
  if (membership.group->size() == 1) {
    if (size_t bytes = spec.input.numBytes(); bytes && input != output)
      std::memcpy(output, input, bytes);
    return std::nullopt;
  }
  LocalCollective collective(*membership.group, static_cast<size_t>(membership.rank), spec,
                             static_cast<const std::byte *>(input),
                             static_cast<std::byte *>(output));
  if (collective.run())
    return std::nullopt;
  world->abort();
  return Error{std::string(name(spec.kind)) +
               ": another device failed, or the members of the group called different collectives"};
}

} // namespace dtc::runtime
