//===- OperandOverlapTest.cpp - Operands that share bytes -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/OperandOverlap.h"

#include "plan/KernelTable.h"
#include "test/lib/RandomCases.h"
#include "test/lib/plans/Expect.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <iostream>
#include <random>

namespace operandOverlapTest {

using namespace dtc;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

namespace {

/// A program whose buffers are ranges of bytes.
struct Buffers {
  plan::Plan plan;
  Mesh mesh;
  PlanContext context{plan, *plan.add_programs(), 0, mesh, {}, {}, {}, {}};

  uint32_t add(uint64_t begin, uint64_t bytes, uint32_t slots = 0) {
    uint64_t stride = (bytes + 63) / 64 * 64;
    BufferSlots copies{{begin, begin + bytes}, stride, slots};
    context.types.push_back({DType::Bool, {static_cast<int64_t>(bytes)}});
    context.ranges.push_back({begin, copies.forMicrobatch(copies.count() - 1).end});
    context.copies.push_back(copies);
    return static_cast<uint32_t>(context.copies.size() - 1);
  }
};

/// The result of checkKernelOverlap(), by comparing every pair.
bool isAllowed(const PlanContext &context, const plan::KernelCall &call) {
  for (int o = 0; o < call.outputs_size(); ++o) {
    uint32_t output = call.outputs(o);
    for (int other = 0; other < o; ++other)
      if (context.mayShareBytes(output, call.outputs(other)))
        return false;
    for (int i = 0; i < call.inputs_size(); ++i) {
      uint32_t input = call.inputs(i);
      bool inPlace = context.areSameBytes(output, input) &&
                     context.types[output] == context.types[input] &&
                     mayRunInPlace(call.kernel(), i, o);
      if (context.mayShareBytes(output, input) && !inPlace)
        return false;
    }
  }
  return true;
}

} // namespace

TEST(OperandOverlap, AgreesWithTheComparisonOfAllPairs) {
  std::mt19937_64 random(dtc::test::randomSeed());
  uint64_t allowed = 0;
  const uint64_t count = dtc::test::randomCases(20000);
  for (uint64_t c = 0; c < count; ++c) {
    Buffers buffers;
    plan::KernelCall call;
    call.set_kernel("adamw"); // which has three pairs in place
    auto addBuffer = [&] {
      auto existing = static_cast<uint32_t>(buffers.context.copies.size());
      if (existing > 0 && random() % 8 == 0)
        return static_cast<uint32_t>(random() % existing);
      // Some have no bytes. Copies often advance together, and are often interleaved.
      return buffers.add(64 * (random() % 64), 64 * (random() % 3),
                         static_cast<uint32_t>(random() % 4));
    };
    for (uint64_t i = random() % 5; i > 0; --i)
      call.add_inputs(addBuffer());
    for (uint64_t o = random() % 5; o > 0; --o)
      call.add_outputs(addBuffer());
    MaybeError error = checkKernelOverlap(buffers.context, call);
    ASSERT_EQ(!error, isAllowed(buffers.context, call)) << "call " << c << ": " << messageOf(error);
    allowed += !error;
  }
  std::cout << allowed << " of " << count << " were allowed\n";
  EXPECT_GT(allowed, 0u);
  EXPECT_LT(allowed, count);
}

TEST(OperandOverlap, ManyOperandsAreSorted) {
  // All copies of all outputs are interleaved; comparing pairs would not come to an end.
  Buffers buffers;
  plan::KernelCall call;
  call.set_kernel("concat");
  constexpr uint32_t count = 400000;
  for (uint32_t i = 0; i < count; ++i) {
    call.add_outputs(buffers.add(128 * uint64_t{i}, 64, 1 << 20));
    call.add_inputs(buffers.add(128 * uint64_t{i} + 64, 64, 1 << 20));
  }
  EXPECT_OK(checkKernelOverlap(buffers.context, call));
  call.set_inputs(7, buffers.add(128 * uint64_t{count / 2}, 64, 1 << 20));
  EXPECT_ERROR(checkKernelOverlap(buffers.context, call),
               "output 200000 (buffer 400000, bool[64]) shares bytes of the arena with input 7");
  call.set_inputs(7, buffers.add(0, 64));
  EXPECT_ERROR(checkKernelOverlap(buffers.context, call), "shares bytes of the arena with input 7");
  call.add_outputs(call.outputs(3));
  EXPECT_ERROR(checkKernelOverlap(buffers.context, call),
               "outputs 3 and 400000 share bytes of the arena (buffers 6 and 6)");
}

} // namespace operandOverlapTest
