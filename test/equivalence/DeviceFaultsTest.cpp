//===- DeviceFaultsTest.cpp - Steps in flight, and faults of devices ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Steps that are enqueued before earlier ones are over, on the stand-in of CUDA: in every order,
// with a device that is lost, a call that fails, and too little memory.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanTypes.h"
#include "runtime/backends/cuda/CudaBackend.h"
#include "test/equivalence/DeviceTraining.h"
#include "test/lib/fabrics/NcclFabrics.h"
#include "test/lib/plans/TrainStep.h"
#include "test/standin/cuda/Standin.h"

#include <gtest/gtest.h>

namespace deviceFaultsTest {

using namespace dtc;
using namespace dtc::test;
using namespace dtc::test::devices;

constexpr Case kMlp = {"Mlp", "mlp.mlir", ""};

/// A session for steps on inputs of their own, with learning rates for all of them. Null where the
/// GPU fails before the first.
static std::unique_ptr<runtime::Session> openForSteps(const std::shared_ptr<const plan::Plan> &plan,
                                                      int steps, size_t stepsInFlight) {
  auto session = runtime::Session::create(plan, runtime::createCudaBackend(),
                                          {.stallTimeout = 0, .stepsInFlight = stepsInFlight});
  if (!session || (*session)->initializeStates(7) ||
      (*session)->setLearningRates(0, std::vector<double>(steps, 1e-2)))
    return nullptr;
  return std::move(*session);
}

/// Runs the steps with as many in flight as there may be, and calls finished() after each. The
/// error of the first that fails.
template <typename Finished>
static MaybeError runSteps(runtime::Session &session, int steps, size_t stepsInFlight,
                           const Finished &finished) {
  for (int step = 1; step <= steps || session.stepsInFlight() > 0; ++step) {
    if (step <= steps) {
      EXPECT_FALSE(setRandomInputs(session, step));
      if (MaybeError error = session.startStep())
        return error;
      if (session.stepsInFlight() < stepsInFlight)
        continue;
    }
    if (MaybeError error = session.finishStep())
      return error;
    finished();
  }
  return {};
}

static Training trainOnCuda(const std::shared_ptr<const plan::Plan> &plan, int steps,
                            size_t stepsInFlight) {
  Training run;
  auto session = openForSteps(plan, steps, stepsInFlight);
  EXPECT_TRUE(session);
  MaybeError error = runSteps(*session, steps, stepsInFlight, [&] {
    for (const char *output : {"loss", "grad_norm"})
      run.numbers.push_back(element(*session->getOutput(output)));
    run.numbers.push_back(*stepStateOf(*session, plan::State::APPLIED_STEPS));
  });
  EXPECT_FALSE(error) << error->message;
  for (const plan::State *state : distinctStates(*plan))
    run.states.emplace(state->name(), *session->getState(state->name()));
  return run;
}

TEST(DeviceOrders, StepsInFlightHaveTheBitsOfStepsOneByOne) {
  for (const Case &which : {kMlp, Case{"MlpMicrobatches", "mlp.mlir", "m=4"}}) {
    auto plan = compile(which);
    ASSERT_TRUE(plan);
    standin::reset();
    Training expected = trainOnCuda(plan, 4, /*stepsInFlight=*/1);
    ASSERT_EQ(expected.numbers.size(), 12u);
    EXPECT_EQ(expected.numbers.back(), 4);
    for (uint64_t seed = 1; seed <= 30; ++seed) {
      standin::Settings settings;
      settings.seed = seed;
      standin::reset(settings);
      ASSERT_EQ(trainOnCuda(plan, 4, /*stepsInFlight=*/2).bytes() == expected.bytes(), true)
          << "DTC_CUDA_STANDIN_SEED=" << seed;
    }
    standin::reset();
  }
}

TEST(DeviceFaults, ALostDeviceFailsTheStepThatItIsIn) {
  constexpr int kNumSteps = 3;
  auto plan = compile(kMlp);
  ASSERT_TRUE(plan);
  standin::reset();
  // The work that the GPU has done at the end of each step; all of it is in one queue.
  std::vector<uint64_t> ends;
  {
    auto session = openForSteps(plan, kNumSteps, 1);
    ASSERT_TRUE(session);
    ends.push_back(standin::counts().work);
    EXPECT_FALSE(runSteps(*session, kNumSteps, 1, [&] { ends.push_back(standin::counts().work); }));
  }
  for (int failing = 1; failing <= kNumSteps; ++failing) {
    uint64_t begin = ends[failing - 1], end = ends[failing];
    ASSERT_GT(end, begin + 20);
    for (uint64_t i = begin; i < end; i += i + 3 < end ? 3 : 1) {
      standin::reset();
      standin::failWork(i, cudaErrorIllegalAddress);
      auto session = openForSteps(plan, kNumSteps, 2);
      ASSERT_TRUE(session);
      int finished = 0;
      MaybeError error = runSteps(*session, kNumSteps, 2, [&] { ++finished; });
      ASSERT_TRUE(error) << "work " << i;
      EXPECT_NE(error->message.find("cuda 0"), std::string::npos) << error->message;
      EXPECT_EQ(finished, failing - 1) << "work " << i << " of steps that end at " << end;
    }
  }
  standin::reset();
}

/// The result of two steps, on a GPU that may fail.
static MaybeError trainTwoSteps(const std::shared_ptr<const plan::Plan> &plan) {
  auto session = runtime::Session::create(plan, runtime::createCudaBackend(), {.stallTimeout = 0});
  if (!session)
    return session.error();
  if (auto error = (*session)->initializeStates(7))
    return error;
  for (int step = 1; step <= 2; ++step) {
    if (auto error = setRandomInputs(**session, 1))
      return error;
    if (auto error = trainStep(**session, 1e-2))
      return error;
    if (auto loss = (*session)->getOutput("loss"); !loss)
      return loss.error();
  }
  return {};
}

TEST(DeviceFaults, ALostDeviceEndsTheRunWithAnError) {
  auto plan = compile(kMlp);
  ASSERT_TRUE(plan);
  standin::reset();
  EXPECT_FALSE(trainTwoSteps(plan));
  uint64_t work = standin::counts().work;
  ASSERT_GT(work, 50u);
  for (uint64_t i = 0; i < work; i += 7) {
    standin::reset();
    standin::failWork(i, cudaErrorIllegalAddress);
    MaybeError error = trainTwoSteps(plan);
    ASSERT_TRUE(error) << "work " << i;
    EXPECT_NE(error->message.find("cuda 0"), std::string::npos) << error->message;
  }
  standin::reset();
}

/// Devices that wait for one that is lost are woken, over the host and over NCCL.
TEST(DeviceFaults, OneLostDeviceEndsTheRunOfAll) {
  for (const char *layout : {"dp=2", "pp=2 m=2"}) {
    auto plan = compile({"Gpt2", kGpt2, layout});
    ASSERT_TRUE(plan);
    for (const runtime::OpenFabric &fabric :
         {runtime::OpenFabric(), runtime::testing::ncclFabric()}) {
      uint64_t work = 0;
      for (uint64_t i : {uint64_t(0), uint64_t(1), uint64_t(2), uint64_t(3)}) {
        standin::reset();
        if (i > 0) // the first run counts
          standin::failWork(i * work / 4, cudaErrorLaunchFailure);
        auto session = runtime::Session::create(plan, runtime::createCudaBackend(),
                                                {.openFabric = fabric, .stallTimeout = 0});
        ASSERT_TRUE(session) << session.error().message;
        MaybeError error = (*session)->initializeStates(7);
        for (int step = 1; step <= 3 && !error; ++step) {
          error = setRandomInputs(**session, 1);
          if (!error)
            error = trainStep(**session, 1e-2);
        }
        if (i == 0)
          work = standin::counts().work;
        EXPECT_EQ(error.has_value(), i > 0) << layout << ", work " << i * work / 4;
        if (error)
          EXPECT_NE(error->message.find("unspecified launch failure"), std::string::npos)
              << error->message;
      }
    }
  }
  standin::reset();
}

TEST(DeviceFaults, TooLittleMemoryIsFoundBeforeAnyIsTaken) {
  auto plan = compile(kMlp);
  ASSERT_TRUE(plan);
  standin::Settings settings;
  settings.memoryBytes = plan->programs(0).arena_bytes() / 2;
  standin::reset(settings);
  standin::failCall(0, cudaErrorUnknown, "cudaMalloc"); // which is not called
  auto session = runtime::Session::create(plan, runtime::createCudaBackend());
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().message.find("the plan needs "), 0u) << session.error().message;
  EXPECT_NE(session.error().message.find("but cuda 0 has "), std::string::npos)
      << session.error().message;
  EXPECT_EQ(standin::counts().allocations, 0u);
  standin::reset();
}

/// Opens a plan of four devices with so much memory, over a NCCL that would take `channels`
/// channels. The error, or nothing.
static std::string openOverNccl(const std::shared_ptr<const plan::Plan> &plan, size_t mebibytes,
                                int channels, runtime::NcclOptions options = {}) {
  standin::Settings settings;
  settings.devices = 4;
  settings.memoryBytes = mebibytes << 20;
  settings.ncclChannels = channels;
  standin::reset(settings);
  auto session = runtime::Session::create(
      plan, runtime::createCudaBackend(),
      {.openFabric = runtime::testing::ncclFabric(1, {}, options), .stallTimeout = 0});
  return session ? "" : session.error().message;
}

/// The memory of communicators is estimated before anything is allocated. Where they take more,
/// they are made before the first step.
TEST(DeviceFaults, TooLittleMemoryForCommunicatorsIsFoundBeforeTheFirstStep) {
  auto plan = compile({"Gpt2", kGpt2, "dp=2,tp=2"});
  ASSERT_TRUE(plan);
  std::string error = openOverNccl(plan, 1024, /*channels=*/24);
  for (const char *part :
       {"and what connects them ", "communicators of NCCL with up to 24 channels", "but cuda ",
        "fewer channels (--nccl-channels)"})
    EXPECT_NE(error.find(part), std::string::npos) << error;
  EXPECT_EQ(standin::counts().allocations, 0u);
  EXPECT_EQ(openOverNccl(plan, 1024, /*channels=*/24, {.mostChannels = 1}), "");
  // A NCCL that takes more than the estimate: 1.1 GiB of each communicator.
  EXPECT_EQ(openOverNccl(plan, 2560, /*channels=*/24), "");
  error = openOverNccl(plan, 2560, /*channels=*/128);
  for (const char *part : {"NCCL cannot all_reduce", "out of memory", "free, and communicators"})
    EXPECT_NE(error.find(part), std::string::npos) << error;
  standin::reset();
}

TEST(DeviceFaults, ACallThatFailsLeavesNothingBehind) {
  auto plan = compile(kMlp);
  ASSERT_TRUE(plan);
  standin::reset();
  EXPECT_FALSE(trainTwoSteps(plan));
  uint64_t calls = standin::counts().calls;
  ASSERT_GT(calls, 100u);
  int errors = 0;
  for (uint64_t i = 0; i < calls; i += 5) {
    standin::reset();
    standin::failCall(i, cudaErrorMemoryAllocation);
    MaybeError error = trainTwoSteps(plan);
    errors += error.has_value();
    if (error)
      EXPECT_TRUE(error->message.find("out of memory") != std::string::npos ||
                  error->message.find("ALLOC_FAILED") != std::string::npos)
          << error->message;
    standin::Counts left = standin::counts();
    // The resource that the failed call should have freed, and those that belong to it.
    EXPECT_LE(left.allocations + left.streams + left.events + left.graphs, 2u) << "call " << i;
  }
  EXPECT_GT(errors, 20);
  standin::reset();
}

} // namespace deviceFaultsTest
