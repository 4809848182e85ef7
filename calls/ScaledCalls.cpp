//===- ScaledCalls.cpp - Calls about numbers of 8 bits --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/ScaledCalls.h"

#include "calls/SignatureChecker.h"

namespace dtc {

static const TensorType kScalar{DType::F32, {}};

/// Expects one of the types of 8 bits.
static void expectFloat8(SignatureChecker &check, const char *what, const TensorType &type) {
  if (!isFloat8(type.dtype))
    check.fail(std::string(what) + " is " + type.str() + ", expected elements of f8e4m3 or f8e5m2");
}

Expected<LargestMagnitudeCall> checkLargestMagnitude(const KernelSignature &signature) {
  SignatureChecker check(signature, 1, 1);
  const TensorType &input = check.floatInput(0);
  check.expectOutput(0, kScalar);
  if (MaybeError error = check.finish())
    return *error;
  return LargestMagnitudeCall{input.dtype, input.numElements()};
}

Expected<QuantizeF8Call> checkQuantizeF8(const KernelSignature &signature) {
  SignatureChecker check(signature, 2, 2);
  const TensorType &input = check.floatInput(0), &result = check.output(0);
  check.expectInput(1, kScalar);
  if (!check.failed())
    expectFloat8(check, "output 0", result);
  check.expectOutput(0, withElements(input, result.dtype));
  check.expectOutput(1, kScalar);
  if (MaybeError error = check.finish())
    return *error;
  return QuantizeF8Call{input.dtype, result.dtype, input.numElements()};
}

Expected<ScaledProductCall> checkScaledProduct(const KernelSignature &signature) {
  SignatureChecker check(signature, 4, 1);
  const TensorType &lhs = check.input(0), &rhs = check.input(1), &result = check.output(0);
  if (!check.failed())
    expectFloat8(check, "input 0", lhs);
  if (!check.failed())
    expectFloat8(check, "input 1", rhs);
  if (!check.failed() && lhs.dtype == DType::F8E5M2 && rhs.dtype == DType::F8E5M2)
    check.fail("both inputs are of f8e5m2, expected at most one");
  check.expectInput(2, kScalar);
  check.expectInput(3, kScalar);
  if (!check.failed() && result.dtype != DType::F32)
    check.expectOutput(0, withElements(result, DType::BF16));
  check.stringAttribute("equation");
  if (MaybeError error = check.finish())
    return *error;
  ScaledProductCall call{.lhs = lhs.dtype,
                         .rhs = rhs.dtype,
                         .result = result.dtype,
                         .lhsElements = lhs.numElements(),
                         .rhsElements = rhs.numElements(),
                         .resultElements = result.numElements(),
                         .widened = signature,
                         .lowering = {}};
  call.widened.inputs = {withElements(lhs, DType::BF16), withElements(rhs, DType::BF16)};
  Expected<EinsumLowering> lowering = planEinsum(call.widened);
  if (!lowering)
    return lowering.error();
  call.lowering = std::move(*lowering);
  return call;
}

} // namespace dtc
