//===- Exceptions.h - What backends may compute otherwise -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_RUNTIME_BACKENDS_CONFORMANCE_EXCEPTIONS_H
#define DTC_TEST_RUNTIME_BACKENDS_CONFORMANCE_EXCEPTIONS_H

#include "support/Tensor.h"

#include <array>
#include <string_view>

namespace dtc::runtime::test {

/// A kernel of a backend that rounds between its inputs and its results where the elements have 16
/// bits and a unit of the hardware multiplies matrices of them. Every other kernel gives the
/// results of f32, rounded once (expectRounded in KernelTest.h).
struct RoundingException {
  std::string_view backend; ///< Backend::name()
  std::string_view kernel;
  std::string_view reason;
  bool f16 = false; ///< the unit multiplies f16 as well as bf16
};

/// Every exception of every backend; the tests of kernels make no other.
inline constexpr std::array kRoundingExceptions = {
    RoundingException{"cpu", "attention", "the unit of bf16 multiplies weights of 16 bits"},
    RoundingException{"cpu", "attention_grad", "the unit of bf16 multiplies weights of 16 bits"},
    RoundingException{"cuda", "attention", "tensor cores multiply weights of 16 bits", true},
    RoundingException{"cuda", "attention_grad", "tensor cores multiply weights of 16 bits", true},
    RoundingException{"cuda", "cached_attention", "tensor cores multiply weights of 16 bits", true},
};

/// Whether the kernel is in the list for that backend, with elements of that type.
constexpr bool roundsBetween(std::string_view backend, std::string_view kernel, DType dtype) {
  for (const RoundingException &exception : kRoundingExceptions)
    if (exception.backend == backend && exception.kernel == kernel)
      return dtype == DType::BF16 || (dtype == DType::F16 && exception.f16);
  return false;
}

} // namespace dtc::runtime::test

#endif // DTC_TEST_RUNTIME_BACKENDS_CONFORMANCE_EXCEPTIONS_H
