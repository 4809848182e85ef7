//===- SlotLiveRanges.cpp - Live ranges of slots -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/SlotLiveRanges.h"

#include "plan/PlanTypes.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace dtc {

static_assert(kMaxFollowedOperands < int64_t{1} << 30, "times are doubled in 32 bits");

uint32_t SlotLiveRanges::mostAlive(const std::vector<uint32_t> &buffers) const {
  // In halves of moments. What ends at a moment makes room for what begins then: an instruction
  // that works in place writes where it has read. A value that is never read lives for half a
  // moment.
  std::vector<uint32_t> begins, ends;
  for (uint32_t buffer : buffers)
    for (const Life &life : lives[buffer]) {
      begins.push_back(2 * life.begin + 1);
      ends.push_back(std::max(2 * life.end, 2 * life.begin + 2));
    }
  std::sort(begins.begin(), begins.end());
  std::sort(ends.begin(), ends.end());
  uint32_t most = 0;
  size_t ended = 0;
  for (size_t begun = 1; begun <= begins.size(); ++begun) {
    while (ends[ended] < begins[begun - 1])
      ++ended;
    most = std::max(most, static_cast<uint32_t>(begun - ended));
  }
  return most;
}

std::optional<ProgramVerifierResult::Slots> SlotLiveRanges::liveliest() const {
  // By the place of the copies; a buffer without a map is alone with the values that reuse it.
  std::vector<std::vector<uint32_t>> groups;
  std::map<std::tuple<uint64_t, uint64_t, uint32_t>, size_t> shared;
  std::vector<size_t> ofStorage(lives.size());
  for (uint32_t buffer = 0; buffer < lives.size(); ++buffer) {
    const BufferSlots &copies = context.copies[buffer];
    size_t group = groups.size();
    if (copies.map)
      group = shared.try_emplace({copies.first.begin, copies.stride, copies.slots}, group)
                  .first->second;
    else if (uint32_t storage = storageOf(context.program, buffer); storage != buffer)
      group = ofStorage[storage];
    ofStorage[buffer] = group;
    if (group == groups.size())
      groups.emplace_back();
    groups[group].push_back(buffer);
  }
  std::optional<ProgramVerifierResult::Slots> most;
  for (const std::vector<uint32_t> &group : groups) {
    uint32_t alive = mostAlive(group);
    if (alive <= (most ? most->alive : 0))
      continue;
    most = {group.front(), alive, context.copies[group.front()].slots};
    most->buffers =
        static_cast<uint32_t>(std::count_if(group.begin(), group.end(), [&](uint32_t b) {
          return storageOf(context.program, b) == b;
        }));
  }
  return most;
}

} // namespace dtc
