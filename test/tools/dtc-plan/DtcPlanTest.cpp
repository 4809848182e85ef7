//===- DtcPlanTest.cpp - The program dtc-plan -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanReader.h"
#include "test/lib/files/Sanitizer.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/RunTool.h"
#include "test/lib/plans/TempDir.h"
#include "test/lib/plans/TestPlans.h"
#include "test/simulator/cluster/ParsedCluster.h"

#include <gtest/gtest.h>
#include <iostream>
#include <nlohmann/json.hpp>

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

/// Runs the program in a folder with a plan and files for what it prints.
class DtcPlan : public ::testing::Test {
protected:
  DtcPlan() { EXPECT_OK(writePlan(*trainingPlan({2, 2, 2}), plan)); }

  int run(const std::vector<std::string> &arguments) {
    return waitForTool(startTool(DTC_PLAN_PATH, arguments, dir.path("out"), dir.path("err")));
  }

  void TearDown() override {
    if (HasFailure())
      std::cerr << "The tool printed:\n" << err();
  }

  std::string out() const { return dir.read("out"); }
  std::string err() const { return dir.read("err"); }

  TempDir dir;
  std::string plan = dir.path("m.plan");
};

} // namespace

TEST_F(DtcPlan, HelpAndVersion) {
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_TRUE(contains(out(), "show"));
  EXPECT_TRUE(contains(out(), "explain"));
  EXPECT_EQ(run({"explain", "--help"}), 0);
  EXPECT_TRUE(contains(out(), "--link") && contains(out(), "--top"));
  EXPECT_EQ(run({"show", "--help"}), 0);
  EXPECT_TRUE(contains(out(), "--json"));
  EXPECT_EQ(run({"--version"}), 0);
  EXPECT_TRUE(contains(out(), "(plan version 10)"));
  EXPECT_EQ(err(), "");
}

TEST_F(DtcPlan, ShowsAPlan) {
  EXPECT_EQ(run({"show", plan}), 0);
  EXPECT_TRUE(contains(out(), "a square"));
  EXPECT_EQ(err(), "");
  EXPECT_EQ(run({"show", plan, "--json"}), 0);
  EXPECT_EQ(nlohmann::json::parse(out())["mesh"]["devices"], 4);
  EXPECT_EQ(err(), "");
}

TEST_F(DtcPlan, DrawsASchedule) {
  auto work = trainingPlan({2, 2, 4});
  plan::Task &task = *work->mutable_programs(0)->mutable_tasks(0);
  task.set_kind(plan::Task::FORWARD);
  task.set_seconds(1);
  EXPECT_OK(writePlan(*work, plan));
  EXPECT_EQ(run({"show", plan, "--schedule", "--width", "50"}), 0);
  EXPECT_TRUE(contains(out(), "device=0  F0--------F1--------F2--------F3--------\n"));
  EXPECT_EQ(run({"show", plan, "--schedule", "--schedule-svg", dir.path("s.svg"), "--json"}), 0);
  EXPECT_EQ(nlohmann::json::parse(out())["timeline"]["seconds"], 4);
  EXPECT_TRUE(dir.read("s.svg").ends_with("</svg>\n"));
  EXPECT_EQ(run({"show", plan, "--schedule-svg", dir.path("t.svg")}), 0);
  EXPECT_EQ(dir.read("t.svg"), dir.read("s.svg"));
  EXPECT_TRUE(contains(out(), "memory of a device"));
  EXPECT_EQ(err(), "");

  EXPECT_EQ(run({"show", plan, "--width", "50"}), 1);
  EXPECT_TRUE(contains(err(), "--schedule"));
  EXPECT_EQ(run({"show", plan, "--schedule", "--width", "5"}), 1);
  EXPECT_TRUE(contains(err(), "--width"));
  // JSON has no columns.
  EXPECT_EQ(run({"show", plan, "--schedule", "--json", "--width", "50"}), 1);
  EXPECT_EQ(err(), "error: --json excludes --width; see dtc-plan --help\n");
  EXPECT_EQ(run({"show", plan, "--schedule-svg", dir.path("none/s.svg")}), 1);
  EXPECT_TRUE(contains(err(), "error: --schedule-svg: "));
}

TEST_F(DtcPlan, ExplainsAPlan) {
  EXPECT_EQ(run({"explain", plan}), 0);
  EXPECT_TRUE(contains(out(), "links: dp 25 GB/s 10 us (assumed), tp 25 GB/s 10 us (assumed)"));
  EXPECT_TRUE(contains(out(), "all_reduce over dp"));
  EXPECT_FALSE(contains(out(), "shows all"));
  EXPECT_EQ(err(), "");

  EXPECT_EQ(run({"explain", "--link", "dp=100GB/s,2us", "--link", "tp=1us", plan, "--top", "1"}),
            0);
  EXPECT_TRUE(contains(out(), "dp 100 GB/s 2 us (from --link), tp 25 GB/s (assumed) 1 us (from"));
  EXPECT_TRUE(contains(out(), "shows all"));

  EXPECT_EQ(run({"explain", plan, "--json", "--top", "1"}), 0);
  nlohmann::json json = nlohmann::json::parse(out());
  EXPECT_EQ(json["collectives"].size(), 3u); // all of them
  EXPECT_EQ(json["totals"]["all"]["calls"], 3);
  EXPECT_EQ(err(), "");
}

TEST_F(DtcPlan, SimulatesAStep) {
  std::string cluster = dir.write("c.textproto", plainDevice() + R"(
    name: "plain-cluster"
    node_kinds { name: "n" device: "plain" devices: 4 link { bandwidth: 1 } }
    nodes { node: "n" count: 1 })");
  std::string trace = dir.path("t.json");
  EXPECT_EQ(run({"simulate", plan, "--cluster", cluster, "--trace", trace}), 0);
  EXPECT_TRUE(contains(out(), "a square on 4 devices of plain-cluster (1 node), 2 microbatches"));
  EXPECT_TRUE(nlohmann::json::accept(dir.read("t.json")));
  EXPECT_EQ(run({"simulate", plan, "--cluster", cluster, "--json", "--tokens", "480"}), 0);
  nlohmann::json json = nlohmann::json::parse(out());
  EXPECT_EQ(json["training"]["steps"], 10);
  EXPECT_EQ(json["devices"], 4);
  EXPECT_EQ(err(), "");

  EXPECT_OK(writePlan(*trainingPlan({4, 2, 2}), plan));
  EXPECT_EQ(run({"simulate", plan, "--cluster", cluster}), 1);
  EXPECT_EQ(out(), "");
  EXPECT_TRUE(contains(err(), "the mesh has 8 devices, the cluster \"plain-cluster\" has 4"));
  EXPECT_EQ(run({"simulate", plan}), 1);
  EXPECT_TRUE(contains(err(), "--cluster is required"));
}

namespace {

/// A training plan whose loop begins with reading what was made before it, and then writes to the
/// bytes of that.
std::shared_ptr<plan::Plan> planOfOneRepetition() {
  std::shared_ptr<plan::Plan> plan = trainingPlan({1, 1, 2});
  plan::Program &program = *plan->mutable_programs(0);
  uint64_t end = (program.arena_bytes() + 63) / 64 * 64;
  auto value = static_cast<uint32_t>(program.buffers_size());
  for (uint64_t offset : {end, end + 64, end}) {
    plan::Buffer &buffer = *program.add_buffers();
    buffer.set_dtype(plan::F32);
    buffer.set_kind(plan::Buffer::ACTIVATION);
    buffer.set_offset(offset);
  }
  program.set_arena_bytes(end + 128);
  auto addTask = [&](const char *name, uint32_t entry) -> plan::Task & {
    program.add_schedule()->set_task(static_cast<uint32_t>(program.tasks_size()));
    for (int i = program.schedule_size() - 1; i > static_cast<int>(entry); --i)
      program.mutable_schedule()->SwapElements(i, i - 1);
    program.set_loop_end(program.loop_end() + 1);
    plan::Task &task = *program.add_tasks();
    task.set_name(name);
    return task;
  };
  auto addKernel = [](plan::Task &task, const char *name, uint32_t output) -> plan::KernelCall & {
    plan::KernelCall &call = *task.add_instructions()->mutable_kernel();
    call.set_kernel(name);
    call.add_outputs(output);
    addRequiredAttributes(call);
    return call;
  };
  addKernel(addTask("makes", program.loop_begin()), "fill", value);
  program.set_loop_begin(program.loop_begin() + 1);
  plan::Task &task = addTask("reads", program.loop_begin());
  addKernel(task, "copy", value + 1).add_inputs(value);
  addKernel(task, "fill", value + 2);
  return plan;
}

} // namespace

TEST_F(DtcPlan, VerifiesThatTheLoopOfATrainStepMayBeRepeated) {
  EXPECT_OK(writePlan(*trainingPlan({1, 1, 2}), plan));
  EXPECT_EQ(run({"verify", plan}), 0);
  EXPECT_OK(writePlan(*planOfOneRepetition(), plan));
  EXPECT_EQ(run({"verify", plan}), 1);
  EXPECT_TRUE(contains(err(),
                       "m.plan: can be run, but not with dtc-run --accumulate, which repeats "
                       "the loop over microbatches: when the loop over microbatches runs "
                       "again: task \"reads\", instruction 0 (kernel copy)"));
  EXPECT_EQ(run({"show", plan}), 0);
  // A plan that does not train runs its loop once.
  auto forward = planOfOneRepetition();
  for (plan::Input &input : *forward->mutable_programs(0)->mutable_inputs())
    if (input.role() != plan::Input::DATA) // both are needed, or none
      input.set_role(plan::Input::DATA);
  EXPECT_OK(writePlan(*forward, plan));
  EXPECT_EQ(run({"verify", plan}), 0);
}

TEST_F(DtcPlan, ExplainErrors) {
  auto errorOf = [&](const std::vector<std::string> &options) {
    std::vector<std::string> arguments = {"explain", plan};
    arguments.insert(arguments.end(), options.begin(), options.end());
    EXPECT_EQ(run(arguments), 1);
    EXPECT_EQ(out(), "");
    EXPECT_TRUE(err().starts_with("error: ")) << err();
    return err();
  };
  EXPECT_TRUE(contains(errorOf({"--link", "25GB/s"}),
                       "--link: \"25GB/s\" is not of the form axis=bandwidth,latency"));
  EXPECT_TRUE(contains(errorOf({"--link", "dp=25GB"}), "--link: dp: \"25GB\" is no bandwidth"));
  EXPECT_TRUE(contains(errorOf({"--link", "xp=25GB/s"}),
                       "--link: the mesh has no axis \"xp\"; its axes are dp, tp"));
  EXPECT_TRUE(contains(errorOf({"--link", "dp=1us", "--link", "dp=2us"}), "has two links"));
  EXPECT_TRUE(contains(errorOf({"--link"}), "--link"));
  EXPECT_TRUE(contains(errorOf({"--top", "-1"}), "--top"));
  EXPECT_TRUE(contains(errorOf({"--top", "many"}), "--top"));
  EXPECT_EQ(run({"show", plan, "--top", "1"}), 1);
  EXPECT_EQ(run({"explain", dir.path("none.plan")}), 1);
  EXPECT_TRUE(contains(err(), "none.plan: cannot open"));
}

TEST_F(DtcPlan, UnknownSubcommands) {
  EXPECT_EQ(run({"shoe", plan}), 1);
  EXPECT_EQ(err(), "error: there is no subcommand \"shoe\"; did you mean show? The subcommands are "
                   "show, verify, explain, simulate, checkpoint; see dtc-plan --help\n");
  EXPECT_EQ(run({"explian", plan}), 1);
  EXPECT_TRUE(contains(err(), "did you mean explain?"));
  EXPECT_EQ(run({"compile", plan}), 1);
  EXPECT_TRUE(contains(err(), "\"compile\"; the subcommands are"));
  EXPECT_EQ(run({"m.plan"}), 1);
  EXPECT_TRUE(contains(err(), "did you mean dtc-plan show m.plan?"));
  EXPECT_EQ(run({""}), 1);
  EXPECT_TRUE(contains(err(), "there is no subcommand \"\""));
}

TEST_F(DtcPlan, UnknownFlagsBeforeTheSubcommand) {
  for (const char *flag : {"--jsn", "-x", "--json", "--width=3"}) {
    EXPECT_EQ(run({flag, "show", plan}), 1);
    std::string name = std::string(flag).substr(0, std::string(flag).find('='));
    EXPECT_EQ(err(), "error: there is no option \"" + name +
                         "\" before the subcommand; see dtc-plan --help\n");
  }
}

TEST_F(DtcPlan, AFullDiskIsAnError) {
  // More than a stream keeps to itself.
  EXPECT_EQ(waitForTool(startTool(DTC_PLAN_PATH, {"explain", plan, "--json"}, "/dev/full",
                                  dir.path("err"))),
            1);
  EXPECT_TRUE(err().starts_with("error: cannot write the standard output: ")) << err();
}

TEST_F(DtcPlan, TooLittleMemoryIsAnError) {
  if (DTC_SANITIZE_ADDRESS || DTC_SANITIZE_THREAD)
    GTEST_SKIP() << "a sanitizer needs address space of its own";
  // Some 20 MB, and many times as much once it is read.
  PlanBuilder builder;
  for (int i = 0; i < 20000; ++i)
    builder.schedule(builder.task(std::string(1000, 't')));
  EXPECT_OK(writePlan(builder.plan, plan));
  EXPECT_EQ(run({"show", plan}), 0);
  auto runWithKilobytes = [&](const std::string &kilobytes) {
    return waitForTool(startTool(
        "/bin/sh",
        {"-c", "ulimit -v " + kilobytes + "; exec \"$0\" \"$@\"", DTC_PLAN_PATH, "show", plan},
        dir.path("out"), dir.path("err")));
  };
  EXPECT_EQ(runWithKilobytes("40000"), 1);
  EXPECT_TRUE(err().starts_with("error: out of memory; ")) << err();
  EXPECT_EQ(out(), "");
}

TEST_F(DtcPlan, UsageErrors) {
  for (const std::vector<std::string> &arguments : {std::vector<std::string>{},
                                                    {"shoe", plan},
                                                    {"show"},
                                                    {plan},
                                                    {"show", plan, "--jsn"},
                                                    {"show", plan, plan}}) {
    EXPECT_EQ(run(arguments), 1);
    EXPECT_TRUE(err().starts_with("error: ")) << err();
    EXPECT_EQ(out(), "");
  }
}

TEST_F(DtcPlan, PlansThatCannotBeRead) {
  EXPECT_EQ(run({"show", dir.path("none.plan")}), 1);
  EXPECT_TRUE(contains(err(), "error: ") && contains(err(), "none.plan: cannot open"));

  std::string bytes = dir.read("m.plan");
  EXPECT_EQ(run({"show", dir.write("half.plan", bytes.substr(0, bytes.size() / 2))}), 1);
  EXPECT_TRUE(contains(err(), "error: ") && contains(err(), "truncated"));

  auto newer = trainingPlan();
  newer->set_version(kPlanVersion + 1);
  EXPECT_EQ(run({"show", dir.write("newer.plan", serializePlan(*newer))}), 1);
  EXPECT_TRUE(err().starts_with("error: ") && contains(err(), "version"));
  EXPECT_EQ(out(), "");
}
