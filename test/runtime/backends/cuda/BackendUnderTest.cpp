//===- BackendUnderTest.cpp - CUDA for the tests of kernels --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/CudaBackend.h"
#include "test/runtime/backends/cpu/KernelTest.h"

namespace dtc::runtime::test {

// Its kernels have no threads of the host.
std::unique_ptr<Backend> createBackendUnderTest(int) { return createCudaBackend(); }

// Tensor cores multiply weights of 16 bits.
bool backendUnderTestRoundsOnce(const std::string &kernel) {
  return kernel.find("attention") == std::string::npos;
}

} // namespace dtc::runtime::test
