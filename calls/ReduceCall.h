//===- ReduceCall.h - Calls of reduce -------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_REDUCECALL_H
#define DTC_CALLS_REDUCECALL_H

#include "calls/KernelSignature.h"
#include "calls/LoopNest.h"
#include "support/Error.h"
#include "support/Kinds.h"

namespace dtc {

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

} // namespace dtc

#endif // DTC_CALLS_REDUCECALL_H
