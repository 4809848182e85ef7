//===- BackendUnderTest.cpp - The CPU for the tests of kernels ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/CpuBackend.h"
#include "test/runtime/backends/cpu/KernelTest.h"

namespace dtc::runtime::test {

std::unique_ptr<Backend> createBackendUnderTest(int threads) { return createCpuBackend(threads); }

bool backendUnderTestRoundsOnce(const std::string &) { return true; }

} // namespace dtc::runtime::test
