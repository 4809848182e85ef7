//===- SessionTest.cpp - Tests of sessions --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/Session.h"

#include "runtime/fabrics/local/LocalFabric.h"
#include "support/Memory.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/FakeBackend.h"
#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/TestPlans.h"
#include "test/lib/plans/TrainStep.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>

namespace sessionTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

static std::unique_ptr<Session> makeSession(std::shared_ptr<const plan::Plan> plan,
                                            const SessionOptions &options = {}) {
  auto session = Session::create(std::move(plan), createFakeBackend(), options);
  EXPECT_OK(session);
  return std::move(*session);
}

template <typename T> static HostTensor tensorOf(TensorType type, const std::vector<T> &values) {
  HostTensor tensor(std::move(type));
  std::memcpy(tensor.bytes.data(), values.data(), values.size() * sizeof(T));
  return tensor;
}

static HostTensor someTokens(int32_t first = 0) {
  std::vector<int32_t> values(48);
  std::iota(values.begin(), values.end(), first);
  return tensorOf(TensorType{DType::I32, {8, 6}}, values);
}

static float scalar(const Session &session, const std::string &name) {
  auto value = session.getOutput(name);
  EXPECT_OK(value);
  return value ? *value->as<float>() : NAN;
}

TEST(Session, TrainsAndMatchesOneDeviceOnEveryStrategy) {
  std::vector<std::byte> reference;
  std::vector<float> losses;
  for (TrainingStrategy strategy : {TrainingStrategy{1, 1, 1},
                                    {2, 1, 1},
                                    {1, 4, 1},
                                    {2, 2, 2},
                                    {4, 4, 1},
                                    {2, 1, 4},
                                    {1, 1, 8}}) {
    auto session = makeSession(trainingPlan(strategy));
    ASSERT_OK(session->initializeStates(5));
    ASSERT_OK(session->setInput("tokens", someTokens()));
    std::vector<float> seen;
    for (int step = 1; step <= 5; ++step) {
      ASSERT_OK(trainStep(*session, 0.1));
      seen.push_back(scalar(*session, "loss"));
      EXPECT_EQ(scalar(*session, "token_sum"), 47 * 48 / 2);
      EXPECT_NEAR(scalar(*session, "grad_norm"), 2 * std::sqrt(seen.back()), 1e-3);
    }
    auto w = session->getState("w");
    ASSERT_OK(w);
    EXPECT_EQ(w->type.str(), "f32[64]");
    if (losses.empty()) {
      losses = seen;
      reference = w->bytes;
      EXPECT_LT(losses.back(), losses.front() * 0.1);
    }
    // The update of an element needs no other element, so that its bits are the same.
    EXPECT_EQ(w->bytes, reference);
    for (size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(seen[i], losses[i], 1e-5f * losses[0]);
  }
}

TEST(Session, RepeatsWithTheSameBits) {
  std::vector<std::byte> first;
  for (int repeat = 0; repeat < 3; ++repeat) {
    auto session = makeSession(trainingPlan({4, 4, 2}), {.threadsPerDevice = 2});
    ASSERT_OK(session->initializeStates(5));
    ASSERT_OK(session->setInput("tokens", someTokens()));
    ASSERT_OK(trainStep(*session, 0.1));
    auto loss = session->getOutput("loss");
    ASSERT_OK(loss);
    if (first.empty())
      first = loss->bytes;
    EXPECT_EQ(loss->bytes, first);
  }
}

TEST(Session, StatesComeBackAsTheyWereSet) {
  auto session = makeSession(trainingPlan({2, 4, 1}));
  std::vector<float> values(64);
  std::iota(values.begin(), values.end(), 1.0f);
  HostTensor w = tensorOf(TensorType{DType::F32, {64}}, values);
  ASSERT_OK(session->setState("w", w));
  auto back = session->getState("w");
  ASSERT_OK(back);
  EXPECT_EQ(back->bytes, w.bytes);
  auto momentum = session->getState("w.momentum");
  ASSERT_OK(momentum);
  EXPECT_EQ(momentum->type.str(), "f32[16,4]");
  EXPECT_EQ(momentum->bytes, std::vector<std::byte>(256));
}

TEST(Session, ChecksWhatCallersGive) {
  auto session = makeSession(trainingPlan({2, 1, 1}));
  EXPECT_ERROR(session->setState("v", HostTensor()), "the plan has no state \"v\"");
  EXPECT_ERROR(session->getState("v"), "the plan has no state \"v\"");
  EXPECT_ERROR(session->setState("w", HostTensor(TensorType{DType::F32, {16, 4}})),
               "state \"w\" is f32[64], found f32[16,4]");
  EXPECT_ERROR(session->setInput("x", HostTensor()), "the plan has no input \"x\"");
  EXPECT_ERROR(session->setInput("tokens", HostTensor(TensorType{DType::F32, {8, 6}})),
               "input \"tokens\" is i32[8,6], found f32[8,6]");
  EXPECT_ERROR(session->setInput("tokens", someTokens(250)),
               "input \"tokens\": element 6 is 256; expected an index from 0 to 255");
  EXPECT_ERROR(session->setInput("tokens", someTokens(-1)), "element 0 is -1");
  EXPECT_ERROR(trainStep(*session, 0.1), "input \"tokens\" has no value");
  ASSERT_OK(session->setInput("tokens", someTokens()));
  EXPECT_ERROR(session->getOutput("loss"), "has no value before the first step");
  EXPECT_ERROR(session->getOutput("gain"), "the plan has no output \"gain\"");
  EXPECT_OK(trainStep(*session, 0.1));
}

TEST(Session, InputsSurviveThePlanThatOverwritesThem) {
  // The sum of x, then x's bytes become zeros.
  PlanBuilder builder;
  uint32_t x = builder.input("x", DType::F32, {4}, {{}}).buffer();
  uint32_t sum = builder.buffer(DType::F32, {});
  builder.task("t");
  builder.schedule(0);
  builder.kernel("reduce", {x}, {sum});
  (*builder.kernel("fill", {}, {builder.view(x, DType::F32, {4})}).mutable_attributes())["value"] =
      floatAttribute(0);
  builder.output("sum", DType::F32, {}, {}, sum);
  auto session = makeSession(builder.build());
  ASSERT_OK(session->setInput("x", tensorOf<float>({DType::F32, {4}}, {1, 2, 3, 4})));
  for (int step = 1; step <= 2; ++step) {
    ASSERT_OK(trainStep(*session, 0));
    EXPECT_EQ(scalar(*session, "sum"), 10);
  }
}

TEST(Session, KernelsSeeTheirPlaceOnTheMesh) {
  PlanBuilder builder;
  builder.axis("a", 2);
  builder.axis("micro", 3, /*temporal=*/true);
  builder.axis("b", 2);
  uint32_t position = builder.buffer(DType::I32, {3}), values = builder.buffer(DType::F32, {3});
  uint32_t squares = builder.buffer(DType::F32, {3}), sum = builder.buffer(DType::F32, {3});
  builder.task("t");
  builder.kernel("test_position", {}, {position});
  builder.kernel("convert", {position}, {values});
  builder.kernel("mul", {values, values}, {squares});
  (*builder.kernel("accumulate", {squares}, {sum}).mutable_attributes())["axis"] =
      stringAttribute("micro");
  for (uint32_t microbatch : {0, 1, 2})
    builder.schedule(0, microbatch);
  builder.output("sum", DType::F32, {12}, {{"a", "b"}}, sum);
  auto session = makeSession(builder.build());
  ASSERT_OK(trainStep(*session, 0));
  auto output = session->getOutput("sum");
  ASSERT_OK(output);
  // Only microbatches 0, 1 and 2 have squares that are 5 together.
  const float *found = output->as<float>();
  EXPECT_EQ(std::vector<float>(found, found + 12),
            (std::vector<float>{0, 5, 0, 0, 5, 3, 3, 5, 0, 3, 5, 3}));
}

TEST(Session, AFailingKernelEndsTheStepOnAllDevices) {
  PlanBuilder builder;
  builder.axis("a", 8);
  uint32_t x = builder.state("x", DType::F32, {4}, {{}}).buffer();
  builder.task("t");
  builder.kernel("test_throw", {}, {});
  builder.collective(plan::Collective::ALL_REDUCE, {"a"}, x, x);
  builder.schedule(0);
  auto session = makeSession(builder.build());
  EXPECT_ERROR(trainStep(*session, 0), "device 7: the kernel failed");
  EXPECT_ERROR(trainStep(*session, 0), "device 7: the kernel failed");
  EXPECT_ERROR(session->getState("x"), "device 7: the kernel failed");
}

TEST(Session, RefusesKernelsThatTheBackendDoesNotTake) {
  auto plan = trainingPlan();
  plan->add_locations("loss (model.mlir:3:1)");
  plan::Instruction *instruction =
      plan->mutable_programs(0)->mutable_tasks(1)->mutable_instructions(1);
  instruction->set_location(1);
  plan::KernelCall &call = *instruction->mutable_kernel();
  call.set_kernel("div"); // with the operands of mul
  EXPECT_ERROR(Session::create(plan, createFakeBackend()),
               "task \"update\", instruction 1 (kernel div, from loss (model.mlir:3:1)): the fake "
               "backend does not take this call of div");
  call.set_kernel("mull");
  EXPECT_ERROR(Session::create(plan, createFakeBackend()),
               "task \"update\", instruction 1 (kernel mull, from loss (model.mlir:3:1)): there is "
               "no kernel \"mull\"; did you mean \"mul\"?");
}

TEST(Session, RefusesPlansThatNeedMoreMemoryThanThereIs) {
  auto plan = trainingPlan({4, 1, 1});
  plan->mutable_programs(0)->set_arena_bytes(memoryLimit().bytes / 512 * 64);
  EXPECT_OK(Session::create(plan, createFakeBackend())); // pages that are not touched cost nothing
  plan->mutable_programs(0)->set_arena_bytes(memoryLimit().bytes);
  EXPECT_ERROR(Session::create(plan, createFakeBackend()), "the plan needs");
  plan = trainingPlan();
  plan->mutable_axes(1)->set_size(1);
  plan->mutable_axes(0)->set_name("other");
  EXPECT_ERROR(Session::create(plan, createFakeBackend()), "axis \"dp\"");
}

TEST(Session, RefusesMoreDevicesThanThreads) {
  PlanBuilder builder;
  builder.axis("a", kMaxLocalDevices + 1);
  EXPECT_ERROR(Session::create(builder.build(), createFakeBackend()),
               "the plan is for 1025 devices; at most 1024 run in one process");
}

TEST(Session, CountsBytesAndTime) {
  auto plan = trainingPlan({2, 2, 1});
  plan->mutable_programs(0)->mutable_tasks(1)->mutable_instructions(1)->set_flops(32);
  auto session = makeSession(plan, {.threadsPerDevice = 1, .profile = true});
  ASSERT_OK(session->setInput("tokens", someTokens()));
  ASSERT_OK(trainStep(*session, 0.1));
  ASSERT_OK(trainStep(*session, 0.1));
  // Three scalars over groups of two, on four devices, twice: 2 * (1/2) * 4 bytes each.
  EXPECT_EQ(session->communicatorBytes().of(CollectiveKind::AllReduce), 3u * 4 * 2 * 4);
  EXPECT_EQ(session->peakBytes(), plan->programs(0).arena_bytes());
  EXPECT_EQ(session->workspaceBytes(), 64u);
  std::map<std::string, ProfileEntry> byName;
  for (const ProfileEntry &entry : session->profile())
    byName[entry.name] = entry;
  EXPECT_EQ(byName["mul"].calls, 2u * 4 * 2);
  EXPECT_EQ(byName["mul"].flops, 32.0 * 4 * 2);
  EXPECT_EQ(byName["all_reduce"].calls, 3u * 4 * 2);
  EXPECT_GT(byName["all_reduce"].seconds, 0);
  EXPECT_TRUE(makeSession(trainingPlan())->profile().empty());
}

TEST(Session, TracesThatDoNotFitInMemoryAreRefused) {
  SessionOptions options;
  options.traceSteps = 1;
  EXPECT_OK(Session::create(trainingPlan(), createFakeBackend(), options));
  options.traceSteps = size_t{1} << 50;
  EXPECT_ERROR(Session::create(trainingPlan(), createFakeBackend(), options),
               "the trace of 1125899906842624 steps needs ");
}

TEST(Session, ABatchThatAStepDoesNotHaveIsAnError) {
  auto backend = createFakeBackend();
  auto prepared = PreparedPlan::create(trainingPlan(), *backend, /*threads=*/1);
  ASSERT_OK(prepared);
  for (int64_t batches : {1, 3}) {
    auto created = Session::create(*prepared, backend, {.batches = batches});
    ASSERT_OK(created);
    Session *session = created->get();
    EXPECT_OK(session->setInput("tokens", someTokens(), batches - 1));
    for (int64_t batch : {batches, int64_t{-1}, INT64_MAX, INT64_MIN}) {
      std::string part = "is set for batch " + std::to_string(batch) + "; a step has " +
                         std::to_string(batches) + (batches == 1 ? " batch," : " batches,");
      EXPECT_ERROR(session->setInput("tokens", someTokens(), batch), "input \"tokens\" " + part);
    }
  }
}

TEST(Session, OutputsAreThoseOfTheEntryPointThatRanLast) {
  auto plan = trainingPlan({2, 1, 1});
  plan::Plan copy = *plan;
  copy.set_entry("again");
  *plan->add_entry_points() = copy;
  auto session = makeSession(plan);
  Session *again = session->findEntry("again");
  ASSERT_OK(session->initializeStates(5));
  ASSERT_OK(session->setInput("tokens", someTokens()));
  ASSERT_OK(again->setInput("tokens", someTokens(100)));
  ASSERT_OK(trainStep(*session, 0));
  EXPECT_EQ(scalar(*session, "token_sum"), 47 * 48 / 2);
  EXPECT_ERROR(again->getOutput("token_sum"), "has no value before the first step");
  // The entryPoint's values lie where the plan's were.
  ASSERT_OK(trainStep(*again, 0));
  EXPECT_EQ(scalar(*again, "token_sum"), 47 * 48 / 2 + 48 * 100);
  EXPECT_ERROR(
      session->getOutput("token_sum"),
      "output \"token_sum\" is of a step before the last one, which was of the entry point "
      "\"again\" and uses the same memory; read it before that");
  ASSERT_OK(trainStep(*session, 0));
  EXPECT_EQ(scalar(*session, "token_sum"), 47 * 48 / 2);
  EXPECT_ERROR(again->getOutput("token_sum"), "which was of the plan's own entry point");
}

TEST(Session, AFailureOfOneEntryPointIsKnownToTheOthers) {
  auto build = [](const char *kernel) {
    PlanBuilder builder;
    builder.axis("a", 2);
    builder.state("x", DType::F32, {4}, {{}});
    builder.task("t");
    builder.kernel(kernel, {}, {});
    builder.schedule(0);
    return builder.build();
  };
  auto plan = build("test_sleep");
  *plan->add_entry_points() = *build("test_throw");
  plan->mutable_entry_points(0)->set_entry("broken");
  *plan->add_entry_points() = *build("test_sleep");
  plan->mutable_entry_points(1)->set_entry("other");
  auto session = makeSession(plan);
  ASSERT_OK(trainStep(*session, 0));
  const char *failure = "device 1: the kernel failed";
  EXPECT_ERROR(trainStep(*session->findEntry("broken"), 0), failure);
  EXPECT_ERROR(trainStep(*session, 0), failure);
  // Neither of them changes it.
  EXPECT_OK(session->getState("x"));
  EXPECT_ERROR(session->setState("x", HostTensor(TensorType{DType::F32, {4}})), failure);
  EXPECT_ERROR(trainStep(*session->findEntry("other"), 0), failure);
}

TEST(Session, StatesAreLostWhereAStepThatChangesThemFails) {
  PlanBuilder builder;
  builder.axis("a", 2);
  uint32_t x = builder.state("x", DType::F32, {4}, {{}}).buffer();
  builder.task("t");
  builder.kernel("mul", {x, x}, {x});
  builder.kernel("test_throw", {}, {});
  builder.schedule(0);
  auto session = makeSession(builder.build());
  EXPECT_OK(session->getState("x"));
  EXPECT_ERROR(trainStep(*session, 0), "the kernel failed");
  EXPECT_ERROR(session->getState("x"), "the kernel failed");
}

} // namespace sessionTest
