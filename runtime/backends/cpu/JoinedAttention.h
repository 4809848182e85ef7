//===- JoinedAttention.h - Attention to parts of one tensor ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_JOINEDATTENTION_H
#define DTC_RUNTIME_BACKENDS_CPU_JOINEDATTENTION_H

#include "runtime/backends/cpu/CpuKernels.h"

namespace dtc::runtime::cpu {

/// The kernels of attention to parts of one tensor, by those of attention.
std::span<const KernelEntry> joinedAttentionKernels();

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_JOINEDATTENTION_H
