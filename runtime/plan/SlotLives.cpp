//===- SlotLives.cpp - How many microbatches are alive at once ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/SlotLives.h"

#include <algorithm>
#include <tuple>

namespace dtc::runtime {

std::optional<ProgramFacts::Slots> SlotLives::liveliest() const {
  // In halves of moments. What ends at a moment makes room for what begins then: an instruction
  // that works in place writes where it has read. What is never read lives for half a moment.
  std::vector<std::tuple<uint32_t, int64_t, int>> events;
  for (const Life &life : lives) {
    events.emplace_back(life.buffer, 2 * life.begin + 1, 1);
    events.emplace_back(life.buffer, std::max(2 * life.end, 2 * life.begin + 2), -1);
  }
  std::sort(events.begin(), events.end());
  std::optional<ProgramFacts::Slots> most;
  uint32_t alive = 0; // of one buffer; each one's last event brings it back to 0
  for (const auto &[buffer, time, change] : events) {
    alive += static_cast<uint32_t>(change);
    if (!most || alive > most->alive)
      most = {buffer, alive, context.copies[buffer].slots};
  }
  return most;
}

} // namespace dtc::runtime
