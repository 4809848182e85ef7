//===- SampleAttributes.h - Gradients of samples that are to be clipped ---===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DIST_SAMPLEATTRIBUTES_H
#define DTC_DIALECTS_DIST_SAMPLEATTRIBUTES_H

#include "llvm/ADT/StringRef.h"

namespace dtc::dist {

/// On a function whose step clips the gradient of each sample (an i64): the samples of a batch.
/// dtc-build-train-step sets these four attributes, and dtc-clip-samples takes them away.
inline constexpr llvm::StringLiteral kSamplesAttrName = "dist.samples";

/// On an input of such a function (an i64): the dimension along which it has one sample after the
/// other.
inline constexpr llvm::StringLiteral kSampleDimAttrName = "dist.sample_dim";

/// On the dtc.add that adds noise to the sum of a gradient over all samples (a string): the name of
/// the parameter. The second operand stands for the noise. dtc-spmd-partition puts the shape of the
/// whole tensor and its sharding beside it, as for ops that draw masks.
inline constexpr llvm::StringLiteral kSampleNoiseAttrName = "dist.sample_noise";

/// On the dtc.div that divides the loss by a sum over samples (a unit).
inline constexpr llvm::StringLiteral kSampleDivisorAttrName = "dist.sample_divisor";

/// Of an op with kSampleNoiseAttrName in the local view: the sizes of the whole tensor, and for
/// each dimension the axes that split it, joined by commas.
inline constexpr llvm::StringLiteral kNoiseShapeAttrName = "dist.noise_shape";
inline constexpr llvm::StringLiteral kNoiseShardingAttrName = "dist.noise_sharding";

} // namespace dtc::dist

#endif // DTC_DIALECTS_DIST_SAMPLEATTRIBUTES_H
