//===- JoinedAttention.h - Calls of attention to parts of one tensor ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_JOINEDATTENTION_H
#define DTC_CALLS_JOINEDATTENTION_H

#include "calls/AttentionCalls.h"

#include <array>
#include <cstdint>
#include <optional>

namespace dtc {

/// Where queries, keys and values are in the tensor that has the rows of all three, one after the
/// other.
struct JoinedHeads {
  std::array<int64_t, 3> offsets{}; ///< of the first element of each
  int64_t count = 0;                ///< the heads of a row: h + 2 g
};

/// A call of one of the four kernels, as the one on queries, keys and values apart: the numbers of
/// operands are those of that call.
struct PlacedAttention {
  AttentionCall call;
  std::optional<JoinedHeads> joined; ///< none: queries, keys and values are apart
  bool isGradient = false;

  /// How many heads a row has in memory of a tensor with rows of `heads` of q, k, v or their
  /// gradients.
  int64_t rowHeads(int64_t heads) const { return joined ? joined->count : heads; }
};
/// Whether it is a call of one of the four kernels.
bool isAttention(const KernelSignature &signature);
Expected<PlacedAttention> checkPlacedAttention(const KernelSignature &signature);

} // namespace dtc

#endif // DTC_CALLS_JOINEDATTENTION_H
