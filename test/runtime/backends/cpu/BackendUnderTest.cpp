//===- BackendUnderTest.cpp - The CPU for the tests of kernels ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/Bf16Unit.h"
#include "runtime/backends/cpu/CpuBackend.h"
#include "test/runtime/backends/cpu/KernelTest.h"

namespace dtc::runtime::test {

std::unique_ptr<Backend> createBackendUnderTest(int threads) { return createCpuBackend(threads); }

std::unique_ptr<Backend> createBackendOfOwnKernels() { return createBackendUnderTest(1); }

// By units of bf16 attention rounds the weights of bf16 as well.
bool backendUnderTestRoundsOnce(const std::string &kernel) {
  return cpu::bf16Unit() == cpu::Bf16Unit::None || !kernel.starts_with("attention");
}

} // namespace dtc::runtime::test
