//===- VerifyWritersTest.cpp - Tests of the verification of writers -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanVerifier.h"

#include "test/lib/plans/Expect.h"
#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/TestPlans.h"

#include <functional>
#include <gtest/gtest.h>

namespace verifyWritersTest {

using namespace dtc;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

namespace {

/// State s (buffer 0), input x (1), buffer a (2) and its view (3), all f32[8], and one task. The
/// plan is verified as it is, not converted.
struct WritersPlan : PlanBuilder {
  WritersPlan() {
    s = state("s", DType::F32, {8}, {{}}).buffer();
    x = input("x", DType::F32, {8}, {{}}).buffer();
    a = buffer(DType::F32, {8});
    viewOfA = view(a, DType::F32, {2, 4});
    schedule(task("t"));
  }
  std::string error() { return messageOf(findPlanError(plan)); }
  plan::Buffer &at(uint32_t buffer) { return *program().mutable_buffers(static_cast<int>(buffer)); }
  /// A buffer that takes the place of another.
  uint32_t reuse(uint32_t of) {
    plan::Buffer added = at(of);
    added.set_reuses(of);
    *program().add_buffers() = added;
    return static_cast<uint32_t>(program().buffers_size() - 1);
  }

  uint32_t s, x, a, viewOfA;
};

std::string errorAfter(const std::function<void(WritersPlan &)> &change) {
  WritersPlan plan;
  change(plan);
  return plan.error();
}

} // namespace

#define EXPECT_ERROR_AFTER(part, ...)                                                              \
  EXPECT_TRUE(contains(errorAfter([](WritersPlan &p) { __VA_ARGS__; }), part))
#define EXPECT_OK_AFTER(...) EXPECT_EQ(errorAfter([](WritersPlan &p) { __VA_ARGS__; }), "")

TEST(Writers, AreOneInstruction) {
  EXPECT_OK_AFTER(p.kernel("fill", {}, {p.a}));
  EXPECT_OK_AFTER(p.kernel("fill", {}, {p.a}); p.kernel("fill", {}, {p.reuse(p.a)}));
  EXPECT_ERROR_AFTER("task \"t\", instruction 1 (kernel fill) writes buffer 2, which task \"t\", "
                     "instruction 0 (kernel fill) writes; expected one writer for each value, and "
                     "another buffer for what takes its place",
                     p.kernel("fill", {}, {p.a});
                     p.kernel("fill", {}, {p.a}));
  EXPECT_ERROR_AFTER("task \"second\", instruction 0 (kernel neg) writes buffer 2, which task "
                     "\"t\", instruction 0 (kernel fill) writes",
                     p.kernel("fill", {}, {p.a});
                     p.schedule(p.task("second")); p.kernel("neg", {p.a}, {p.a}));
  // A task that does not run is a writer too.
  EXPECT_ERROR_AFTER("which task \"t\", instruction 0 (kernel fill) writes",
                     p.kernel("fill", {}, {p.a});
                     p.task("second"); p.kernel("fill", {}, {p.a}));
  EXPECT_ERROR_AFTER("(all_reduce) writes buffer 2, which task \"t\", instruction 0 (kernel fill)",
                     p.axis("dp", 2);
                     p.kernel("fill", {}, {p.a});
                     p.collective(plan::Collective::ALL_REDUCE, {"dp"}, p.a, p.a));
  // A view has the value of its buffer.
  EXPECT_ERROR_AFTER("instruction 1 (kernel fill) writes buffer 3, which task \"t\", instruction 0 "
                     "(kernel fill) writes",
                     p.kernel("fill", {}, {p.a});
                     p.kernel("fill", {}, {p.viewOfA}));
  EXPECT_ERROR_AFTER("instruction 1 (kernel fill) writes buffer 2, which",
                     p.kernel("fill", {}, {p.viewOfA});
                     p.kernel("fill", {}, {p.a}));
}

TEST(Writers, AreWhatPutsStatesAndInputsThere) {
  EXPECT_ERROR_AFTER("instruction 0 (kernel fill) writes buffer 0, which state \"s\" writes",
                     p.kernel("fill", {}, {p.s}));
  EXPECT_ERROR_AFTER("writes buffer 4, which state \"s\" writes",
                     p.kernel("fill", {}, {p.view(p.s, DType::F32, {4, 2})}));
  EXPECT_ERROR_AFTER("instruction 0 (kernel fill) writes buffer 1, which input \"x\" writes",
                     p.kernel("fill", {}, {p.x}));
}

TEST(Writers, AreTheTransfersThatReceive) {
  // Program 1 receives into buffers of its own, or into those that `choose` returns.
  auto errorOf = [](const std::function<std::vector<uint32_t>(PlanBuilder &)> &choose) {
    PlanBuilder builder;
    builder.pipelineAxis("pp", 2);
    uint32_t s = builder.state("s", DType::F32, {8}, {{}}).buffer();
    builder.transfer(plan::Transfer::SEND, 1, 0, {s});
    builder.transfer(plan::Transfer::SEND, 1, 1, {s});
    for (int program : {0, 1}) {
      builder.inProgram(program);
      builder.schedule(builder.task("t"));
      if (program == 1) {
        std::vector<uint32_t> into = choose(builder);
        for (uint32_t i : {0, 1})
          builder.transfer(plan::Transfer::RECEIVE, 0, i, {into[i]});
      }
      for (uint32_t i : {0, 1}) {
        builder.startTransfer(i);
        builder.finishTransfer(i);
      }
    }
    return messageOf(findPlanError(builder.plan));
  };
  using Chosen = std::vector<uint32_t>;
  EXPECT_EQ(errorOf([](PlanBuilder &b) {
              return Chosen{b.buffer(DType::F32, {8}), b.buffer(DType::F32, {8})};
            }),
            "");
  EXPECT_TRUE(contains(errorOf([](PlanBuilder &b) { return Chosen(2, b.buffer(DType::F32, {8})); }),
                       "program 1: transfer 1 writes buffer 0, which transfer 0 writes"));
  EXPECT_TRUE(contains(errorOf([](PlanBuilder &b) {
                         uint32_t own = b.state("own", DType::F32, {8}, {{}}).buffer();
                         return Chosen{b.buffer(DType::F32, {8}), own};
                       }),
                       "program 1: transfer 1 writes buffer 0, which state \"own\" writes"));
  EXPECT_TRUE(contains(errorOf([](PlanBuilder &b) {
                         uint32_t filled = b.buffer(DType::F32, {8});
                         b.kernel("fill", {}, {filled});
                         return Chosen{filled, b.buffer(DType::F32, {8})};
                       }),
                       "(kernel fill) writes buffer 0, which transfer 0 writes"));
}

TEST(Reuses, LieAtThePlaceOfAnEarlierValue) {
  EXPECT_OK_AFTER(p.reuse(p.a));
  EXPECT_OK_AFTER(p.view(p.reuse(p.a), DType::F32, {4, 2}));
  EXPECT_ERROR_AFTER("buffer 2: reuses buffer 3; expected one before it", p.at(p.a).set_reuses(3));
  EXPECT_ERROR_AFTER("buffer 2: reuses buffer 2; expected one before it", p.at(p.a).set_reuses(2));
  EXPECT_ERROR_AFTER("buffer 2: reuses buffer 99; expected one before it",
                     p.at(p.a).set_reuses(99));
  EXPECT_ERROR_AFTER("buffer 4: reuses buffer 3, which itself is a view of buffer 2; expected that "
                     "one",
                     p.at(p.reuse(p.a)).set_reuses(p.viewOfA));
  EXPECT_ERROR_AFTER("buffer 5: reuses buffer 4, which itself reuses buffer 2; expected that one",
                     p.reuse(p.reuse(p.a)));
  EXPECT_ERROR_AFTER("is a view of buffer 3, which itself is a view of buffer 2; expected that one",
                     p.view(p.viewOfA, DType::F32, {4, 2}));
  EXPECT_ERROR_AFTER("buffer 4: is a view of buffer 2 and reuses buffer 2; expected one of the two",
                     p.at(p.reuse(p.a)).set_view_of(p.a));
  EXPECT_ERROR_AFTER("f32[8] with 0 slots at offset 0 reuses buffer 2, f32[8] with 0 slots at "
                     "offset 128; expected as many elements of the same type at the same place",
                     p.at(p.reuse(p.a)).set_offset(0));
  EXPECT_ERROR_AFTER("reuses buffer 2, f32[8]", p.at(p.reuse(p.a)).set_dtype(plan::I32));
  EXPECT_ERROR_AFTER("reuses buffer 2, f32[8]", p.at(p.reuse(p.a)).set_shape(0, 4));
  EXPECT_ERROR_AFTER("f32[8] with 1 slots at offset 128 reuses buffer 2, f32[8] with 0 slots",
                     p.at(p.reuse(p.a)).set_slots(1));
  EXPECT_ERROR_AFTER(
      "buffer 4: has no slot map and reuses buffer 2, which has slot map 0",
      p.program().add_slot_maps()->add_slots(0);
      p.at(p.reuse(p.a)).set_slots(1); for (uint32_t shared
                                            : {p.a, p.viewOfA}) {
        p.at(shared).set_slots(1);
        p.at(shared).set_slot_map(0);
      });
}

TEST(Updates, HoldTheStateAfterTheStep) {
  auto update = [](WritersPlan &p, uint32_t buffer) {
    p.program().mutable_states(0)->set_update(buffer);
  };
  auto errorOf = [&](const std::function<void(WritersPlan &)> &change) {
    return errorAfter(change);
  };
  EXPECT_EQ(errorOf([&](WritersPlan &p) {
              uint32_t updated = p.reuse(p.s);
              p.kernel("add", {p.s, p.s}, {updated});
              update(p, updated);
            }),
            "");
  EXPECT_TRUE(contains(errorOf([&](WritersPlan &p) { update(p, 99); }),
                       "state \"s\": update: names buffer 99"));
  EXPECT_TRUE(contains(errorOf([&](WritersPlan &p) {
                         p.kernel("fill", {}, {p.a});
                         update(p, p.a);
                       }),
                       "state \"s\": its update is buffer 2, f32[8] at offset 128; expected what "
                       "it is before the step, buffer 0, f32[8] at offset 0"));
  EXPECT_TRUE(contains(errorOf([&](WritersPlan &p) {
                         uint32_t updated = p.reuse(p.s);
                         p.at(updated).clear_reuses();
                         p.at(updated).set_dtype(plan::I32);
                         p.kernel("fill", {}, {updated});
                         update(p, updated);
                       }),
                       "its update is buffer 4, i32[8] at offset 0"));
  // The same value.
  EXPECT_TRUE(contains(errorOf([&](WritersPlan &p) { update(p, p.s); }),
                       "state \"s\" has buffer 0 before and after the step; expected that its "
                       "update is another value, or none"));
  EXPECT_TRUE(contains(errorOf([&](WritersPlan &p) { update(p, p.view(p.s, DType::F32, {8})); }),
                       "state \"s\" has buffer 0 before and after the step"));
  // Not written, and written but not named.
  EXPECT_TRUE(contains(errorOf([&](WritersPlan &p) { update(p, p.reuse(p.s)); }),
                       "state \"s\", after the step: its tensor (buffer 4, f32[8]) is read before "
                       "it is written"));
  EXPECT_TRUE(contains(errorOf([&](WritersPlan &p) { p.kernel("fill", {}, {p.reuse(p.s)}); }),
                       "state \"s\", after the step: its tensor (buffer 0, f32[8]) does not hold "
                       "its value any more: buffer 4"));
}

TEST(Updates, AreMadeByEveryProgramThatHasTheState) {
  auto plan = pipelinePlan();
  plan::Program &second = *plan->mutable_programs(1);
  second.mutable_states(0)->set_name("w0");
  second.mutable_states(1)->set_parameter("w0");
  EXPECT_OK(findPlanError(*plan));
  second.mutable_states(0)->clear_update();
  EXPECT_ERROR(findPlanError(*plan), "state \"w0\" has another update in program 1 than in program "
                                     "0; what several programs have must be the same in each");
}

TEST(Loops, HaveAllMicrobatchesButTheFirst) {
  auto errorOf = [](uint32_t begin, uint32_t end) {
    WritersPlan p;
    p.axis("micro", 2, /*temporal=*/true);
    p.kernel("fill", {}, {p.a});
    p.schedule(0, 1);
    p.program().set_loop_begin(begin);
    p.program().set_loop_end(end);
    return p.error();
  };
  EXPECT_EQ(errorOf(0, 2), "");
  EXPECT_EQ(errorOf(0, 0), "schedule entry 1 is for microbatch 1, but stands outside of the loop "
                           "over microbatches, entries 0 to 0");
  EXPECT_EQ(errorOf(0, 1), "schedule entry 1 is for microbatch 1, but stands outside of the loop "
                           "over microbatches, entries 0 to 1");
  EXPECT_EQ(errorOf(1, 2), "task \"t\" runs in the loop over microbatches and outside of it, as "
                           "schedule entries 0 and 1; expected one of the two");
}

#undef EXPECT_ERROR_AFTER
#undef EXPECT_OK_AFTER

} // namespace verifyWritersTest
