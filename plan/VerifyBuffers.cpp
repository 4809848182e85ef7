//===- VerifyBuffers.cpp - The arena and the buffers of a program -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanChecks.h"
#include "plan/PlanTypes.h"
#include "plan/PlanVerifier.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace dtc {

/// The bytes from one copy of a buffer to the next; a buffer in the arena has at most 2^46 bytes.
static uint64_t strideOf(uint64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

/// The bytes of the arena that a buffer lies in.
static uint64_t arenaBytesOf(const PlanContext &context, const plan::Buffer &buffer) {
  return isOnHost(buffer) ? context.program.host_arena_bytes() : context.program.arena_bytes();
}

static const char *arenaNameOf(const plan::Buffer &buffer) {
  return isOnHost(buffer) ? "arena in the memory of the host" : "arena";
}

/// The slot maps: each has a slot for every microbatch. Returns the greatest slot of each map, to
/// be compared with the slots of buffers.
static Expected<std::vector<uint32_t>> checkSlotMaps(const PlanContext &context) {
  int64_t microbatches = microbatchesOf(context.mesh);
  std::vector<uint32_t> greatest;
  for (const plan::SlotMap &map : context.program.slot_maps()) {
    if (map.slots_size() != microbatches)
      return Error{fmt::format("slot map {} has {} slots; expected {}, one for each microbatch",
                               greatest.size(), map.slots_size(), microbatches)};
    greatest.push_back(*std::max_element(map.slots().begin(), map.slots().end()));
  }
  return greatest;
}

/// `mapped` are the greatest slots of the program's maps.
static MaybeError checkSlots(const PlanContext &context, const plan::Buffer &buffer, uint64_t bytes,
                             const std::vector<uint32_t> &mapped) {
  if (buffer.has_slot_map()) {
    if (buffer.slot_map() >= mapped.size())
      return Error{fmt::format("names slot map {}, but the program has {} slot maps",
                               buffer.slot_map(), mapped.size())};
    if (mapped[buffer.slot_map()] >= buffer.slots())
      return Error{fmt::format("has {} slots, but its slot map {} gives slot {} to a microbatch; "
                               "slots count from 0",
                               buffer.slots(), buffer.slot_map(), mapped[buffer.slot_map()])};
  }
  // Those that share slots have a map each.
  int64_t microbatches = microbatchesOf(context.mesh);
  int64_t most = microbatches * (buffer.has_slot_map() ? static_cast<int64_t>(mapped.size()) : 1);
  if (buffer.slots() > most)
    return Error{
        fmt::format("has {} slots, but there are {} microbatches{}", buffer.slots(), microbatches,
                    buffer.has_slot_map() ? fmt::format(" and {} slot maps", mapped.size()) : "")};
  uint64_t room = arenaBytesOf(context, buffer) - buffer.offset();
  uint64_t stride = strideOf(bytes);
  if (buffer.slots() > 0 && stride > 0 && room / stride < buffer.slots())
    return Error{fmt::format("{} slots of {} bytes at offset {} reach beyond the {} of {} bytes",
                             buffer.slots(), stride, buffer.offset(), arenaNameOf(buffer),
                             arenaBytesOf(context, buffer))};
  return std::nullopt;
}

static MaybeError checkBuffer(const PlanContext &context, const plan::Buffer &buffer,
                              const std::vector<uint32_t> &mapped) {
  if (MaybeError error = checkTensor(buffer.dtype(), buffer.shape()))
    return error;
  if (!isNamed(kindOf(buffer)))
    return Error{fmt::format("unknown kind {}", static_cast<int>(buffer.kind()))};
  if (buffer.offset() % kBufferAlignment != 0)
    return Error{
        fmt::format("offset {} is not a multiple of {}", buffer.offset(), kBufferAlignment)};
  if (!plan::Buffer::Memory_IsValid(buffer.memory()))
    return Error{fmt::format("unknown memory {}", static_cast<int>(buffer.memory()))};
  size_t bytes = typeOf(buffer).numBytes();
  uint64_t arena = arenaBytesOf(context, buffer);
  if (buffer.offset() > arena || bytes > arena - buffer.offset())
    return Error{fmt::format("{} bytes at offset {} reach beyond the {} of {} bytes", bytes,
                             buffer.offset(), arenaNameOf(buffer), arena)};
  return checkSlots(context, buffer, bytes, mapped);
}

static std::string describeSlotMap(const plan::Buffer &buffer) {
  return buffer.has_slot_map() ? fmt::format("slot map {}", buffer.slot_map()) : "no slot map";
}

/// A view or a reuse lies in the bytes of its other buffer.
static MaybeError checkPlace(const PlanContext &context, int index) {
  const plan::Buffer &buffer = context.program.buffers(index);
  if (!buffer.has_view_of() && !buffer.has_reuses())
    return std::nullopt;
  if (buffer.has_view_of() && buffer.has_reuses())
    return Error{fmt::format("is a view of buffer {} and reuses buffer {}; expected one of the two",
                             buffer.view_of(), buffer.reuses())};
  uint32_t other = buffer.has_view_of() ? buffer.view_of() : buffer.reuses();
  std::string relation = buffer.has_view_of() ? "is a view of" : "reuses";
  if (static_cast<int64_t>(other) >= index)
    return Error{fmt::format("{} buffer {}; expected one before it", relation, other)};
  const plan::Buffer &whole = context.program.buffers(static_cast<int>(other));
  if (whole.has_view_of() || (buffer.has_reuses() && whole.has_reuses()))
    return Error{fmt::format("{} buffer {}, which itself {} buffer {}; expected that one", relation,
                             other, whole.has_view_of() ? "is a view of" : "reuses",
                             whole.has_view_of() ? whole.view_of() : whole.reuses())};
  TensorType type = typeOf(buffer), of = typeOf(whole);
  if (buffer.memory() != whole.memory())
    return Error{fmt::format("lies in the memory of the {} and {} buffer {}, which lies in that of "
                             "the {}; expected the same",
                             isOnHost(buffer) ? "host" : "device", relation, other,
                             isOnHost(whole) ? "host" : "device")};
  if (buffer.offset() != whole.offset() || buffer.slots() != whole.slots() ||
      type.dtype != of.dtype || type.numBytes() != of.numBytes())
    return Error{fmt::format("{} with {} slots at offset {} {} buffer {}, {} with {} slots at "
                             "offset {}; expected as many elements of the same type at the same "
                             "place",
                             type.str(), buffer.slots(), buffer.offset(), relation, other, of.str(),
                             whole.slots(), whole.offset())};
  if (buffer.has_slot_map() != whole.has_slot_map() || buffer.slot_map() != whole.slot_map())
    return Error{fmt::format("has {} and {} buffer {}, which has {}; expected the same",
                             describeSlotMap(buffer), relation, other, describeSlotMap(whole))};
  return std::nullopt;
}

MaybeError checkBuffers(PlanContext &context) {
  const plan::Program &program = context.program;
  if (program.arena_bytes() > kMaxArenaBytes)
    return Error{fmt::format("the arena has {} bytes; at most {} are allowed",
                             program.arena_bytes(), kMaxArenaBytes)};
  if (program.host_arena_bytes() > kMaxArenaBytes)
    return Error{fmt::format("the arena in the memory of the host has {} bytes; at most {} are "
                             "allowed",
                             program.host_arena_bytes(), kMaxArenaBytes)};
  if (program.arena_lower_bound() > program.arena_bytes())
    return Error{fmt::format("the arena has {} bytes, fewer than its lower bound of {}",
                             program.arena_bytes(), program.arena_lower_bound())};
  Expected<std::vector<uint32_t>> mapped = checkSlotMaps(context);
  if (!mapped)
    return mapped.error();
  for (int i = 0; i < program.buffers_size(); ++i) {
    const plan::Buffer &buffer = program.buffers(i);
    MaybeError error = checkBuffer(context, buffer, *mapped);
    if (!error)
      error = checkPlace(context, i);
    if (error)
      return error->inContext(fmt::format("buffer {}", i));
    context.roots.push_back(buffer.has_view_of() ? context.roots[buffer.view_of()]
                                                 : static_cast<uint32_t>(i));
    TensorType type = typeOf(buffer);
    uint64_t begin = buffer.offset() + (isOnHost(buffer) ? kHostRangesBegin : 0);
    BufferSlots copies{
        {begin, begin + type.numBytes()},
        strideOf(type.numBytes()),
        buffer.slots(),
        buffer.has_slot_map() ? &program.slot_maps(static_cast<int>(buffer.slot_map())) : nullptr};
    context.ranges.push_back(
        {copies.first.begin, copies.first.end + copies.stride * (copies.count() - 1)});
    context.copies.push_back(copies);
    context.types.push_back(std::move(type));
  }
  return std::nullopt;
}

} // namespace dtc
