//===- AttentionTiles.h - Attention on bf16 by a unit of bf16 -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_ATTENTIONTILES_H
#define DTC_RUNTIME_BACKENDS_CPU_ATTENTIONTILES_H

#include "calls/AttentionCalls.h"
#include "runtime/backends/cpu/CpuKernel.h"

#include <memory>

namespace dtc::runtime::cpu {

/// Whether a call goes to the kernels below. They round the weights and the gradients of scores to
/// bf16, as a GPU does; scores and all sums are f32.
bool attentionUsesTiles(const AttentionCall &call);

std::unique_ptr<CpuKernel> makeTileAttention(AttentionCall call, bool cached);
std::unique_ptr<CpuKernel> makeTileAttentionGrad(AttentionCall call);

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_ATTENTIONTILES_H
