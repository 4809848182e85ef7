//===- StallTest.cpp - Tests of stalled steps -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/Session.h"

#include "runtime/backends/cpu/CpuKernel.h"
#include "test/lib/Times.h"
#include "test/lib/plans/ChainPlan.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/FakeBackend.h"
#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/TrainStep.h"

#include <chrono>
#include <fmt/format.h>
#include <future>
#include <gtest/gtest.h>
#include <iostream>

namespace stallTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

namespace {

/// The fake backend with a kernel `test_hang` that returns when it is released.
class HangingBackend final : public Backend {
public:
  std::string name() const override { return "hanging"; }
  Expected<std::unique_ptr<Kernel>> prepare(const KernelSignature &signature) const override {
    if (signature.kernel != "test_hang")
      return fake->prepare(signature);
    return std::unique_ptr<Kernel>(std::make_unique<HangingKernel>(released));
  }
  Expected<std::unique_ptr<Device>> openDevice(int64_t index) const override {
    return fake->openDevice(index);
  }
  void release() { promise.set_value(); }

private:
  class HangingKernel final : public cpu::CpuKernel {
  public:
    explicit HangingKernel(std::shared_future<void> released) : released(std::move(released)) {}
    void run(const cpu::CpuArguments &) const override { released.wait(); }

  private:
    std::shared_future<void> released;
  };

  std::shared_ptr<const Backend> fake = createFakeBackend();
  std::promise<void> promise;
  std::shared_future<void> released = promise.get_future().share();
};

/// The error of step() for a plan that the verifier need not accept.
MaybeError stepOf(std::shared_ptr<const plan::Plan> plan, const SessionOptions &options,
                  const std::shared_ptr<const Backend> &backend = createFakeBackend()) {
  auto prepared = PreparedPlan::create(std::move(plan), *backend, 1);
  EXPECT_OK(prepared);
  auto session = Session::create(std::move(*prepared), backend, options);
  EXPECT_OK(session);
  MaybeError error = trainStep(**session, 0);
  EXPECT_EQ(messageOf(trainStep(**session, 0)), messageOf(error));
  return error;
}

} // namespace

TEST(Stall, AReceiveThatNobodySends) {
  auto plan = chainPlan({2, 2, 3, ""});
  plan->mutable_programs(0)->clear_schedule();
  plan->mutable_programs(0)->clear_loop_begin();
  plan->mutable_programs(0)->clear_loop_end();
  plan::Program *second = plan->mutable_programs(1);
  for (plan::Task &task : *second->mutable_tasks())
    if (task.name() == "forward.1")
      task.mutable_instructions(0)->set_location(1);
  MaybeError error = stepOf(plan, {.stallTimeout = 0.1});
  EXPECT_ERROR(error, "no device has come to another instruction for 0.1 s; ");
  EXPECT_ERROR(error, "(--stall-timeout)");
  EXPECT_ERROR(error, "\n  device 0 (pp=0, dp=0) has finished the step");
  EXPECT_ERROR(error, "\n  device 1 (pp=0, dp=1) has finished the step");
  EXPECT_ERROR(error, "\n  device 2 (pp=1, dp=0) waits to receive from device 0 on channel 2, in "
                      "task \"forward.1\" for microbatch 0, instruction 0, from chain.forward "
                      "(chain.mlir:1:1)");
  EXPECT_ERROR(error, "\n  device 3 (pp=1, dp=1) waits to receive from device 1 on channel 2, in ");
  EXPECT_ERROR(error,
               "\n  device 0 (pp=0, dp=0) has not come to what device 2 waits for: receive from "
               "device 0 on channel 2, in task \"forward.1\", instruction 0");
  EXPECT_ERROR(error,
               "\n  device 1 (pp=0, dp=1) has not come to what device 3 waits for: receive ");
}

TEST(Stall, ASendThatNobodyReceives) {
  auto plan = chainPlan({2, 1, 3, ""});
  plan->mutable_programs(1)->clear_schedule();
  plan->mutable_programs(1)->clear_loop_begin();
  plan->mutable_programs(1)->clear_loop_end();
  MaybeError error = stepOf(plan, {.stallTimeout = 0.1});
  // The gradient is waited for before the copy of the activation is needed again.
  EXPECT_ERROR(error, "device 0 (pp=0, dp=0) waits to receive from device 1 on channel 3, in task "
                      "\"backward.0\" for microbatch 0, instruction 0");
}

TEST(Stall, ACollectiveThatNotAllComeTo) {
  for (bool async : {false, true}) {
    PlanBuilder builder;
    builder.pipelineAxis("pp", 3);
    for (int p : {0, 1, 2}) {
      builder.inProgram(p);
      uint32_t x = builder.state("x", DType::F32, {4}, {{}}).buffer();
      builder.task("t");
      builder.schedule(0);
      if (p == 1)
        continue;
      builder.collective(plan::Collective::ALL_REDUCE, {"pp"}, x, x);
      if (async)
        builder.wait(builder.async());
    }
    MaybeError error = stepOf(builder.build(), {.stallTimeout = 0.1});
    std::string place =
        fmt::format(", in task \"t\" for microbatch 0, instruction {}", async ? 1 : 0);
    EXPECT_ERROR(error, "device 0 (pp=0) waits in all_reduce of devices [0, 1, 2]" + place);
    EXPECT_ERROR(error, "device 1 (pp=1) has finished the step");
    EXPECT_ERROR(error, "device 2 (pp=2) waits in all_reduce of devices [0, 1, 2]" + place);
    EXPECT_ERROR(error,
                 "\n  device 1 (pp=1) has not come to what device 0 waits for: all_reduce of "
                 "devices [0, 1, 2], in task \"t\", instruction 0");
  }
}

TEST(Stall, AKernelThatDoesNotReturnIsReported) {
  auto backend = std::make_shared<HangingBackend>();
  std::vector<std::string> reports;
  SessionOptions options{.stallTimeout = 0.1};
  options.onHang = [&](const Error &error) {
    reports.push_back(error.message);
    backend->release(); // a program would end here
  };
  MaybeError error = stepOf(chainPlan({2, 1, 3, "test_hang"}), options, backend);
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports.front(), messageOf(error));
  EXPECT_ERROR(error, "device 0 (pp=0, dp=0) waits to receive from device 1 on channel 3");
  EXPECT_ERROR(error, "device 1 (pp=1, dp=0) runs kernel test_hang, in task \"forward.1\" for "
                      "microbatch 0, instruction 2");
}

TEST(Stall, AnErrorIsReportedThoughAKernelDoesNotReturn) {
  PlanBuilder builder;
  builder.pipelineAxis("pp", 2);
  for (int p : {0, 1}) {
    builder.inProgram(p);
    builder.task("t");
    builder.kernel(p == 0 ? "test_hang" : "test_throw", {}, {});
    builder.schedule(0);
  }
  auto backend = std::make_shared<HangingBackend>();
  std::vector<std::string> reports;
  SessionOptions options{.stallTimeout = 0.1};
  options.onHang = [&](const Error &error) {
    reports.push_back(error.message);
    backend->release();
  };
  EXPECT_ERROR(stepOf(builder.build(), options, backend), "device 1: the kernel failed");
  EXPECT_EQ(reports, std::vector<std::string>{"device 1: the kernel failed"});
}

TEST(Stall, SlowStepsAreNoStalls) {
  // Longer than the limit in all, but one device or the other goes on all the time.
  EXPECT_TRUE(dtc::test::passesWithMoreTime([](int factor) {
    ChainStrategy strategy{2, 1, 24 * factor, "test_sleep"};
    auto session = Session::create(chainPlan(strategy), createFakeBackend(),
                                   SessionOptions{.stallTimeout = 0.8 * factor});
    EXPECT_OK(session);
    auto start = std::chrono::steady_clock::now();
    MaybeError error = trainStep(**session, 0);
    EXPECT_GT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(800) * factor);
    if (error)
      std::cerr << error->message << "\n";
    else
      EXPECT_GT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(1200) * factor);
    return !error;
  }));
}

TEST(Stall, WithoutALimitASessionWaits) {
  ChainStrategy strategy{2, 1, 3, "test_sleep"};
  auto session =
      Session::create(chainPlan(strategy), createFakeBackend(), SessionOptions{.stallTimeout = 0});
  ASSERT_OK(session);
  EXPECT_OK(trainStep(**session, 0));
}

} // namespace stallTest
