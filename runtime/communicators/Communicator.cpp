//===- Communicator.cpp - How devices exchange tensors --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/communicators/Communicator.h"

#include <cassert>
#include <numeric>

namespace dtc::runtime {

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

MaybeError Communicator::run(Group group, std::span<const CollectiveSpec> specs,
                             std::span<const CollectiveOperands> operands) {
  assert(specs.size() == operands.size() && "operands for each tensor");
  if (specs.empty())
    return std::nullopt;
  if (MaybeError error = doRun(group, specs, operands))
    return error;
  for (const CollectiveSpec &spec : specs)
    bytesSent.byKind[static_cast<size_t>(spec.kind) - 1] += spec.ringBytes();
  return std::nullopt;
}

MaybeError Communicator::run(Group group, const CollectiveSpec &spec, const void *input,
                             void *output) {
  CollectiveOperands operands{input, output};
  return run(group, {&spec, 1}, {&operands, 1});
}

} // namespace dtc::runtime
