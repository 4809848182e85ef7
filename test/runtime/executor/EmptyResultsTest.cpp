//===- EmptyResultsTest.cpp - Kernel calls whose results are empty --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/executor/Session.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/TimeGuard.h"

#include <gtest/gtest.h>

namespace emptyResultsTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

namespace {

/// Too many rows to go through in any time, though they have no elements.
constexpr int64_t kRows = int64_t{1} << 57;

/// Calls each kernel that goes through rows or heads with empty tensors.
struct EmptyPlan : PlanBuilder {
  EmptyPlan() {
    schedule(task("empty"));
    Shape rows{kRows, 0}, cache{1, kRows, 0}, heads{kRows, 0, 2, 2}, sums{kRows, 2, 0};
    uint32_t position = buffer(DType::I32, {1});
    kernel("fill", {}, {position});
    kernel("softmax", empty({rows}), empty({rows}));
    kernel("softmax_grad", empty({rows, rows}), empty({rows}));
    std::vector<uint32_t> operands = empty({cache, cache});
    operands.push_back(position);
    kernel("cache_update", operands, empty({cache}));
    kernel("attention", empty({heads, heads, heads}), empty({heads, sums}));
    kernel("attention_grad", empty({heads, heads, heads, heads, sums, heads}),
           empty({heads, heads, heads}));
  }
  std::vector<uint32_t> empty(const std::vector<Shape> &shapes) {
    std::vector<uint32_t> buffers;
    for (const Shape &shape : shapes)
      buffers.push_back(buffer(DType::F32, shape));
    return buffers;
  }
};

} // namespace

TEST(EmptyResults, AreNotComputed) {
  EmptyPlan builder;
  // A result beside them is.
  uint32_t out = builder.buffer(DType::F32, {2}, plan::Buffer::OUTPUT);
  (*builder.kernel("fill", {}, {out}).mutable_attributes())["value"] = floatAttribute(3);
  builder.output("out", DType::F32, {2}, {{}}, out);
  SessionOptions options;
  options.profile = true;
  auto session = take(Session::create(builder.build(), createCpuBackend(), options));
  TimeGuard guard(std::chrono::seconds(30), "kernels with empty results");
  ASSERT_OK(session->step());
  EXPECT_EQ(take(session->getOutput("out")).as<float>()[1], 3);
  for (const auto &entry : session->profile())
    EXPECT_EQ(entry.calls, entry.name == "fill" ? 2u : 0u) << entry.name;
}

TEST(EmptyResults, AreOfCallsThatAreChecked) {
  EmptyPlan builder;
  builder.kernel("softmax", builder.empty({{kRows, 0}}), builder.empty({{0, kRows}}));
  EXPECT_ERROR(Session::create(builder.build(), createCpuBackend()),
               "task \"empty\", instruction 6 (kernel softmax)");
}

} // namespace emptyResultsTest
