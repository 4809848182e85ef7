//===- BackendUnderTest.cpp - The CPU for the tests of kernels ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/Bf16Unit.h"
#include "runtime/backends/cpu/CpuBackend.h"
#include "test/runtime/backends/conformance/KernelTest.h"

namespace dtc::runtime::test {

std::unique_ptr<Backend> createBackendUnderTest(int threads) { return createCpuBackend(threads); }

std::unique_ptr<Backend> createBackendOfOwnKernels() { return createBackendUnderTest(1); }

bool backendUnderTestHasUnitOf16Bits() { return cpu::bf16Unit() != cpu::Bf16Unit::None; }

} // namespace dtc::runtime::test
