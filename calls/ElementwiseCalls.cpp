//===- ElementwiseCalls.cpp - Calls of elementwise kernels ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/ElementwiseCalls.h"

#include "calls/SignatureChecker.h"

namespace dtc {

static void checkGradient(SignatureChecker &check) {
  const TensorType &x = check.floatInput(0);
  check.expectInput(1, x);
  check.expectOutput(0, x);
}

Expected<TensorType> checkUnary(const KernelSignature &signature) {
  SignatureChecker check(signature, 1, 1);
  const TensorType &x = check.floatInput(0);
  check.expectOutput(0, x);
  if (MaybeError error = check.finish())
    return *error;
  return x;
}

Expected<TensorType> checkUnaryGrad(const KernelSignature &signature) {
  SignatureChecker check(signature, 2, 1);
  checkGradient(check);
  if (MaybeError error = check.finish())
    return *error;
  return check.input(0);
}

Expected<GeluCall> checkGelu(const KernelSignature &signature) {
  SignatureChecker check(signature, 1, 1);
  const TensorType &x = check.floatInput(0);
  check.expectOutput(0, x);
  bool isTanh = check.choiceAttribute("approximate", {"none", "tanh"}) == 1;
  if (MaybeError error = check.finish())
    return *error;
  return GeluCall{x, isTanh};
}

Expected<GeluCall> checkGeluGrad(const KernelSignature &signature) {
  SignatureChecker check(signature, 2, 1);
  checkGradient(check);
  bool isTanh = check.choiceAttribute("approximate", {"none", "tanh"}) == 1;
  if (MaybeError error = check.finish())
    return *error;
  return GeluCall{check.input(0), isTanh};
}

/// The dims attribute of an operand of `add` and its kin; checks the operand's shape against it.
static std::vector<int64_t> operandDims(SignatureChecker &check, const std::string &name,
                                        size_t operand) {
  const TensorType &out = check.output(0);
  std::vector<int64_t> dims;
  if (!check.hasAttribute(name)) {
    check.expectInput(operand, out);
    for (int64_t i = 0; i < out.rank(); ++i)
      dims.push_back(i);
    return dims;
  }
  dims = check.dimsAttribute(name, out.rank());
  TensorType expected{out.dtype, {}};
  for (int64_t dim : dims)
    expected.shape.push_back(out.shape[static_cast<size_t>(dim)]);
  check.expectInput(operand, expected);
  return check.failed() ? std::vector<int64_t>() : dims;
}

Expected<BinaryCall> checkBinary(const KernelSignature &signature, bool allowsIntegers) {
  SignatureChecker check(signature, 2, 1);
  if (!allowsIntegers || check.input(0).dtype != DType::I32)
    check.floatInput(0);
  std::vector<int64_t> lhsDims = operandDims(check, "lhs_dims", 0);
  std::vector<int64_t> rhsDims = operandDims(check, "rhs_dims", 1);
  if (MaybeError error = check.finish())
    return *error;
  const TensorType &out = check.output(0);
  size_t rank = out.shape.size();
  return BinaryCall{
      out.dtype, LoopNest<2>(out.shape, {broadcastStrides(check.input(0).shape, lhsDims, rank),
                                         broadcastStrides(check.input(1).shape, rhsDims, rank)})};
}

Expected<CompareCall> checkCompare(const KernelSignature &signature) {
  SignatureChecker check(signature, 2, 1);
  const TensorType &lhs = check.input(0);
  if (lhs.dtype != DType::I32)
    check.floatInput(0);
  check.expectInput(1, lhs);
  check.expectOutput(0, withElements(lhs, DType::Bool));
  size_t predicate = check.choiceAttribute("predicate", {"eq", "ne", "lt", "le", "gt", "ge"});
  if (MaybeError error = check.finish())
    return *error;
  return CompareCall{lhs, static_cast<Predicate>(predicate)};
}

Expected<TensorType> checkSelect(const KernelSignature &signature) {
  SignatureChecker check(signature, 3, 1);
  const TensorType &type = check.floatInput(1);
  check.expectInput(0, withElements(type, DType::Bool));
  check.expectInput(2, type);
  check.expectOutput(0, type);
  if (MaybeError error = check.finish())
    return *error;
  return type;
}

Expected<ConvertCall> checkConvert(const KernelSignature &signature) {
  SignatureChecker check(signature, 1, 1);
  const TensorType &in = check.input(0);
  const TensorType &out = check.output(0);
  check.expectOutput(0, withElements(in, out.dtype));
  if (MaybeError error = check.finish())
    return *error;
  return ConvertCall{in.dtype, out.dtype, in.numElements()};
}

} // namespace dtc
