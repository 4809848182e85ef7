//===- PackedCollective.h - Tensors in messages of NCCL -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// NCCL gathers and scatters along the first dimension alone, adds elements of 16 bits one pair
// after the other, rounding each sum, and forgets NaNs in maxima and minima. So a collective along
// another dimension is packed to a dense buffer before, or unpacked after; sums of 16 bits are sent
// as f32; and maxima and minima of floats as integers with the same order, in which NaN is the last
// one.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_NCCL_PACKEDCOLLECTIVE_H
#define DTC_RUNTIME_FABRICS_NCCL_PACKEDCOLLECTIVE_H

#include "runtime/backends/cuda/DeviceLoops.h"
#include "runtime/fabrics/nccl/Encode.h"
#include "support/Collective.h"

#include <cstdint>
#include <nccl.h>
#include <optional>

namespace dtc::runtime::nccl {

/// One tensor of a collective as NCCL sees it.
struct PackedCollective {
  static Expected<PackedCollective> create(const CollectiveSpec &spec);

  /// The elements that are sent: `count` is the number for each member that ncclAllGather sends,
  /// ncclReduceScatter receives, or a message of AllToAll has; else the number of all.
  ncclDataType_t type = ncclUint8;
  ncclRedOp_t reduction = ncclSum;
  int64_t count = 0;
  size_t width = 1; // of an element there, in bytes
  Code code = Code::Same;
  /// From the input to a buffer, and from a buffer to the output; none: NCCL uses the operand.
  std::optional<cuda::DeviceLoops<2>> pack, unpack;
  /// The elements of what NCCL reads and writes.
  int64_t sentCount = 0, receivedCount = 0;

  size_t packBytes() const { return pack ? static_cast<size_t>(sentCount) * width : 0; }
  size_t unpackBytes() const { return unpack ? static_cast<size_t>(receivedCount) * width : 0; }
};

} // namespace dtc::runtime::nccl

#endif // DTC_RUNTIME_FABRICS_NCCL_PACKEDCOLLECTIVE_H
