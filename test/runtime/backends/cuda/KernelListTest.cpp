//===- KernelListTest.cpp - The kernels of plans ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/KernelTable.h"
#include "runtime/backends/cuda/CudaBackend.h"

#include <gtest/gtest.h>
#include <set>
#include <string>

namespace kernelListTest {

using namespace dtc;
using namespace dtc::runtime;

TEST(CudaKernelList, IsThatOfThePlans) {
  std::set<std::string> expected, present;
  for (const KernelInfo &kernel : allKernels())
    expected.emplace(kernel.name);
  for (const std::string &name : cudaKernelNames())
    present.insert(name);
  EXPECT_EQ(present, expected);
}

TEST(CudaKernelList, OtherKernelsAreErrorsThatNameThem) {
  Expected<std::unique_ptr<Kernel>> kernel = createCudaBackend()->prepare({"sort", {}, {}, {}, {}});
  ASSERT_FALSE(kernel);
  EXPECT_NE(kernel.error().message.find("the cuda backend has no kernel 'sort'"), std::string::npos)
      << kernel.error().message;
}

} // namespace kernelListTest
