//===- AttentionGradByWarpgroups.h - Gradient of attention on Hopper ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_ATTENTIONGRADBYWARPGROUPS_H
#define DTC_RUNTIME_BACKENDS_CUDA_ATTENTIONGRADBYWARPGROUPS_H

#include "calls/JoinedAttention.h"
#include "runtime/backends/cuda/CudaKernel.h"

#include <memory>

namespace dtc::runtime::cuda {

/// Whether a GPU has the instructions of WarpgroupUnits.h, and this build code for it.
bool hasWarpgroups(int computeCapability);

/// Whether there is a kernel for a call of attention_grad on such a GPU: heads of 64 elements of
/// bf16 or f16, without dropout, window, soft cap and segments.
bool canUseWarpgroups(const AttentionCall &call);

/// The kernel of such a call. What it cannot do, on another GPU or with operands at addresses that
/// are no multiples of 16 bytes, `other` does. Its results repeat bit by bit.
std::unique_ptr<CudaKernel> makeAttentionGradByWarpgroups(const PlacedAttention &placed,
                                                          std::unique_ptr<CudaKernel> other);

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_ATTENTIONGRADBYWARPGROUPS_H
