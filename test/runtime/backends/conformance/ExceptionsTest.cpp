//===- ExceptionsTest.cpp - Tests of the list of exceptions ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/conformance/Exceptions.h"

#include "plan/KernelTable.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>
#include <utility>

namespace exceptionsTest {

using namespace dtc;
using namespace dtc::runtime::test;

TEST(Exceptions, EachNamesAKernelOnce) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const RoundingException &exception : kRoundingExceptions) {
    EXPECT_TRUE(std::ranges::any_of(allKernels(), [&](const KernelInfo &kernel) {
      return kernel.name == exception.kernel;
    })) << exception.kernel;
    EXPECT_TRUE(seen.emplace(exception.backend, exception.kernel).second) << exception.kernel;
    EXPECT_FALSE(exception.reason.empty()) << exception.kernel;
  }
}

TEST(Exceptions, HoldForTheirBackendAndTheirTypesAlone) {
  EXPECT_TRUE(roundsBetween("cuda", "attention", DType::BF16));
  EXPECT_TRUE(roundsBetween("cuda", "attention", DType::F16));
  EXPECT_FALSE(roundsBetween("rocm", "attention", DType::BF16));
  EXPECT_FALSE(roundsBetween("cuda", "einsum", DType::BF16));
  EXPECT_TRUE(roundsBetween("cpu", "attention", DType::BF16));
  EXPECT_FALSE(roundsBetween("cpu", "attention", DType::F16));
  EXPECT_FALSE(roundsBetween("cuda", "attention", DType::F32));
}

} // namespace exceptionsTest
