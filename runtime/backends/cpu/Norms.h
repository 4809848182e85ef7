//===- Norms.h - Layer norm and RMS norm ----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_NORMS_H
#define DTC_RUNTIME_BACKENDS_CPU_NORMS_H

#include "runtime/backends/cpu/CpuKernels.h"

namespace dtc::runtime::cpu {

PrepareResult prepareLayerNormGrad(const KernelSignature &signature);
PrepareResult prepareRmsNormGrad(const KernelSignature &signature);

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_NORMS_H
