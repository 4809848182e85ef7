//===- InitialValues.h - Initial values of states -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_INITIALVALUES_H
#define DTC_RUNTIME_EXECUTOR_INITIALVALUES_H

#include "plan/plan.pb.h"
#include "runtime/executor/ShardRegion.h"
#include "support/Tensor.h"

#include <cstddef>
#include <cstdint>

namespace dtc::runtime {

/// Writes a device's shard of a state's initial value. Element i of the whole tensor, in the order
/// of the weights file, is word i % 4 of Philox4x32-10 with key `seed` and the counter
/// (i / 4, FNV-1a of the state's name), made normal by Box-Muller. It depends on neither the layout
/// nor the number of devices or threads, and f64 states hold the same values as f32 ones. Padding
/// becomes zero. Up to `threads` threads draw a large shard.
void writeInitialValues(const plan::State &state, const ShardRegion &region, uint64_t seed,
                        std::byte *shard, int threads = 1);

/// Rounds `count` values to `dtype`, bf16 or f16, as if they had been drawn in it.
void roundValues(const float *values, int64_t count, DType dtype, std::byte *rounded);

/// Whether every byte of the state's initial value is zero.
bool startsAsZeros(const plan::State &state);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_INITIALVALUES_H
