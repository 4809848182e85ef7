//===- SlotLives.cpp - How many microbatches are alive at once ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/SlotLives.h"

#include <algorithm>

namespace dtc::runtime {

static_assert(maxDataflowSteps < int64_t{1} << 30, "times are doubled in 32 bits");

uint32_t SlotLives::mostAlive(const std::vector<Life> &lives) {
  // In halves of moments. What ends at a moment makes room for what begins then: an instruction
  // that works in place writes where it has read. What is never read lives for half a moment.
  std::vector<uint32_t> begins, ends;
  for (const Life &life : lives) {
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

std::optional<ProgramFacts::Slots> SlotLives::liveliest() const {
  std::optional<ProgramFacts::Slots> most;
  for (uint32_t buffer = 0; buffer < lives.size(); ++buffer) {
    uint32_t alive = mostAlive(lives[buffer]);
    if (alive > (most ? most->alive : 0))
      most = {buffer, alive, context.copies[buffer].slots};
  }
  return most;
}

} // namespace dtc::runtime
