//===- ReduceCall.h - Calls of reduce -------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_SHARED_REDUCECALL_H
#define DTC_RUNTIME_BACKENDS_SHARED_REDUCECALL_H

#include "runtime/backends/Kernel.h"
#include "runtime/backends/shared/LoopNest.h"
#include "support/Kinds.h"

namespace dtc::runtime {

/// The loops over the result (dense in the output) and, for each of its elements, over the input.
struct ReduceCall {
  ReductionKind kind = ReductionKind::Sum;
  DType in = DType::F32, out = DType::F32;
  LoopNest<1> kept{{}, {}}, reduced{{}, {}};
  /// Whether the innermost dimension of the input is reduced.
  bool reducesInner = true;
};

/// Checks the call against its row of docs/kernels.md.
Expected<ReduceCall> checkReduce(const KernelSignature &signature);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_BACKENDS_SHARED_REDUCECALL_H
