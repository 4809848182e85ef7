//===- StepSectionsTest.cpp - Tests of cutting a step into its passes -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/StepSections.h"

#include "compiler/driver/CandidateSearch.h"
#include "plan/PlanTypes.h"
#include "test/lib/compile/PlannerCases.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace stepSectionsTest {

using namespace dtc;
using namespace dtc::test;

namespace {

/// How many calls of each kernel a task has.
std::map<std::string, int> kernelsOf(const plan::Task &task) {
  std::map<std::string, int> kernels;
  for (const plan::Instruction &instruction : task.instructions())
    if (instruction.has_kernel())
      ++kernels[instruction.kernel().kernel()];
  return kernels;
}

int numCollectives(const plan::Task &task) {
  int count = 0;
  for (const plan::Instruction &instruction : task.instructions())
    count += instruction.has_collective();
  return count;
}

/// The program of a model that is compiled without a pipeline; empty after an error.
plan::Program programOf(const MeshSizes &mesh) {
  PlannerContext compiler;
  auto model = importCase(compiler, {.layers = 2, .hidden = 32, .batch = 8});
  CompileOptions options;
  options.mesh = mesh;
  std::optional<Candidate> candidate = CandidateSearch(*model, "test").run(options);
  return candidate ? candidate->plan.programs(0) : plan::Program();
}

} // namespace

TEST(StepSections, PartsHaveTheirKernels) {
  for (const MeshSizes &mesh : {MeshSizes{}, MeshSizes{{"dp", 2}, {"tp", 2}}}) {
    const plan::Program whole = programOf(mesh);
    ASSERT_EQ(whole.tasks_size(), 1);
    plan::Program program = whole;
    splitStep(program);
    ASSERT_EQ(program.tasks_size(), 2);
    const plan::Task &passes = program.tasks(0), &update = program.tasks(1);
    EXPECT_EQ(passOf(passes), StagePass::Backward);
    EXPECT_FALSE(passOf(update));
    auto kernels = kernelsOf(whole.tasks(0));
    auto ofPasses = kernelsOf(passes), ofUpdate = kernelsOf(update);
    EXPECT_GT(kernels["adamw"], 0);
    EXPECT_EQ(ofUpdate["adamw"], kernels["adamw"]);
    EXPECT_GT(kernels["joined_attention_grad"], 0);
    for (const char *name :
         {"joined_attention", "joined_attention_grad", "cross_entropy", "einsum"})
      EXPECT_EQ(ofPasses[name], kernels[name]) << name;
    for (const auto &[name, count] : kernels)
      EXPECT_EQ(ofPasses[name] + ofUpdate[name], count) << name;
    EXPECT_EQ(numCollectives(passes) + numCollectives(update), numCollectives(whole.tasks(0)));
  }
}

/// Waits and orders name instructions of the same task that are async, and none is out of order.
TEST(StepSections, NumbersAreThoseOfTheTask) {
  plan::Program program = programOf({{"dp", 2}, {"tp", 2}});
  splitStep(program);
  int waits = 0;
  for (const plan::Task &task : program.tasks())
    for (int i = 0; i < task.instructions_size(); ++i) {
      const plan::Instruction &instruction = task.instructions(i);
      if (instruction.has_wait()) {
        ++waits;
        ASSERT_LT(int(instruction.wait().instruction()), i);
        EXPECT_TRUE(isAsync(task.instructions(int(instruction.wait().instruction()))));
      }
      for (uint32_t before : instruction.after()) {
        ASSERT_LT(int(before), i);
        EXPECT_TRUE(isAsync(task.instructions(int(before))));
      }
    }
  EXPECT_GT(waits, 0);
  ASSERT_EQ(program.schedule_size(), 2);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(program.schedule(i).task(), uint32_t(i));
}

/// The tasks of a pipeline have their passes already.
TEST(StepSections, PipelinesStayAsTheyAre) {
  const plan::Program whole = programOf({{"pp", 2}});
  plan::Program program = whole;
  splitStep(program);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(program, whole));
}

} // namespace stepSectionsTest
