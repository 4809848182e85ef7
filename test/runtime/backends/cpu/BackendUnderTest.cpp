//===- BackendUnderTest.cpp - The CPU for the tests of kernels ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/backends/cpu/Tiles.h"
#include "test/runtime/backends/conformance/KernelTest.h"

namespace dtc::runtime::test {

std::unique_ptr<Backend> createBackendUnderTest(int threads) { return createCpuBackend(threads); }

std::unique_ptr<Backend> createBackendOfOwnKernels() { return createBackendUnderTest(1); }

bool backendUnderTestHasTiles() { return cpu::hasTiles(); }

} // namespace dtc::runtime::test
