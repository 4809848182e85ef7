//===- AsyncVerifierTest.cpp - Checks of buckets, permutes and waits -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanVerifier.h"

#include "plan/RangeCounts.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/TestPlans.h"

#include <gtest/gtest.h>
#include <random>

namespace asyncVerifierTest {

using namespace dtc;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

namespace {

/// States x, y, z: f32[32] and their first halves on a mesh of 2 x 3, with one task.
struct AsyncPlan : PlanBuilder {
  AsyncPlan() {
    axis("a", 2);
    axis("b", 3);
    x = state("x", DType::F32, {32}, {{}}).buffer();
    y = state("y", DType::F32, {32}, {{}}).buffer();
    z = state("z", DType::F32, {32}, {{}}).buffer();
    xHalf = view(x, DType::F32, {16});
    yHalf = view(y, DType::F32, {16});
    task("t");
    schedule(0);
  }
  std::string error() { return messageOf(findPlanError(*build())); }
  /// An async collective from `input` to `output`.
  uint32_t start(uint32_t input, uint32_t output) {
    collective(plan::Collective::ALL_REDUCE, {"a"}, input, output);
    return async();
  }

  uint32_t x, y, z, xHalf, yHalf;
};

} // namespace

TEST(AsyncVerifier, AcceptsValidPlans) {
  EXPECT_OK(findPlanError(*overlapPlan(true)));
  EXPECT_OK(findPlanError(*overlapPlan(false, 8, 4)));
  AsyncPlan plan;
  // Two that read the same, one in place; both are waited for in another order.
  uint32_t first = plan.start(plan.x, plan.y), third = plan.start(plan.z, plan.z);
  plan.kernel("copy", {plan.x}, {plan.buffer(DType::F32, {32})});
  plan.wait(third);
  plan.kernel("fill", {}, {plan.z});
  plan.wait(first);
  plan.kernel("copy", {plan.y}, {plan.x});
  EXPECT_EQ(plan.error(), "");
}

TEST(AsyncVerifier, WaitsNameAnAsyncCollectiveBeforeThem) {
  auto errorOf = [](uint32_t waitsFor) {
    AsyncPlan plan;
    plan.kernel("fill", {}, {plan.z});
    plan.collective(plan::Collective::ALL_REDUCE, {"a"}, plan.z, plan.z);
    plan.start(plan.x, plan.y);
    plan.wait(2);
    plan.wait(waitsFor);
    return plan.error();
  };
  EXPECT_EQ(errorOf(0), "task \"t\", instruction 4 (wait): waits for instruction 0 (kernel fill); "
                        "expected an async one");
  EXPECT_TRUE(contains(errorOf(1), "waits for instruction 1 (all_reduce); expected an async"));
  EXPECT_TRUE(contains(errorOf(2), "waits for instruction 2 (all_reduce) a second time"));
  EXPECT_TRUE(contains(errorOf(3), "waits for instruction 3 (wait); expected an async"));
  EXPECT_TRUE(contains(errorOf(4), "waits for instruction 4; expected one before it"));
  EXPECT_TRUE(contains(errorOf(UINT32_MAX), "waits for instruction 4294967295; expected one"));
}

TEST(AsyncVerifier, EveryAsyncCollectiveIsWaitedForInItsTask) {
  AsyncPlan plan;
  plan.wait(plan.start(plan.x, plan.y));
  plan.start(plan.x, plan.y);
  EXPECT_EQ(plan.error(), "task \"t\", instruction 2 (all_reduce): is async, but the task does not "
                          "wait for it");
  plan.task("second");
  plan.wait(2);
  plan.schedule(1);
  EXPECT_TRUE(contains(plan.error(), "task \"t\", instruction 2 (all_reduce): is async"));
}

TEST(AsyncVerifier, NothingTouchesTheOperandsOfARunningCollective) {
  using Operand = uint32_t AsyncPlan::*;
  constexpr auto x = &AsyncPlan::x, y = &AsyncPlan::y, z = &AsyncPlan::z;
  constexpr auto xHalf = &AsyncPlan::xHalf, yHalf = &AsyncPlan::yHalf;
  // A kernel, a collective and an async one, from `input` to `output` while x goes to y.
  auto errorsOf = [](Operand input, Operand output) {
    std::vector<std::string> errors;
    for (int form = 0; form < 3; ++form) {
      AsyncPlan plan;
      uint32_t running = plan.start(plan.x, plan.y);
      if (form == 0)
        plan.kernel("copy", {plan.*input}, {plan.*output});
      else
        plan.collective(plan::Collective::ALL_REDUCE, {"b"}, plan.*input, plan.*output);
      if (form == 2)
        plan.wait(plan.async());
      plan.wait(running);
      errors.push_back(plan.error());
    }
    return errors;
  };
  for (const std::string &error : errorsOf(x, z))
    EXPECT_EQ(error, "");
  for (const std::string &error : errorsOf(y, z))
    EXPECT_TRUE(contains(error, "): reads buffer 5 (f32[32]), which shares bytes of the arena with "
                                "buffer 5, which instruction 0 (all_reduce) writes until the wait "
                                "for it"))
        << error;
  for (const std::string &error : errorsOf(z, y))
    EXPECT_TRUE(contains(error, "writes buffer 6 (f32[32]), which shares bytes of the arena "
                                "with buffer 5, which instruction 0 (all_reduce) writes"))
        << error;
  // The lane comes to the async one when it is through with the other.
  std::vector<std::string> overwrites = errorsOf(z, x);
  EXPECT_EQ(overwrites[2], "");
  for (int form : {0, 1})
    EXPECT_TRUE(
        contains(overwrites[form], "instruction 0 (all_reduce) reads until the wait for it"))
        << overwrites[form];
  AsyncPlan parts;
  uint32_t running = parts.start(parts.x, parts.y);
  parts.kernel("fill", {}, {parts.xHalf});
  parts.wait(running);
  EXPECT_TRUE(contains(parts.error(), "writes buffer 3 (f32[16]), which shares bytes of the arena "
                                      "with buffer 0"));
  for (Operand part : {xHalf, yHalf}) {
    AsyncPlan again;
    again.start(again.x, again.y);
    again.kernel("fill", {}, {again.*part});
    EXPECT_TRUE(contains(again.error(), "until the wait for it"));
  }
}

TEST(AsyncVerifier, OutputsHoldTheirValuesFromTheWaitOn) {
  AsyncPlan plan;
  uint32_t fresh = plan.buffer(DType::F32, {32});
  uint32_t running = plan.start(plan.x, fresh);
  plan.wait(running);
  plan.output("fresh", DType::F32, {32}, {{}}, fresh);
  EXPECT_EQ(plan.error(), "");
  AsyncPlan unread;
  fresh = unread.buffer(DType::F32, {32});
  unread.wait(unread.start(fresh, unread.y));
  EXPECT_TRUE(contains(unread.error(), "is read before it is written"));
}

TEST(AsyncVerifier, TensorsOfABucketLieApart) {
  using Pairs = std::vector<std::pair<uint32_t, uint32_t>>;
  auto errorOf = [](auto makeTensors) {
    AsyncPlan plan;
    plan.bucket(plan::Collective::ALL_REDUCE, {"a"}, makeTensors(plan));
    return plan.error();
  };
  EXPECT_EQ(errorOf([](AsyncPlan &p) {
              return Pairs{{p.x, p.x}, {p.z, p.y}, {p.z, p.buffer(DType::F32, {32})}};
            }),
            "");
  EXPECT_EQ(errorOf([](AsyncPlan &p) {
              return Pairs{{p.x, p.y}, {p.z, p.y}};
            }),
            "task \"t\", instruction 0 (all_reduce): the output of tensor 0 and the output of "
            "tensor 1 share bytes of the arena");
  EXPECT_TRUE(contains(errorOf([](AsyncPlan &p) {
                         return Pairs{{p.x, p.y}, {p.y, p.z}};
                       }),
                       "the input of tensor 1 and the output of tensor 0 share bytes"));
  EXPECT_TRUE(contains(errorOf([](AsyncPlan &p) {
                         return Pairs{{p.x, p.x}, {p.x, p.z}};
                       }),
                       "the input of tensor 1 and the output of tensor 0 share bytes"));
  EXPECT_TRUE(contains(errorOf([](AsyncPlan &p) {
                         return Pairs{{p.xHalf, p.yHalf}, {p.z, p.y}};
                       }),
                       "share bytes"));
  EXPECT_TRUE(contains(errorOf([](AsyncPlan &p) {
                         return Pairs{{p.x, p.y}, {p.z, p.xHalf}};
                       }),
                       "tensor 1: the output is f32[16]; the input f32[32]"));
}

TEST(AsyncVerifier, Permutes) {
  auto errorOf = [](const Axes &axes, const Axes &sourceAxes, const Shape &output = {32}) {
    AsyncPlan plan;
    plan.permute(axes, sourceAxes, plan.x, plan.buffer(DType::F32, output));
    return plan.error();
  };
  EXPECT_EQ(errorOf({"a", "b"}, {"b", "a"}), "");
  EXPECT_EQ(errorOf({"a", "b"}, {"a", "b"}), "");
  EXPECT_TRUE(contains(errorOf({"a", "b"}, {"b"}),
                       "task \"t\", instruction 0 (permute): source_axes are [b]; expected the "
                       "axes [a, b] in some order"));
  EXPECT_TRUE(contains(errorOf({"a", "b"}, {"b", "b"}), "expected the axes [a, b]"));
  EXPECT_TRUE(contains(errorOf({"a"}, {}), "source_axes are []"));
  EXPECT_TRUE(contains(errorOf({"a", "b"}, {"b", "a"}, {16}), "give f32[32]"));
  AsyncPlan other;
  other.bucket(plan::Collective::ALL_REDUCE, {"a"}, {{other.x, other.x}}).add_source_axes("a");
  EXPECT_TRUE(contains(other.error(), "has source_axes, which only a permute has"));
  AsyncPlan shifted;
  shifted.permute({"a"}, {"a"}, shifted.x, shifted.buffer(DType::F32, {32})).set_shift(1);
  EXPECT_EQ(shifted.error(), "");
  AsyncPlan negative;
  negative.permute({"a"}, {"a"}, negative.x, negative.buffer(DType::F32, {32})).set_shift(-1);
  EXPECT_TRUE(contains(negative.error(), "shift is -1, expected at least 0"));
  AsyncPlan gather;
  gather.bucket(plan::Collective::ALL_REDUCE, {"a"}, {{gather.x, gather.x}}).set_shift(1);
  EXPECT_TRUE(contains(gather.error(), "has a shift, which only a permute has"));
  AsyncPlan inPlace;
  inPlace.permute({"a"}, {"a"}, inPlace.x, inPlace.x);
  EXPECT_TRUE(contains(inPlace.error(), "(buffers 0 and 5) share bytes of the arena"));
}

TEST(AsyncVerifier, ManyCollectivesInFlightTakeLinearTime) {
  constexpr int64_t count = 20000;
  {
    AsyncPlan plan;
    std::vector<uint32_t> started;
    for (int64_t i = 0; i < count; ++i)
      started.push_back(plan.start(plan.x, plan.buffer(DType::F32, {32})));
    for (uint32_t instruction : started)
      plan.wait(instruction);
    EXPECT_EQ(plan.error(), "");
  }
  // Inputs that all overlap each other, which collectives may: each begins later than the one
  // before. That only the first of them is a value is found afterwards.
  AsyncPlan plan;
  uint32_t whole = plan.state("whole", DType::F32, {16 * count}, {{}}).buffer();
  uint64_t begin = plan.program().buffers(static_cast<int>(whole)).offset();
  std::vector<uint32_t> started;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t from = plan.view(whole, DType::F32, {16 * (count - i)});
    plan.program()
        .mutable_buffers(static_cast<int>(from))
        ->set_offset(begin + static_cast<uint64_t>(i) * 64);
    started.push_back(plan.start(from, plan.buffer(DType::F32, {16 * (count - i)})));
  }
  for (uint32_t instruction : started)
    plan.wait(instruction);
  EXPECT_TRUE(contains(plan.error(), "instruction 1 (all_reduce): the input (buffer 8, "
                                     "f32[319984]) is read before it is written"));
  // Each writes what the one before it reads.
  AsyncPlan chain;
  started.clear();
  uint32_t before = chain.buffer(DType::F32, {32});
  for (int64_t i = 0; i < count; ++i) {
    uint32_t from = chain.state(std::to_string(i), DType::F32, {32}, {{}}).buffer();
    uint32_t to = chain.buffer(DType::F32, {32});
    chain.program()
        .mutable_buffers(static_cast<int>(to))
        ->set_offset(chain.program().buffers(static_cast<int>(before)).offset());
    started.push_back(chain.start(from, to));
    before = from;
  }
  for (uint32_t instruction : started)
    chain.wait(instruction);
  EXPECT_TRUE(contains(chain.error(), "state \"0\", after the step"));
}

TEST(RangeCounts, AgreesWithCountingEveryByte) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<ByteRange> ranges;
    for (uint64_t i = 1 + random() % 12; i > 0; --i) {
      uint64_t begin = random() % 40;
      ranges.push_back({begin, begin + random() % 12});
    }
    RangeCounts counts(ranges);
    std::vector<int> bytes(64, 0);
    std::vector<ByteRange> inUse;
    for (int step = 0; step < 40; ++step) {
      if (random() % 2 && !inUse.empty()) {
        counts.add(inUse.back(), -1);
        for (uint64_t b = inUse.back().begin; b < inUse.back().end; ++b)
          --bytes[b];
        inUse.pop_back();
      } else {
        inUse.push_back(ranges[random() % ranges.size()]);
        counts.add(inUse.back(), 1);
        for (uint64_t b = inUse.back().begin; b < inUse.back().end; ++b)
          ++bytes[b];
      }
      for (const ByteRange &range : ranges) {
        bool any = false;
        for (uint64_t b = range.begin; b < range.end; ++b)
          any |= bytes[b] > 0;
        EXPECT_EQ(counts.anyIn(range), any);
      }
    }
  }
}

} // namespace asyncVerifierTest
