//===- ZeroSharding.h - ZeRO as a sharding ---------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_SHARDING_ZEROSHARDING_H
#define DTC_COMPILER_PASSES_SHARDING_ZEROSHARDING_H

#include "compiler/passes/sharding/Propagation.h"

namespace dtc {

/// The states that ZeRO splits; see ZeroSharding.cpp.
struct ZeroOptions {
  int64_t stage = 0; ///< 0 to 3
  AxisList axes;     ///< over which states are split
};

/// Enters what ZeRO requests into a propagation that has reached a fixpoint, after the user's
/// requests. Does nothing at ZeRO stage 0.
mlir::LogicalResult enterZero(Propagation &propagation, const ZeroOptions &options);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_SHARDING_ZEROSHARDING_H
