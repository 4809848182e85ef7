//===- Norms.h - Layer norm and RMS norm ----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_NORMS_H
#define DTC_RUNTIME_BACKENDS_CPU_NORMS_H

#include "calls/RowCalls.h"
#include "runtime/backends/cpu/CpuKernels.h"

namespace dtc::runtime::cpu {

PrepareResult prepareLayerNormGrad(const RowShape &shape);
PrepareResult prepareRmsNormGrad(const RowShape &shape);

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_NORMS_H
