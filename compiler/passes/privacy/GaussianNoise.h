//===- GaussianNoise.h - Normal noise on a device -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_PRIVACY_GAUSSIANNOISE_H
#define DTC_COMPILER_PASSES_PRIVACY_GAUSSIANNOISE_H

#include "dialects/dist/Dist.h"

#include "mlir/IR/Builders.h"

namespace dtc {

/// Where a shard lies: the sizes of the whole tensor, and for each dimension the axes that split
/// it, joined by commas.
struct ShardPlace {
  llvm::ArrayRef<int64_t> shape;
  mlir::ArrayAttr sharding;
};

/// Independent values of the standard normal distribution, one for each element of a shard of
/// `type` (f32 or f64). A value follows from the key (i32[2]), `name` and the element's place in
/// the whole tensor. Values lie within 8.2 of 0.
///
/// Source: Box and Muller, "A note on the generation of random normal deviates" (Annals of
/// Mathematical Statistics 29, 1958).
mlir::Value drawNormal(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type,
                       mlir::Value key, llvm::StringRef name, const ShardPlace &place);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_PRIVACY_GAUSSIANNOISE_H
