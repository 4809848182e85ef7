//===- ElementwiseCalls.h - Calls of elementwise kernels ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each function checks a call against its row of docs/kernels.md and gives the backend its
// parameters.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_ELEMENTWISECALLS_H
#define DTC_CALLS_ELEMENTWISECALLS_H

#include "calls/KernelSignature.h"
#include "calls/LoopNest.h"
#include "support/Error.h"

namespace dtc {

/// `neg` and its kin, also `silu`; the type of operand and result.
Expected<TensorType> checkUnary(const KernelSignature &signature);
/// `silu_grad`; the type of all operands and of the result.
Expected<TensorType> checkUnaryGrad(const KernelSignature &signature);

struct GeluCall {
  TensorType type;
  bool isTanh = false; // approximated by tanh
};
Expected<GeluCall> checkGelu(const KernelSignature &signature);
Expected<GeluCall> checkGeluGrad(const KernelSignature &signature);

/// `add` and its kin.
struct BinaryCall {
  DType dtype = DType::F32;
  /// Over the result, the offsets of lhs and rhs.
  LoopNest<2> loops{{}, {}};
};
Expected<BinaryCall> checkBinary(const KernelSignature &signature, bool allowsIntegers);

enum class Predicate { Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual };
struct CompareCall {
  TensorType type; // of both operands
  Predicate predicate = Predicate::Equal;
};
Expected<CompareCall> checkCompare(const KernelSignature &signature);

/// `select`; the type of the result.
Expected<TensorType> checkSelect(const KernelSignature &signature);

/// `convert`.
struct ConvertCall {
  DType from = DType::F32, to = DType::F32;
  int64_t count = 0;
};
Expected<ConvertCall> checkConvert(const KernelSignature &signature);

} // namespace dtc

#endif // DTC_CALLS_ELEMENTWISECALLS_H
