//===- GpuMain.cpp - Tests that need a GPU --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Without a GPU the program says why and exits with 77, which ctest reports as skipped.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/CudaBackend.h"

#include <cstdio>
#include <gtest/gtest.h>

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  dtc::Expected<int> gpus = dtc::runtime::countGpus();
  if (!gpus && !testing::GTEST_FLAG(list_tests)) {
    std::printf("skipped: %s\n", gpus.error().message.c_str());
    return 77;
  }
  return RUN_ALL_TESTS();
}
