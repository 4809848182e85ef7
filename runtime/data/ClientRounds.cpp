//===- ClientRounds.cpp - Clients of each round --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/ClientRounds.h"

#include "runtime/data/Permutation.h"

#include <algorithm>

namespace dtc::runtime {

size_t ClientRounds::clientOf(int64_t round, size_t replica) const {
  // Set apart from the orders of samples.
  return permuted(seed ^ 0x636c6965'6e747321, static_cast<uint64_t>(round), replica, counts.size());
}

int64_t ClientRounds::roundsBefore(int64_t round, size_t replica) const {
  std::lock_guard lock(mutex);
  if (round < counted) {
    std::ranges::fill(counts, 0);
    counted = 0;
  }
  for (; counted < round; ++counted)
    for (size_t other = 0; other < replicas; ++other)
      ++counts[clientOf(counted, other)];
  return counts[clientOf(round, replica)];
}

} // namespace dtc::runtime
