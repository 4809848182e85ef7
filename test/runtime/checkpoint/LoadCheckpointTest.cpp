//===- LoadCheckpointTest.cpp - States from a checkpoint ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/LoadCheckpoint.h"

#include "plan/PlanTypes.h"
#include "runtime/checkpoint/CheckpointSaver.h"
#include "support/Float16.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/FakeBackend.h"
#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/StepStatePlan.h"
#include "test/lib/plans/TempDir.h"
#include "test/lib/plans/TestPlans.h"
#include "test/lib/plans/TrainStep.h"

#include <gtest/gtest.h>

namespace loadCheckpointTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

namespace {

using PlanPtr = std::shared_ptr<plan::Plan>;

class Load : public ::testing::Test {
protected:
  Load() {
    auto opened = CheckpointFolder::open(dir.path("ckpt"));
    EXPECT_OK(opened);
    folder.emplace(std::move(*opened));
  }

  static std::unique_ptr<Session> open(PlanPtr plan, uint64_t seed) {
    auto session = Session::create(std::move(plan), createFakeBackend());
    EXPECT_OK(session);
    EXPECT_OK((*session)->initializeStates(seed));
    return std::move(*session);
  }

  /// A checkpoint of a session's states.
  Checkpoint save(Session &session) {
    auto saver = CheckpointSaver::create(session, *folder, 0);
    EXPECT_OK(saver);
    EXPECT_OK((*saver)->copy());
    CheckpointManifest manifest;
    manifest.position.step = ++step;
    (*saver)->write(std::move(manifest));
    EXPECT_OK((*saver)->finish());
    auto checkpoint = Checkpoint::open(folder->pathOf(step));
    EXPECT_OK(checkpoint);
    return std::move(*checkpoint);
  }

  static void expectSameStates(const Session &a, const Session &b) {
    for (const plan::State *state : distinctStates(a.plan()))
      EXPECT_EQ(a.getState(state->name())->bytes, b.getState(state->name())->bytes)
          << state->name();
  }

  /// Renames a state in all programs of a plan, and what names it.
  static PlanPtr renamed(PlanPtr plan, const std::string &from, const std::string &to) {
    for (plan::Program &program : *plan->mutable_programs())
      for (plan::State &state : *program.mutable_states()) {
        if (state.name() == from)
          state.set_name(to);
        if (state.parameter() == from)
          state.set_parameter(to);
      }
    return plan;
  }

  TempDir dir;
  std::optional<CheckpointFolder> folder;
  int64_t step = 0;
};

} // namespace

TEST_F(Load, AnyLayoutFromAnyOther) {
  const TrainingStrategy layouts[] = {{1, 1, 1}, {2, 1, 2}, {1, 4, 1}, {2, 4, 2}, {4, 2, 1}};
  for (const TrainingStrategy &from : layouts) {
    auto source = open(trainingPlan(from), 7);
    HostTensor momentum = *source->getState("w.momentum");
    for (int64_t i = 0; i < 64; ++i)
      momentum.as<float>()[i] = float(3 * i);
    ASSERT_OK(source->setState("w.momentum", momentum));
    ASSERT_OK(setStepState(*source, plan::State::APPLIED_STEPS, {16777217}));
    ASSERT_OK(setStepState(*source, plan::State::SKIPPED_STEPS, {3}));
    Checkpoint checkpoint = save(*source);
    for (const TrainingStrategy &to : layouts) {
      auto session = open(trainingPlan(to), 8);
      auto notes = loadCheckpoint(*session, checkpoint, false);
      ASSERT_OK(notes);
      EXPECT_TRUE(notes->empty());
      expectSameStates(*source, *session);
    }
  }
}

TEST_F(Load, StatesOfPipelines) {
  auto source = open(pipelinePlan(2), 7);
  Checkpoint checkpoint = save(*source);
  auto session = open(pipelinePlan(1), 8);
  ASSERT_OK(loadCheckpoint(*session, checkpoint, false));
  expectSameStates(*source, *session);
}

TEST_F(Load, NamesParametersThatAreMissingOrExtra) {
  auto source = open(trainingPlan(), 7);
  Checkpoint checkpoint = save(*source);
  auto session = open(renamed(trainingPlan(), "w", "v"), 8);
  HostTensor before = *session->getState("v");
  auto loaded = loadCheckpoint(*session, checkpoint, false);
  EXPECT_ERROR(loaded, "1 parameters of the plan are not in the checkpoint and keep their initial "
                       "values: v; 1 parameters of the checkpoint are not in the plan: w");
  EXPECT_ERROR(loaded, "--allow-change model");
  EXPECT_EQ(session->getState("v")->bytes, before.bytes);
  auto allowed = loadCheckpoint(*session, checkpoint, true);
  ASSERT_OK(allowed);
  EXPECT_EQ(allowed->size(), 2u);
  EXPECT_EQ(session->getState("v")->bytes, before.bytes);
}

TEST_F(Load, AdaptersMayBeMissingOrExtra) {
  const std::string adapter = "base_model.model.w.lora_A.weight";
  auto base = open(trainingPlan(), 7);
  auto adapted = open(renamed(trainingPlan(), "w", adapter), 8);
  // A checkpoint of the one has nothing that the other wants, and the slot's name is its own.
  auto notes = loadCheckpoint(*adapted, save(*base), true);
  ASSERT_OK(notes);
  EXPECT_TRUE(contains(notes->at(0), "1 parameters of the checkpoint are not in the plan: w"));
  EXPECT_TRUE(contains(notes->at(1), "1 adapters of the plan are not in the checkpoint and keep "
                                     "their initial values: " +
                                         adapter));
  auto back = loadCheckpoint(*base, save(*adapted), false);
  EXPECT_ERROR(back, "1 parameters of the plan are not in the checkpoint");
}

TEST_F(Load, OptimizerStateMayBeMissingOrExtra) {
  auto source = open(renamed(trainingPlan({2, 2, 1}), "w.momentum", "w.other"), 7);
  auto session = open(trainingPlan(), 8);
  auto notes = loadCheckpoint(*session, save(*source), false);
  ASSERT_OK(notes);
  ASSERT_EQ(notes->size(), 2u);
  EXPECT_TRUE(contains(notes->at(0), "1 tensors of optimizer state are not in the checkpoint and "
                                     "start as zeros: w.momentum"));
  EXPECT_TRUE(contains(notes->at(1), "1 tensors of optimizer state are not in the plan: w.other"));
  EXPECT_EQ(session->getState("w")->bytes, source->getState("w")->bytes);
}

TEST_F(Load, StepStateOfPlansThatScaleTheirLossAndOfOthers) {
  auto makePlan = [](bool scalesLoss) {
    PlanBuilder builder;
    StepStatePlan stepState(builder, scalesLoss);
    builder.task("t");
    builder.schedule(0);
    stepState.computeScalars();
    builder.state("dtc.random_key", DType::I32, {2}, {{}}).set_kind(plan::State::RANDOM_KEY);
    return builder.build();
  };
  auto set = [](Session &session, double base) {
    for (int kind = plan::State::APPLIED_STEPS; kind <= plan::State::GROWTH_INTERVAL; ++kind)
      EXPECT_OK(setStepState(session, static_cast<plan::State::Kind>(kind), {base + kind}));
    EXPECT_OK(setStepState(session, plan::State::RANDOM_KEY, {base, base + 1}));
  };
  auto expect = [](const Session &session, plan::State::Kind kind, double base) {
    EXPECT_EQ(*stepStateOf(session, kind), base + kind) << plan::State::Kind_Name(kind);
  };
  auto scaling = open(makePlan(true), 1), plain = open(makePlan(false), 1);
  set(*scaling, 100);
  Checkpoint scaled = save(*scaling);
  // States that the options decide are not in it.
  EXPECT_EQ(scaled.manifest().tensors.size(), 4u);
  for (const auto &[name, tensor] : scaled.manifest().tensors)
    EXPECT_TRUE(tensor.isStepState) << name;
  set(*scaling, 200);
  auto notes = loadCheckpoint(*scaling, scaled, false);
  ASSERT_OK(notes);
  EXPECT_TRUE(notes->empty());
  for (auto kind : {plan::State::APPLIED_STEPS, plan::State::SKIPPED_STEPS, plan::State::LOSS_SCALE,
                    plan::State::GOOD_STEPS})
    expect(*scaling, kind, 100);
  expect(*scaling, plan::State::GROWTH_INTERVAL, 200);
  EXPECT_EQ(*stepStateOf(*scaling, plan::State::RANDOM_KEY, 1), 201);

  set(*plain, 300);
  notes = loadCheckpoint(*plain, scaled, false);
  ASSERT_OK(notes);
  ASSERT_EQ(notes->size(), 1u);
  EXPECT_TRUE(contains(notes->at(0), "2 tensors of step state are not in the plan: dtc.good_steps, "
                                     "dtc.loss_scale"));
  expect(*plain, plan::State::SKIPPED_STEPS, 100);

  set(*plain, 400);
  set(*scaling, 500);
  notes = loadCheckpoint(*scaling, save(*plain), false);
  ASSERT_OK(notes);
  ASSERT_EQ(notes->size(), 1u);
  EXPECT_TRUE(contains(notes->at(0), "2 tensors of step state are not in the checkpoint and start "
                                     "anew: dtc.good_steps, dtc.loss_scale"));
  expect(*scaling, plan::State::APPLIED_STEPS, 400);
  expect(*scaling, plan::State::LOSS_SCALE, 500);
}

TEST_F(Load, OtherShapesAreAnError) {
  auto source = open(trainingPlan(), 7);
  Checkpoint checkpoint = save(*source);
  auto plan = trainingPlan();
  for (plan::State &state : *plan->mutable_programs(0)->mutable_states()) {
    if (isStepState(state.kind()))
      continue;
    state.clear_file_shape();
    state.add_file_shape(4);
    state.add_file_shape(16);
  }
  auto session = open(plan, 8);
  EXPECT_ERROR(loadCheckpoint(*session, checkpoint, true),
               "tensor \"w\" is f32[64], but the plan has f32[4,16]");
}

} // namespace loadCheckpointTest
