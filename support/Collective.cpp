//===- Collective.cpp - Collectives and the bytes of their messages -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/Collective.h"

#include <numeric>

namespace dtc {

TensorType CollectiveSpec::output() const {
  TensorType type = input;
  if (kind == CollectiveKind::AllGather || kind == CollectiveKind::AllToAll)
    type.shape[static_cast<size_t>(dim)] *= members;
  if (kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllToAll)
    type.shape[static_cast<size_t>(splitDim)] /= members;
  return type;
}

uint64_t CollectiveSpec::ringBytes() const {
  uint64_t whole = input.numBytes();
  auto n = static_cast<uint64_t>(members);
  // (n-1)/n of n equal blocks is n-1 blocks; only AllReduce may have blocks of unequal size.
  switch (kind) {
  case CollectiveKind::AllReduce:
    return 2 * whole - 2 * whole / n;
  case CollectiveKind::AllGather:
    return whole * (n - 1);
  case CollectiveKind::ReduceScatter:
  case CollectiveKind::AllToAll:
    return whole / n * (n - 1);
  case CollectiveKind::Permute:
    return whole;
  }
  return 0;
}

uint64_t CommunicatorBytes::total() const {
  return std::accumulate(byKind.begin(), byKind.end(), transfers);
}

CommunicatorBytes &CommunicatorBytes::operator+=(const CommunicatorBytes &other) {
  for (size_t i = 0; i < byKind.size(); ++i)
    byKind[i] += other.byKind[i];
  transfers += other.transfers;
  return *this;
}

} // namespace dtc
