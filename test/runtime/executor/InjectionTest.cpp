//===- InjectionTest.cpp - Tests of injected non-finite numbers -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/Injection.h"

#include "runtime/executor/Session.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/FakeBackend.h"
#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/TrainStep.h"

#include <cmath>
#include <gtest/gtest.h>

namespace injectionTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

namespace {

constexpr float kInf = INFINITY;

/// On two devices, for two microbatches: y = x + x and z = y * x in the layer "h.0.mlp", for each
/// microbatch, and "sum", f32[6], the sum of z over the microbatches. `closes`: after it the loop
/// makes something of the sum, in the last microbatch.
std::shared_ptr<plan::Plan> twoLayerPlan(bool closes = false) {
  PlanBuilder b;
  b.axis("dp", 2);
  b.axis("micro", 2, /*temporal=*/true);
  uint32_t x = b.input("x", DType::F32, {6}, {{"dp"}}).buffer();
  uint32_t y = b.slotted(DType::F32, {3}, 2), z = b.slotted(DType::F32, {3}, 2);
  uint32_t sum = b.buffer(DType::F32, {3}, plan::Buffer::OUTPUT);
  b.task("microbatch");
  b.kernel("add", {x, x}, {y});
  b.kernel("mul", {y, x}, {z});
  (*b.kernel("accumulate", {z}, {sum}).mutable_attributes())["axis"] = stringAttribute("micro");
  if (closes)
    b.kernel("mul", {sum, sum}, {b.buffer(DType::F32, {3})});
  b.schedule(0, 0);
  b.schedule(0, 1);
  b.output("sum", DType::F32, {6}, {{"dp"}}, sum);
  b.plan.clear_locations();
  for (const char *location : {"unknown", "h.0.mlp (model.mlir:1:1)", "loss (model.mlir:2:1)"})
    b.plan.add_locations(location);
  plan::Task &task = *b.program().mutable_tasks(0);
  task.mutable_instructions(0)->set_location(1);
  task.mutable_instructions(1)->set_location(1);
  task.mutable_instructions(2)->set_location(2);
  return b.build();
}

Expected<std::unique_ptr<Session>> open(const std::vector<std::string> &texts,
                                        bool closes = false) {
  SessionOptions options;
  for (const std::string &text : texts) {
    Expected<Injection> injection = parseInjection(text);
    if (!injection)
      return injection.error();
    options.injections.push_back(*injection);
  }
  return Session::create(twoLayerPlan(closes), createFakeBackend(), options);
}

/// "sum" after each of three steps with x = 1.
std::vector<std::vector<float>> sumsOf(const std::vector<std::string> &injections) {
  std::vector<std::vector<float>> sums;
  auto session = open(injections);
  EXPECT_OK(session);
  if (!session)
    return sums;
  HostTensor x(TensorType{DType::F32, {6}});
  std::fill_n(x.as<float>(), 6, 1.0f);
  EXPECT_OK((*session)->setInput("x", x));
  for (int step = 0; step < 3; ++step) {
    EXPECT_OK(trainStep(**session, 0));
    auto sum = (*session)->getOutput("sum");
    EXPECT_OK(sum);
    sums.emplace_back(sum->as<float>(), sum->as<float>() + 6);
  }
  return sums;
}

} // namespace

TEST(Injection, ChangesOneElementInOneStepOnOneDevice) {
  std::vector<float> plain(6, 4.0f), changed = plain;
  EXPECT_EQ(sumsOf({}), (std::vector<std::vector<float>>{plain, plain, plain}));
  changed[3] = kInf;
  EXPECT_EQ(sumsOf({"op=h.0.mlp,step=2,device=1"}),
            (std::vector<std::vector<float>>{plain, changed, plain}));
  changed = plain;
  changed[2] = -kInf;
  for (const char *place : {"match=1", "match=2", "match=-1", "match=-2", "kernel=add",
                            "kernel=mul", "microbatch=1", "kernel=mul,microbatch=1"})
    EXPECT_EQ(sumsOf({std::string("device=0,step=3,op=h.0.mlp,value=-inf,element=2,") + place}),
              (std::vector<std::vector<float>>{plain, plain, changed}))
        << place;
}

// The sum begins anew with the first microbatch, and so forgets what was put there after the last.
TEST(Injection, FollowsTheKernel) {
  std::vector<float> plain(6, 4.0f), changed = plain;
  changed[0] = kInf;
  EXPECT_EQ(sumsOf({"op=loss,step=1,device=0,microbatch=1"})[0], changed);
  EXPECT_EQ(sumsOf({"op=loss,step=1,device=0,microbatch=1"})[1], plain);
  // A value that is injected with the first microbatch is added to.
  EXPECT_EQ(sumsOf({"op=loss,step=1,device=0,microbatch=0"})[0], changed);
}

TEST(Injection, IsForAMicrobatchThatTheKernelRunsFor) {
  EXPECT_OK(open({"op=unknown,step=1,device=0,microbatch=1"}, /*closes=*/true));
  EXPECT_ERROR(open({"op=unknown,step=1,device=0,microbatch=0"}, /*closes=*/true),
               "microbatch is 0, but match 1 of kernels of \"unknown\" that make floats runs for "
               "the last microbatch alone; expected 1");
}

TEST(Injection, MayBeSeveral) {
  auto sums = sumsOf({"op=h.0,step=1,device=0,value=nan", "op=h.0,step=1,device=1,element=2",
                      "op=loss,step=3,device=0,microbatch=1,element=1"});
  EXPECT_TRUE(std::isnan(sums[0][0]));
  EXPECT_EQ(std::vector<float>(sums[0].begin() + 1, sums[0].end()),
            (std::vector<float>{4, 4, 4, 4, kInf}));
  EXPECT_EQ(sums[1], std::vector<float>(6, 4.0f));
  EXPECT_EQ(sums[2], (std::vector<float>{4, kInf, 4, 4, 4, 4}));
}

TEST(Injection, NamesAPlaceThatThePlanHas) {
  EXPECT_ERROR(
      open({"op=h.1,step=1,device=0"}),
      "what is to be injected: device 0 runs no kernels of \"h.1\" that make floats; it runs "
      "kernels of h.0.mlp, loss");
  // A name is one of whole parts, from its beginning.
  for (const char *op : {"mlp", "h.0.ml", "h.", ""})
    EXPECT_ERROR(open({std::string("step=1,device=0,op=") + op}), "device 0 runs no kernels of");
  EXPECT_ERROR(open({"op=h.0,step=1,device=0,kernel=einsum"}),
               "device 0 runs no einsum kernels of \"h.0\" that make floats; it runs kernels of");
  EXPECT_ERROR(open({"op=h.0,step=1,device=2"}),
               "device is 2; expected one of the plan's devices, 0 to 1");
  for (const char *match : {"3", "-3"})
    EXPECT_ERROR(
        open({std::string("op=h.0,step=1,device=1,match=") + match}),
        std::string("match is ") + match +
            ", but device 1 has 2 kernels of \"h.0\" that make floats; expected 1 to 2, or "
            "-1 for the last");
  EXPECT_ERROR(open({"op=h.0,step=1,device=0,microbatch=2"}),
               "microbatch is 2, for which device 0 does not run the task \"microbatch\"");
  EXPECT_ERROR(open({"op=h.0,step=1,device=0,element=3"}),
               "element is 3; the kernel add makes f32[3], so expected 0 to 2");
}

TEST(Injection, IsWrittenInFields) {
  auto injection = parseInjection("step=7,value=nan,op=h.1,device=3,kernel=k,match=-2,microbatch=4,"
                                  "element=5");
  ASSERT_OK(injection);
  EXPECT_EQ(injection->op, "h.1");
  EXPECT_EQ(injection->kernel, "k");
  EXPECT_EQ(injection->match, -2);
  EXPECT_EQ(injection->step, 7);
  EXPECT_EQ(injection->device, 3);
  EXPECT_EQ(injection->microbatch, 4);
  EXPECT_EQ(injection->element, 5);
  EXPECT_TRUE(std::isnan(injection->value));

  EXPECT_ERROR(parseInjection(""), "\"\" has no value; expected op=NAME,step=S,device=D");
  EXPECT_ERROR(parseInjection("op=a,step=1"), "\"op=a,step=1\" has no device; expected op=NAME");
  EXPECT_ERROR(parseInjection("op=a,step=1,device=0,"), "\"\" has no value");
  EXPECT_ERROR(parseInjection("op=a,step,device=0"), "\"step\" has no value");
  EXPECT_ERROR(parseInjection("op=a,step=1,step=1,device=0"), "\"step\" is there twice");
  EXPECT_ERROR(parseInjection("op=a,step=1,device=0,place=3"), "\"place\" is not known; expected");
  EXPECT_ERROR(parseInjection("op=a,step=0,device=0"),
               "step is \"0\"; expected a whole number of 1 or more");
  EXPECT_ERROR(parseInjection("op=a,step=1,device=-1"),
               "device is \"-1\"; expected a whole number of 0 or more");
  EXPECT_ERROR(parseInjection("op=a,step=1x,device=0"), "step is \"1x\"; expected a whole number");
  EXPECT_ERROR(parseInjection("op=a,step=1,device=0,match=0"),
               "match is \"0\"; expected a whole number other than 0");
  EXPECT_ERROR(parseInjection("op=a,step=1,device=0,value=7"),
               "value is \"7\"; expected inf, -inf or nan");
}

} // namespace injectionTest
