//===- ShardingCalls.h - Calls of kernels that depend on coordinates ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each function checks a call against its row of docs/kernels.md and gives the backend its
// parameters.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_SHARDINGCALLS_H
#define DTC_CALLS_SHARDINGCALLS_H

#include "calls/KernelSignature.h"
#include "support/Error.h"
#include "support/ShardExtent.h"

#include <span>
#include <string>
#include <vector>

namespace dtc {

/// A tensor as rows: a row is one dimension with those after it, the rows are those before it.
struct TensorRows {
  int64_t count = 1;   // of rows
  int64_t element = 1; // elements of the tensor for one of the dimension; 0 if it has none at all

  TensorRows() = default;
  TensorRows(const TensorType &type, size_t dim);
};

/// A dimension of `size` elements that axes split.
struct SplitDimension {
  std::vector<std::string> axes;
  int64_t size = 0;

  /// The block of the device at `position`.
  ShardExtent at(std::span<const AxisCoordinate> position) const;
};

/// `shard_slice`: `local` is the type of the result, `rows` are those of the operand.
struct ShardSliceCall {
  TensorType local;
  SplitDimension split;
  TensorRows rows;
  bool isEven = true; // no block has padding
};
Expected<ShardSliceCall> checkShardSlice(const KernelSignature &signature);

/// `shard_offset`; every offset fits an i32.
Expected<SplitDimension> checkShardOffset(const KernelSignature &signature);

/// `mask_padding`.
struct MaskPaddingCall {
  TensorType type;
  SplitDimension split;
  TensorRows rows;
  uint64_t bits = 0; // of an element of the padding
};
Expected<MaskPaddingCall> checkMaskPadding(const KernelSignature &signature);

/// `accumulate`.
struct AccumulateCall {
  TensorType type;
  std::string axis;

  /// Whether this run sets the sum.
  bool isFirst(std::span<const AxisCoordinate> position) const;
};
Expected<AccumulateCall> checkAccumulate(const KernelSignature &signature);

} // namespace dtc

#endif // DTC_CALLS_SHARDINGCALLS_H
