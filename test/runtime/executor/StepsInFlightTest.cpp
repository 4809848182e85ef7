//===- StepsInFlightTest.cpp - Tests of two steps in flight ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/Session.h"

#include "test/lib/plans/AsyncBackend.h"
#include "test/lib/plans/ChainPlan.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/FakeBackend.h"
#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/TestPlans.h"
#include "test/lib/plans/TrainStep.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

namespace stepsInFlightTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

namespace {

HostTensor tokensFrom(int32_t first) {
  HostTensor tokens(TensorType{DType::I32, {8, 6}});
  std::iota(tokens.as<int32_t>(), tokens.as<int32_t>() + 48, first);
  return tokens;
}

/// The sum of those tokens.
float sumFrom(int32_t first) {
  int32_t sum = 47 * 48 / 2 + 48 * first;
  return static_cast<float>(sum);
}

/// A plan of programs with a kernel each, none where it is empty.
std::shared_ptr<plan::Plan> gatedPlan(const std::vector<std::string> &kernels) {
  PlanBuilder builder;
  builder.pipelineAxis("pp", std::ssize(kernels));
  for (size_t i = 0; i < kernels.size(); ++i) {
    builder.inProgram(static_cast<int>(i));
    builder.task("step");
    if (!kernels[i].empty())
      builder.kernel(kernels[i], {}, {});
    builder.schedule(0);
  }
  return builder.build();
}

std::unique_ptr<Session> open(std::shared_ptr<const plan::Plan> plan,
                              std::shared_ptr<const Backend> backend, SessionOptions options = {}) {
  options.stepsInFlight = 2;
  options.openFabric = asyncFabric();
  auto session = Session::create(std::move(plan), std::move(backend), options);
  EXPECT_OK(session);
  return std::move(*session);
}

float scalar(const Session &session, const std::string &name) {
  auto value = session.getOutput(name);
  EXPECT_OK(value);
  return value ? *value->as<float>() : NAN;
}

/// A training session on devices that wait at the gate for the norm of the gradient, once a step
/// for each device.
class StepsInFlight : public ::testing::Test {
protected:
  void start(const TrainingStrategy &strategy = {}, SessionOptions options = {}) {
    session = open(trainingPlan(strategy), createAsyncBackend(gate), std::move(options));
    ASSERT_OK(session->initializeStates(5));
    const double rates[] = {0.1, 0.05, 0.02, 0.01};
    ASSERT_OK(session->setLearningRates(0, rates));
  }
  /// A session must not wait for the gate for ever where a test has failed.
  void TearDown() override { gate->open(); }

  MaybeError startStep(int32_t firstToken) {
    if (MaybeError error = session->setInput("tokens", tokensFrom(firstToken)))
      return error;
    return session->startStep();
  }

  int64_t applied() const {
    auto steps = stepStateOf(*session, plan::State::APPLIED_STEPS);
    EXPECT_OK(steps);
    return steps ? static_cast<int64_t>(*steps) : -1;
  }

  std::shared_ptr<KernelGate> gate = std::make_shared<KernelGate>("sqrt");
  std::unique_ptr<Session> session;
};

} // namespace

TEST_F(StepsInFlight, TheNextStepIsEnqueuedBeforeTheFirstHasEnded) {
  start();
  ASSERT_OK(startStep(1));
  EXPECT_FALSE(session->stepIsDone());
  ASSERT_OK(startStep(2));
  EXPECT_EQ(gate->enqueued(), 2u);
  EXPECT_EQ(session->stepsInFlight(), 2u);
  EXPECT_FALSE(session->stepIsDone());
  EXPECT_ERROR(startStep(3), "2 steps are in flight, as many as the session may have; call "
                             "finishStep() before");
  gate->let(1);
  ASSERT_OK(session->finishStep());
  EXPECT_FALSE(session->stepIsDone());
  // Outputs that are read are of the first step, whatever the second does.
  float loss = scalar(*session, "loss");
  EXPECT_EQ(scalar(*session, "token_sum"), sumFrom(1));
  EXPECT_NEAR(scalar(*session, "grad_norm"), 2 * std::sqrt(loss), 1e-3);
  EXPECT_EQ(applied(), 1);
  ASSERT_OK(startStep(3));
  EXPECT_EQ(scalar(*session, "loss"), loss);
  EXPECT_EQ(scalar(*session, "token_sum"), sumFrom(1));
  EXPECT_EQ(applied(), 1);
  Event::TimePoint first = session->lastStepEnd();
  gate->open();
  ASSERT_OK(session->finishStep());
  EXPECT_LT(scalar(*session, "loss"), loss);
  EXPECT_EQ(scalar(*session, "token_sum"), sumFrom(2));
  EXPECT_EQ(applied(), 2);
  EXPECT_GT(session->lastStepEnd(), first);
  ASSERT_OK(session->finishStep());
  EXPECT_EQ(scalar(*session, "token_sum"), sumFrom(3));
  EXPECT_EQ(applied(), 3);
  EXPECT_ERROR(session->finishStep(), "no step is in flight");
}

TEST_F(StepsInFlight, TheSecondMayHaveEndedToo) {
  start();
  gate->open();
  ASSERT_OK(startStep(1));
  ASSERT_OK(startStep(2));
  ASSERT_OK(session->finishStep());
  EXPECT_EQ(scalar(*session, "token_sum"), sumFrom(1));
  EXPECT_EQ(applied(), 1);
  ASSERT_OK(session->finishStep());
  EXPECT_EQ(scalar(*session, "token_sum"), sumFrom(2));
  EXPECT_EQ(applied(), 2);
  // At rest the states are those that are there.
  ASSERT_OK(setStepState(*session, plan::State::APPLIED_STEPS, {7}));
  EXPECT_EQ(applied(), 7);
}

TEST_F(StepsInFlight, OnAHostThatComputesEachHasItsResults) {
  auto session = open(trainingPlan({2, 2, 2}), createFakeBackend());
  ASSERT_OK(session->initializeStates(5));
  const double rates[] = {0.1, 0.1};
  ASSERT_OK(session->setLearningRates(0, rates));
  for (int32_t first : {1, 2}) {
    ASSERT_OK(session->setInput("tokens", tokensFrom(first)));
    ASSERT_OK(session->startStep());
    EXPECT_TRUE(session->stepIsDone());
  }
  for (int32_t first : {1, 2}) {
    ASSERT_OK(session->finishStep());
    EXPECT_EQ(scalar(*session, "token_sum"), sumFrom(first));
    EXPECT_EQ(*stepStateOf(*session, plan::State::APPLIED_STEPS), first);
  }
}

TEST_F(StepsInFlight, WhatNeedsTheDevicesAtRestIsAnError) {
  auto plan = trainingPlan();
  plan::Plan copy = *plan;
  copy.set_entry("again");
  *plan->add_entry_points() = copy;
  session = open(plan, createAsyncBackend(gate));
  Session *again = session->findEntry("again");
  ASSERT_OK(session->initializeStates(5));
  const double rates[] = {0.1, 0.1};
  for (Session *each : {session.get(), again}) {
    ASSERT_OK(each->setLearningRates(0, rates));
    ASSERT_OK(each->setInput("tokens", tokensFrom(0)));
  }
  ASSERT_OK(session->startStep());
  const char *remedy = " while a step is in flight; call finishStep() before";
  EXPECT_ERROR(session->step(), std::string("step() is called") + remedy);
  EXPECT_ERROR(again->startStep(),
               std::string("a step of another entry point is started") + remedy);
  EXPECT_ERROR(session->getState("w"), std::string("state \"w\" is read") + remedy);
  EXPECT_ERROR(again->getState("w"), std::string("state \"w\" is read") + remedy);
  EXPECT_ERROR(session->setState("w", HostTensor(TensorType{DType::F32, {64}})),
               std::string("state \"w\" is set") + remedy);
  EXPECT_ERROR(session->initializeStates(5), std::string("states are initialized") + remedy);
  EXPECT_ERROR(session->readShards({}), std::string("states are read") + remedy);
  EXPECT_ERROR(session->writeShards({}), std::string("states are written") + remedy);
  // No step has been finished whose results could be there.
  EXPECT_ERROR(session->getOutput("loss"), std::string("output \"loss\" is read") + remedy);
  EXPECT_ERROR(session->getState("dtc.applied_steps"), remedy);
  gate->open();
  ASSERT_OK(session->finishStep());
  EXPECT_OK(session->getState("w"));
  EXPECT_OK(session->getOutput("loss"));
  EXPECT_OK(again->step());
}

TEST_F(StepsInFlight, OfATensorOnlyTheLastStepHasTheValue) {
  PlanBuilder builder;
  uint32_t x = builder.input("x", DType::F32, {4}, {{}}).buffer();
  uint32_t y = builder.buffer(DType::F32, {4});
  builder.task("t");
  builder.kernel("copy", {x}, {y});
  builder.schedule(0);
  builder.output("y", DType::F32, {4}, {{}}, y);
  gate = std::make_shared<KernelGate>("copy");
  session = open(builder.build(), createAsyncBackend(gate));
  ASSERT_OK(session->setInput("x", HostTensor(TensorType{DType::F32, {4}})));
  ASSERT_OK(session->startStep());
  ASSERT_OK(session->startStep());
  gate->open();
  ASSERT_OK(session->finishStep());
  EXPECT_ERROR(session->getOutput("y"), "output \"y\" is read while a step is in flight");
  ASSERT_OK(session->finishStep());
  EXPECT_OK(session->getOutput("y"));
}

//===----------------------------------------------------------------------===//
// The same numbers
//===----------------------------------------------------------------------===//

namespace {

/// All scalars of some steps, and a state after them.
template <typename Step> std::vector<std::byte> numbersOf(Session &session, const Step &step) {
  std::vector<std::byte> bytes;
  EXPECT_OK(session.initializeStates(5));
  const double rates[] = {0.1, 0.05, 0.02, 0.01};
  EXPECT_OK(session.setLearningRates(0, rates));
  auto read = [&] {
    for (const char *name : {"loss", "grad_norm", "token_sum"}) {
      auto value = session.getOutput(name);
      EXPECT_OK(value);
      bytes.insert(bytes.end(), value->bytes.begin(), value->bytes.end());
    }
  };
  step(read);
  auto w = session.getState("w");
  EXPECT_OK(w);
  bytes.insert(bytes.end(), w->bytes.begin(), w->bytes.end());
  return bytes;
}

void give(Session &session, int32_t step, int64_t batches) {
  for (int64_t batch = 0; batch < batches; ++batch)
    EXPECT_OK(
        session.setInput("tokens", tokensFrom(3 * step + static_cast<int32_t>(batch)), batch));
}

} // namespace

TEST_F(StepsInFlight, HaveTheBitsOfStepsOneByOne) {
  for (TrainingStrategy strategy : {TrainingStrategy{1, 1, 1}, {2, 2, 1}, {2, 1, 4}})
    for (int64_t batches : {1, 2}) {
      if (batches > 1 && strategy.microbatches == 1)
        continue;
      SessionOptions options{.batches = batches};
      auto host = open(trainingPlan(strategy), createFakeBackend(), options);
      std::vector<std::byte> expected = numbersOf(*host, [&](const auto &read) {
        for (int32_t step = 1; step <= 4; ++step) {
          give(*host, step, batches);
          ASSERT_OK(host->step());
          read();
        }
      });
      auto async = open(trainingPlan(strategy), createAsyncBackend(), options);
      EXPECT_EQ(numbersOf(*async,
                          [&](const auto &read) {
                            for (int32_t step = 1; step <= 4; ++step) {
                              give(*async, step, batches);
                              ASSERT_OK(async->startStep());
                              if (step == 1)
                                continue;
                              ASSERT_OK(async->finishStep());
                              read();
                            }
                            ASSERT_OK(async->finishStep());
                            read();
                          }),
                expected);
    }
}

TEST_F(StepsInFlight, MessagesAndAsyncCollectivesKeepTheirOrder) {
  ChainStrategy strategy{3, 2, 4, ""};
  auto chain = open(chainPlan(strategy), createAsyncBackend());
  ASSERT_OK(chain->startStep());
  for (int step = 0; step < 5; ++step) {
    ASSERT_OK(chain->startStep());
    ASSERT_OK(chain->finishStep());
  }
  ASSERT_OK(chain->finishStep());
  auto sum = chain->getOutput("sum");
  ASSERT_OK(sum);
  EXPECT_EQ(std::vector<float>(sum->as<float>(), sum->as<float>() + sum->type.numElements()),
            chainSum(strategy));

  // Its state changes in each step.
  std::vector<std::byte> states[2];
  for (bool together : {false, true}) {
    auto session = open(overlapPlan(/*async=*/true), createAsyncBackend());
    ASSERT_OK(session->initializeStates(3));
    for (int step = 0; step < 6; ++step) {
      ASSERT_OK(session->startStep());
      if (!together || step > 0)
        ASSERT_OK(session->finishStep());
    }
    if (together)
      ASSERT_OK(session->finishStep());
    auto w = session->getState("w");
    ASSERT_OK(w);
    states[together] = w->bytes;
  }
  EXPECT_EQ(states[0], states[1]);
}

TEST_F(StepsInFlight, TimesAreThoseOfTheirStep) {
  SessionOptions options;
  options.profile = true;
  options.traceSteps = 2;
  start({}, options);
  gate->open();
  for (int32_t step : {1, 2, 3}) {
    ASSERT_OK(startStep(step));
    if (step > 1)
      ASSERT_OK(session->finishStep());
  }
  auto callsOf = [&](const std::string &name) {
    for (const ProfileEntry &entry : session->profile())
      if (entry.name == name)
        return entry.calls;
    return uint64_t{0};
  };
  EXPECT_EQ(callsOf("sqrt"), 2u);
  ASSERT_OK(session->finishStep());
  EXPECT_EQ(callsOf("sqrt"), 3u);
  std::vector<const DeviceTrace::Step *> traced = session->device(0).getTrace()->steps();
  ASSERT_EQ(traced.size(), 2u);
  const auto &rows = *traced[0], &later = *traced[1];
  ASSERT_FALSE(rows[0].empty());
  EXPECT_EQ(rows[0].size(), later[0].size());
  EXPECT_LE(rows[0].back().end, later[0].front().begin);
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

TEST_F(StepsInFlight, AnErrorIsThatOfItsStep) {
  for (int failing : {1, 2, 3}) {
    gate = std::make_shared<KernelGate>("sqrt");
    gate->failAt(static_cast<uint64_t>(failing));
    start();
    ASSERT_OK(startStep(1));
    ASSERT_OK(startStep(2));
    // Both have run, or failed, before the first is looked at.
    gate->open();
    ASSERT_EQ(gate->enqueued(), 2u);
    if (failing > 2) {
      ASSERT_OK(session->finishStep());
      ASSERT_OK(startStep(3));
    }
    for (int step = failing > 2 ? 2 : 1; step < failing; ++step) {
      ASSERT_OK(session->finishStep());
      EXPECT_EQ(scalar(*session, "token_sum"), sumFrom(step));
      EXPECT_EQ(applied(), step);
    }
    EXPECT_ERROR(session->finishStep(), "device 0: the kernel failed");
    while (session->stepsInFlight() > 0)
      EXPECT_ERROR(session->finishStep(), "device 0: the kernel failed");
    EXPECT_ERROR(startStep(4), "device 0: the kernel failed");
    EXPECT_ERROR(session->getState("w"), "device 0: the kernel failed");
    EXPECT_ERROR(session->getOutput("loss"), "device 0: the kernel failed");
  }
}

/// The error may be found while the next step is enqueued.
TEST_F(StepsInFlight, AnErrorThatTheNextStepMeetsIsNotItsOwn) {
  gate->failAt(1);
  start();
  gate->open();
  ASSERT_OK(startStep(1));
  while (!session->stepIsDone())
    std::this_thread::yield();
  ASSERT_OK(startStep(2));
  EXPECT_TRUE(session->stepIsDone());
  EXPECT_ERROR(session->finishStep(), "device 0: the kernel failed");
  EXPECT_ERROR(session->finishStep(), "device 0: the kernel failed");
}

TEST_F(StepsInFlight, ADeviceThatFailsEndsTheStepsOfTheOthers) {
  gate->failAt(6);
  start({2, 2, 1});
  ASSERT_OK(startStep(1));
  ASSERT_OK(startStep(2));
  gate->open();
  ASSERT_OK(session->finishStep());
  EXPECT_EQ(scalar(*session, "token_sum"), sumFrom(1));
  EXPECT_ERROR(session->finishStep(), ": the kernel failed");
}

TEST_F(StepsInFlight, ASessionEndsWithThem) {
  start({2, 1, 1});
  ASSERT_OK(startStep(1));
  ASSERT_OK(startStep(2));
  gate->open();
  session.reset();
  EXPECT_EQ(gate->enqueued(), 4u);
}

//===----------------------------------------------------------------------===//
// Stalls
//===----------------------------------------------------------------------===//

TEST_F(StepsInFlight, AStallIsTheErrorOfItsStep) {
  for (int stalled : {1, 2}) {
    gate = std::make_shared<KernelGate>("test_gate");
    gate->let(static_cast<uint64_t>(stalled - 1));
    std::vector<std::string> reports;
    SessionOptions options{.stallTimeout = 0.1};
    options.onHang = [&](const Error &error) {
      reports.push_back(error.message);
      gate->open(); // a program would end here
    };
    session = open(gatedPlan({"test_gate", ""}), createAsyncBackend(gate), options);
    ASSERT_OK(session->startStep());
    ASSERT_OK(session->startStep());
    for (int step = 1; step < stalled; ++step)
      ASSERT_OK(session->finishStep());
    MaybeError error = session->finishStep();
    EXPECT_ERROR(error, "no device has come to another instruction for 0.1 s; ");
    EXPECT_ERROR(error, "\n  device 0 (pp=0) runs task \"step\" for microbatch 0\n");
    EXPECT_ERROR(error, "\n  device 1 (pp=1) has finished the step");
    EXPECT_EQ(reports, std::vector<std::string>{messageOf(error)});
    session.reset();
  }
}

TEST_F(StepsInFlight, AStallSaysWhichDeviceIsAStepAhead) {
  // The second device gets the message of the first step, and waits for that of the second, which
  // the first device sends after what it stands still at.
  PlanBuilder builder;
  builder.pipelineAxis("pp", 2);
  for (int program : {0, 1}) {
    builder.inProgram(program);
    uint32_t x = builder.buffer(DType::F32, {4});
    auto kind = program == 0 ? plan::Transfer::SEND : plan::Transfer::RECEIVE;
    uint32_t transfer = builder.transfer(kind, static_cast<uint32_t>(1 - program), 0, {x});
    builder.task("message");
    if (program == 0)
      (*builder.kernel("fill", {}, {x}).mutable_attributes())["value"] = floatAttribute(1);
    builder.startTransfer(transfer);
    builder.finishTransfer(transfer);
    builder.schedule(0);
    builder.task("work");
    if (program == 0)
      builder.kernel("test_gate", {}, {});
    builder.schedule(1);
  }
  gate = std::make_shared<KernelGate>("test_gate");
  SessionOptions options{.stallTimeout = 0.1};
  options.onHang = [&](const Error &) { gate->open(); };
  session = open(builder.build(), createAsyncBackend(gate), options);
  ASSERT_OK(session->startStep());
  ASSERT_OK(session->startStep());
  MaybeError error = session->finishStep();
  EXPECT_ERROR(error, "\n  device 0 (pp=0) runs task \"work\" for microbatch 0\n");
  EXPECT_ERROR(error, "\n  device 1 (pp=1) runs task \"message\" for microbatch 0, a step ahead "
                      "of others");
}

} // namespace stepsInFlightTest
