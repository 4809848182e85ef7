//===- Communicator.cpp - How devices exchange tensors --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/Communicator.h"

#include <cassert>

namespace dtc::runtime {

MaybeError Communicator::enqueue(Queue &queue, Group group, std::span<const CollectiveSpec> specs,
                                 std::span<const CollectiveOperands> operands) {
  assert(specs.size() == operands.size() && "operands for each tensor");
  if (specs.empty())
    return std::nullopt;
  if (MaybeError error = doEnqueue(queue, group, specs, operands))
    return error;
  for (const CollectiveSpec &spec : specs)
    bytesSent.byKind[static_cast<size_t>(spec.kind) - 1] += spec.ringBytes();
  return std::nullopt;
}

} // namespace dtc::runtime
