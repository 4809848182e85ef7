//===- DtcRunTest.cpp - The program dtc-run -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanReader.h"
#include "runtime/data/Safetensors.h"
#include "test/lib/files/Sanitizer.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/RunTool.h"
#include "test/lib/plans/TempDir.h"
#include "test/lib/plans/TestPlans.h"

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iostream>
#include <sys/wait.h>
#include <thread>

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

/// Runs the program in a folder with a plan, a text, and files for what it prints.
class DtcRun : public ::testing::Test {
protected:
  DtcRun() {
    EXPECT_OK(writePlan(*trainingPlan({2, 2, 2}), plan));
    dir.write("text.txt", "a text that is long enough for a window of seven bytes");
  }

  pid_t start(const std::vector<std::string> &arguments) {
    return startTool(DTC_RUN_PATH, arguments, dir.path("out"), dir.path("err"));
  }

  int run(const std::vector<std::string> &arguments) { return waitForTool(start(arguments)); }
  /// Waits until a run has written metrics, or has ended.
  void waitForMetrics(pid_t tool) const {
    siginfo_t end = {};
    while (!dir.read("m.jsonl").starts_with("{") && end.si_pid == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      ASSERT_EQ(waitid(P_PID, static_cast<id_t>(tool), &end, WEXITED | WNOHANG | WNOWAIT), 0);
    }
  }
  std::string out() const { return dir.read("out"); }
  std::string err() const { return dir.read("err"); }

  void TearDown() override {
    if (HasFailure())
      std::cerr << "The tool printed:\n" << err();
  }

  TempDir dir;
  std::string plan = dir.path("m.plan");
  std::string text = dir.path("text.txt");
};

} // namespace

TEST_F(DtcRun, HelpAndVersion) {
  EXPECT_EQ(run({"--help"}), 0);
  for (const char *option : {"--data", "--steps", "--lr", "--min-lr", "--warmup", "--lr-schedule",
                             "--seed", "--init", "--save", "--metrics", "--threads", "--profile",
                             "--log-every", "--allow-nonfinite", "--stall-timeout", "--trace",
                             "--trace-steps", "--loss-scale", "--loss-scale-growth-interval"})
    EXPECT_TRUE(contains(out(), option));
  EXPECT_EQ(run({"--version"}), 0);
  EXPECT_TRUE(contains(out(), "dtc-run "));
  EXPECT_TRUE(contains(out(), "(plan version 10)"));
  EXPECT_EQ(err(), "");
}

TEST_F(DtcRun, ListsDevices) {
  EXPECT_EQ(run({"devices"}), 0);
  EXPECT_TRUE(contains(out(), "cpu: "));
  EXPECT_TRUE(contains(out(), "cuda")); // GPUs, or why there are none
  EXPECT_EQ(err(), "");
  EXPECT_NE(run({"devices", plan}), 0);
  EXPECT_TRUE(contains(err(), "The following argument was not expected: " + plan));
}

TEST_F(DtcRun, UsageErrors) {
  for (const std::vector<std::string> &arguments : {std::vector<std::string>{},
                                                    {plan, "--stepz", "3"},
                                                    {plan, "--steps", "x"},
                                                    {plan, "--lr-schedule", "square"},
                                                    {plan, "--threads", "0"},
                                                    {plan, "--loss-scale", "x"},
                                                    {plan, "--loss-scale-growth-interval", "-1"},
                                                    {plan, "--stall-timeout", "-1"},
                                                    {plan, "--stall-timeout", "nan"},
                                                    {plan, "--stall-marks", "maybe"},
                                                    {plan, "--heartbeat-timeout", "nan"},
                                                    {plan, "--start-timeout", "nan"},
                                                    {plan, "--data", ""},
                                                    {plan, "--save", ""},
                                                    {plan, "--save="},
                                                    {plan, "--lr", ""},
                                                    {plan, "--trace-steps", "0"},
                                                    {plan, "more"}}) {
    EXPECT_EQ(run(arguments), 1);
    EXPECT_TRUE(err().starts_with("error: ")) << err();
    EXPECT_EQ(out(), "");
  }
}

TEST_F(DtcRun, Errors) {
  EXPECT_EQ(run({dir.path("none.plan")}), 1);
  EXPECT_TRUE(contains(err(), "error: ") && contains(err(), "none.plan: cannot open"));
  EXPECT_EQ(run({plan}), 1);
  EXPECT_TRUE(contains(err(), "error: the plan needs data for tokens"));
  EXPECT_EQ(run({plan, "--data", text, "--loss-scale", "1024"}), 1);
  EXPECT_TRUE(contains(err(), "error: --loss-scale: the plan does not scale its loss; compile with "
                              "--dtype f16"));
}

TEST_F(DtcRun, TrainsWithTheCpuBackend) {
  std::string weights = dir.path("w.safetensors");
  ASSERT_EQ(run({plan, "--data", text, "--steps", "20", "--lr", "0.1", "--lr-schedule", "linear",
                 "--metrics", dir.path("m.jsonl"), "--save", weights, "--threads", "1", "--profile",
                 "--log-every", "5"}),
            0)
      << err();
  EXPECT_EQ(err(), "");
  EXPECT_TRUE(contains(out(), "step 20/20  loss 0.0"));
  EXPECT_TRUE(contains(out(), "all_reduce"));
  std::string metrics = dir.read("m.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 20);
  auto file = SafetensorsFile::open(weights);
  ASSERT_OK(file);
  EXPECT_EQ(file->tensors().at("w").str(), "F32[64]");
  EXPECT_EQ(run({plan, "--data", text, "--steps", "1", "--init", weights}), 0) << err();
}

/// Processes that this one starts, in a build of the runtime alone too.
TEST_F(DtcRun, SeveralProcessesNeedNoMpi) {
  ASSERT_EQ(run({plan, "--data", text, "--steps", "5", "--save", dir.path("one.safetensors")}), 0)
      << err();
  ASSERT_EQ(run({plan, "--data", text, "--steps", "5", "--save", dir.path("two.safetensors"),
                 "--processes", "2"}),
            0)
      << err();
  EXPECT_TRUE(contains(out(), "2 processes, 2 on this machine")) << out();
  EXPECT_TRUE(dir.read("one.safetensors") == dir.read("two.safetensors"));
  // An error that all find is reported once.
  EXPECT_EQ(run({plan, "--data", dir.path("missing.txt"), "--processes", "2"}), 1);
  EXPECT_TRUE(err().starts_with("error: ") && contains(err(), "missing.txt: cannot open")) << err();
  EXPECT_EQ(err().find("error: ", 1), std::string::npos) << err();
  EXPECT_EQ(err().find("process 1"), std::string::npos) << err();
}

/// As Slurm does at the end of the time of a job.
TEST_F(DtcRun, SigtermTwiceInARowIsOneRequest) {
  std::string weights = dir.path("w.safetensors");
  pid_t child = start({plan, "--data", text, "--steps", "1000000000", "--save", weights,
                       "--metrics", dir.path("m.jsonl"), "--inject-delay", "device=0,seconds=1"});
  waitForMetrics(child);
  kill(child, SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  kill(child, SIGTERM);
  EXPECT_EQ(waitForTool(child), 128 + SIGTERM) << err();
  EXPECT_TRUE(contains(out(), "interrupted after step ")) << out();
  EXPECT_OK(SafetensorsFile::open(weights));
}

TEST_F(DtcRun, AnInterruptEndsTheRunAfterItsStepAndSaves) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    std::string weights = dir.path("w.safetensors"), metrics = dir.path("m.jsonl");
    std::filesystem::remove(weights);
    std::filesystem::remove(metrics);
    pid_t child = start({plan, "--data", text, "--steps", "1000000000", "--save", weights,
                         "--metrics", metrics, "--log-every", "1000000000"});
    // The first line of metrics says that the run is at work.
    waitForMetrics(child);
    kill(child, signal);
    EXPECT_EQ(waitForTool(child), 128 + signal) << err();
    EXPECT_TRUE(contains(out(), "interrupted after step "));
    EXPECT_OK(SafetensorsFile::open(weights));
    EXPECT_EQ(dir.read("m.jsonl").back(), '\n');
  }
}

TEST_F(DtcRun, AnInterruptOfOneOfSeveralProcessesIsNoLoss) {
  std::string weights = dir.path("w.safetensors");
  pid_t parent = start({plan, "--data", text, "--steps", "1000000000", "--save", weights,
                        "--metrics", dir.path("m.jsonl"), "--checkpoint", dir.path("ck"),
                        "--max-restarts", "1", "--processes", "2"});
  waitForMetrics(parent);
  std::string number = std::to_string(parent);
  std::ifstream children("/proc/" + number + "/task/" + number + "/children");
  pid_t first = 0, second = 0;
  ASSERT_TRUE(children >> first >> second);
  kill(second, SIGTERM);
  EXPECT_EQ(waitForTool(parent), 128 + SIGTERM);
  EXPECT_TRUE(contains(out(), "interrupted after step ")) << out();
  EXPECT_FALSE(contains(err(), "error:") || contains(err(), "restart"));
  EXPECT_OK(SafetensorsFile::open(weights));
}

TEST_F(DtcRun, OneRunWritesAMetricsFile) {
  std::string metrics = dir.path("m.jsonl");
  dir.write("m.jsonl", "old");
  pid_t first = startTool(DTC_RUN_PATH,
                          {plan, "--data", text, "--steps", "1000000000", "--metrics", metrics,
                           "--log-every", "1000000000"},
                          dir.path("out1"), dir.path("err1"));
  waitForMetrics(first);
  EXPECT_EQ(run({plan, "--data", text, "--steps", "1", "--metrics", metrics}), 1);
  EXPECT_TRUE(err().starts_with("error: " + metrics + ": another process (process " +
                                std::to_string(first) + ") is writing to it; name another file"))
      << err();
  EXPECT_FALSE(contains(out(), "step 1"));
  // A lock does not outlive its process, and only complete lines were written.
  kill(first, SIGKILL);
  EXPECT_EQ(waitForTool(first), -SIGKILL) << dir.read("err1");
  std::string left = dir.read("m.jsonl");
  EXPECT_EQ(left.back(), '\n');
  // A run that fails before its first step leaves existing files, and makes none where there was
  // none.
  EXPECT_EQ(run({plan, "--data", text, "--metrics", metrics, "--init", dir.path("none")}), 1);
  EXPECT_EQ(dir.read("m.jsonl"), left);
  EXPECT_EQ(
      run({plan, "--data", text, "--metrics", dir.path("new.jsonl"), "--init", dir.path("none")}),
      1);
  EXPECT_FALSE(std::filesystem::exists(dir.path("new.jsonl")));
  EXPECT_EQ(run({plan, "--data", text, "--steps", "2", "--metrics", metrics}), 0) << err();
  left = dir.read("m.jsonl");
  EXPECT_EQ(std::count(left.begin(), left.end(), '\n'), 2);
}

TEST_F(DtcRun, TooLittleMemoryIsAnError) {
  if (DTC_SANITIZE_ADDRESS || DTC_SANITIZE_THREAD)
    GTEST_SKIP() << "a sanitizer needs address space of its own";
  // From what is too little for a thread, but enough for the program and its libraries, up to what
  // is enough for all.
  auto programMegabytes = static_cast<int>(std::filesystem::file_size(DTC_RUN_PATH) >> 20);
  int threads = 0, successes = 0;
  for (int megabytes = programMegabytes + 60; megabytes <= 1024; megabytes += megabytes / 8) {
    std::string command =
        "ulimit -s 8192; ulimit -v " + std::to_string(megabytes * 1024) + "; exec \"$0\" \"$@\"";
    int status = waitForTool(startTool(
        "/bin/sh",
        {"-c", command, DTC_RUN_PATH, plan, "--data", text, "--steps", "1", "--threads", "1"},
        dir.path("out"), dir.path("err")));
    EXPECT_TRUE(status == 0 || (status == 1 && err().starts_with("error: ")))
        << megabytes << " MiB: " << status << ", " << err();
    threads += contains(err(), "cannot start a thread for ");
    successes += status == 0;
  }
  EXPECT_GT(threads, 0);
  EXPECT_GT(successes, 0);
}

TEST_F(DtcRun, APlanThatDoesNotTrainPrintsItsOutputs) {
  ASSERT_OK(writePlan(*forwardPlan(), plan));
  EXPECT_EQ(run({plan, "--data", text}), 0) << err();
  EXPECT_TRUE(contains(out(), "token_sum: f32[] = "));
  EXPECT_TRUE(contains(out(), "values: f32[4,6] = ["));
}

TEST_F(DtcRun, APipelineWithItsBubbleAndTrace) {
  ASSERT_OK(writePlan(*pipelinePlan(2), plan));
  std::vector<float> x(6 * 4, 0.5f);
  ASSERT_OK(writeSafetensors(dir.path("x.safetensors"), {{"x", {DType::F32, {6, 4}}}},
                             [&](const std::string &) -> Expected<HostTensor> {
                               HostTensor tensor(TensorType{DType::F32, {6, 4}});
                               std::memcpy(tensor.bytes.data(), x.data(), tensor.bytes.size());
                               return tensor;
                             }));
  ASSERT_EQ(run({plan, "--data", dir.path("x.safetensors"), "--steps", "5", "--profile", "--trace",
                 dir.path("t.json"), "--trace-steps", "2"}),
            0)
      << err();
  EXPECT_TRUE(contains(out(), "% measured, "));
  EXPECT_TRUE(contains(out(), "transfers: "));
  EXPECT_TRUE(contains(out(), "transfers sent 1000 B in all")); // 5 * 2 * (6 * 16 + 4)
  EXPECT_TRUE(contains(dir.read("t.json"), "\"forward.1\""));
}

TEST_F(DtcRun, AStallEndsTheProcess) {
  // One product of some seconds, in which no device comes to another instruction. Its operands are
  // there before the step: to touch their memory for the first time may take long too.
  PlanBuilder builder;
  constexpr int64_t n = 6000;
  uint32_t a = builder.state("a", DType::F32, {n, n}, {{}, {}}).buffer();
  uint32_t b = builder.state("b", DType::F32, {n, n}, {{}, {}}).buffer();
  uint32_t c = builder.buffer(DType::F32, {n, n});
  builder.task("long");
  (*builder.kernel("einsum", {a, b}, {c}).mutable_attributes())["equation"] =
      stringAttribute("ij,jk->ik");
  builder.schedule(0);
  builder.output("c", DType::F32, {n, n}, {{}, {}}, c);
  ASSERT_OK(writePlan(*builder.build(), plan));
  EXPECT_EQ(run({plan, "--threads", "1", "--stall-timeout", "0.2"}), 1);
  EXPECT_TRUE(err().starts_with("error: no device has come to another instruction")) << err();
  EXPECT_TRUE(contains(err(), "device 0 runs kernel einsum, in task \"long\" for microbatch 0, "
                              "instruction 0"));
}
