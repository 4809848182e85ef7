//===- Communicator.cpp - Collectives between devices ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/Communicator.h"

#include <cassert>

namespace dtc::runtime {

uint64_t fingerprintOf(std::span<const CollectiveSpec> specs) {
  uint64_t hash = specs.size();
  auto mix = [&](int64_t value) {
    hash = (hash ^ static_cast<uint64_t>(value)) * 0x9E3779B97F4A7C15;
    hash ^= hash >> 32;
  };
  const CollectiveSpec &first = specs.front();
  mix(static_cast<int64_t>(first.kind));
  mix(static_cast<int64_t>(first.reduction));
  if (first.sources)
    for (int64_t source : *first.sources)
      mix(source);
  for (const CollectiveSpec &spec : specs) {
    mix(static_cast<int64_t>(spec.input.dtype));
    mix(spec.dim);
    mix(spec.splitDim);
    mix(spec.input.rank());
    for (int64_t size : spec.input.shape)
      mix(size);
  }
  return hash;
}

MaybeError Communicator::enqueue(Queue &queue, Group group, std::span<const CollectiveSpec> specs,
                                 std::span<const CollectiveOperands> operands) {
  assert(specs.size() == operands.size() && "operands for each tensor");
  if (specs.empty())
    return std::nullopt;
  if (MaybeError error = doEnqueue(queue, group, specs, operands))
    return error;
  countSent(specs);
  return std::nullopt;
}

MaybeError Communicator::repeat(Group group, std::span<const CollectiveSpec> specs) {
  if (specs.empty())
    return std::nullopt;
  if (MaybeError error = doRepeat(group, specs))
    return error;
  countSent(specs);
  return std::nullopt;
}

void Communicator::countSent(std::span<const CollectiveSpec> specs) {
  for (const CollectiveSpec &spec : specs)
    bytesSent.byKind[indexOf(spec.kind)] += spec.ringBytes();
}

} // namespace dtc::runtime
