//===- UniformCall.cpp - Calls for random numbers -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/UniformCall.h"

#include "calls/SignatureChecker.h"

namespace dtc {

Expected<UniformCall> checkUniform(const KernelSignature &signature) {
  SignatureChecker check(signature, 1, 1);
  const TensorType &out = check.output(0);
  if (!check.failed() && out.dtype != DType::F32)
    check.fail("output 0 is " + out.str() + ", expected f32");
  RandomMask words = checkRandomMask(check, signature, /*rateName=*/"", 0, out.shape);
  if (MaybeError error = check.finish())
    return *error;
  return UniformCall{std::move(words), out.numElements()};
}

} // namespace dtc
