//===- CpuKernels.h - The families of kernels -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_CPUKERNELS_H
#define DTC_RUNTIME_BACKENDS_CPU_CPUKERNELS_H

#include "runtime/backends/cpu/CpuKernel.h"
#include "runtime/backends/shared/KernelRegistry.h"

#include <memory>
#include <span>

namespace dtc::runtime::cpu {

using PrepareResult = Expected<std::unique_ptr<CpuKernel>>;
using KernelEntry = RegisteredKernel<CpuKernel>;

std::span<const KernelEntry> unaryKernels();
std::span<const KernelEntry> binaryKernels();
std::span<const KernelEntry> conversionKernels();
std::span<const KernelEntry> dataMovementKernels();
std::span<const KernelEntry> reduceKernels();
std::span<const KernelEntry> shardingKernels();
std::span<const KernelEntry> einsumKernels();
std::span<const KernelEntry> groupedProductKernels();
std::span<const KernelEntry> indexingKernels();
std::span<const KernelEntry> softmaxKernels();
std::span<const KernelEntry> normKernels();
std::span<const KernelEntry> rotaryKernels();
std::span<const KernelEntry> attentionKernels();
std::span<const KernelEntry> joinedAttentionKernels();
std::span<const KernelEntry> crossEntropyKernels();
std::span<const KernelEntry> cacheKernels();
std::span<const KernelEntry> dropoutKernels();
std::span<const KernelEntry> optimizerKernels();
std::span<const KernelEntry> quantizedBlocksKernels();
std::span<const KernelEntry> scaledProductKernels();

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_CPUKERNELS_H
