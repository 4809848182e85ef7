//===- LayerOverlap.h - Megatron-LM's own overlap of collectives ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_BENCHMARKS_LAYEROVERLAP_H
#define DTC_BENCHMARKS_LAYEROVERLAP_H

#include "plan/plan.pb.h"

namespace dtc::benchmarks {

/// Makes the collectives of a plan of --no-overlap overlap as those of Megatron-LM of 24 June 2022
/// (commit 2755bcb87b88) did. There, the backward pass of a linear layer whose columns are split
/// (megatron/mpu/layers.py, LinearWithGradAccumulationAndAsyncCommunication) gathers its input
/// beside the product for the gradient of that input, and sums that gradient over the devices
/// beside the product for the gradient of the weight. It waits for either right after the product.
/// All other collectives are waited for at once.
///
/// So in backward tasks a collective that one matrix product follows, which does not need it, runs
/// beside this product. Such a plan has the ops of these layers in that order.
void overlapWithinLayers(plan::Plan &plan);

} // namespace dtc::benchmarks

#endif // DTC_BENCHMARKS_LAYEROVERLAP_H
