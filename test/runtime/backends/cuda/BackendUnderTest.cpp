//===- BackendUnderTest.cpp - CUDA for the tests of kernels --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/CudaBackend.h"
#include "test/runtime/backends/conformance/KernelTest.h"

#include <cstdlib>
#include <string_view>

namespace dtc::runtime::test {

// Its kernels have no threads of the host. Attention is tested with cuDNN and without it.
std::unique_ptr<Backend> createBackendUnderTest(int) {
  const char *cudnn = std::getenv("DTC_TEST_CUDNN");
  return createCudaBackend({.usesCudnn = !cudnn || std::string_view(cudnn) != "off"});
}

std::unique_ptr<Backend> createBackendOfOwnKernels() {
  return createCudaBackend({.usesCudnn = false});
}

// Tensor cores.
bool backendUnderTestHasUnitOf16Bits() { return true; }

} // namespace dtc::runtime::test
