//===- VerifyBindingsTest.cpp - States, inputs and outputs of a plan ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanVerifier.h"

#include "test/lib/plans/Expect.h"
#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/StepStatePlan.h"
#include "test/lib/plans/TestPlans.h"

#include <functional>
#include <gtest/gtest.h>

namespace verifyBindingsTest {

using namespace dtc;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

/// The error of a plan with a bf16 parameter "w" and its f32 master weights "w.master" after a
/// change of the master weights; with a new type or shape the buffer's change too.
static std::string masterError(const std::function<void(plan::State &)> &change,
                               DType dtype = DType::F32, const Shape &shape = {4, 6},
                               DType parameter = DType::BF16) {
  PlanBuilder builder;
  builder.axis("a", 2);
  builder.state("w", parameter, {4, 6}, {{}, {}});
  plan::State &master = builder.state("w.master", dtype, shape, DimAxes(shape.size()));
  master.set_parameter("w");
  master.set_kind(plan::State::MASTER_WEIGHTS);
  change(master);
  return messageOf(findPlanError(*builder.build()));
}

TEST(VerifyBindings, MasterWeights) {
  auto asItIs = [](plan::State &) {};
  EXPECT_EQ(masterError(asItIs), "");
  EXPECT_EQ(masterError(asItIs, DType::F64), "");
  EXPECT_EQ(masterError(asItIs, DType::F32, {4, 6}, DType::F16), "");
  EXPECT_TRUE(contains(masterError([](plan::State &master) { master.clear_parameter(); }),
                       "state \"w.master\" is of kind MASTER_WEIGHTS, but names no parameter"));
  EXPECT_TRUE(contains(masterError([](plan::State &master) { master.set_parameter("v"); }),
                       "belongs to parameter \"v\", which does not exist"));
  for (DType dtype : {DType::BF16, DType::F16, DType::I32})
    EXPECT_TRUE(contains(masterError(asItIs, dtype),
                         std::string("state \"w.master\": master weights are f32 or f64, found ") +
                             name(dtype)));
  EXPECT_TRUE(contains(masterError(asItIs, DType::F32, {4, 6}, DType::I32),
                       "the parameter \"w\" is i32; only parameters of float types have master "
                       "weights"));
  EXPECT_TRUE(contains(masterError(asItIs, DType::F32, {4, 6}, DType::F64),
                       "the master weights are f32, less precise than the parameter \"w\", which "
                       "is f64"));
  EXPECT_TRUE(contains(masterError(asItIs, DType::F32, {6, 4}),
                       "the master weights are f32[6,4], expected f32[4,6], the shape of the "
                       "parameter \"w\""));
  EXPECT_TRUE(contains(masterError([](plan::State &master) {
                         master.clear_file_shape();
                         master.add_file_shape(24);
                       }),
                       "the master weights are f32[24] in the file, expected f32[4,6], as the "
                       "parameter \"w\""));
}

/// The error of a plan with parameters of these names and shapes.
static std::string rowsError(const std::vector<std::pair<const char *, Shape>> &parameters) {
  PlanBuilder builder;
  builder.axis("a", 2);
  for (const auto &[name, shape] : parameters)
    builder.state(name, DType::F32, shape, DimAxes(shape.size()));
  return messageOf(findPlanError(*builder.build()));
}

TEST(VerifyBindings, RowsOfATensorOfAWeightsFile) {
  EXPECT_EQ(rowsError({{"t[2:6]", {4, 3}}, {"t[0:2]", {2, 3}}, {"u[1]", {4}}, {"[0:1]", {4}}}), "");
  EXPECT_TRUE(contains(rowsError({{"t[0:2]", {2, 3}}, {"t[3:5]", {2, 3}}}),
                       "parameter \"t[3:5]\" begins at row 3 of \"t\", expected 2, where the "
                       "parameter before it ends; a model has all rows of a tensor, once"));
  EXPECT_TRUE(contains(rowsError({{"t[1:2]", {1, 3}}}),
                       "parameter \"t[1:2]\" begins at row 1 of \"t\", expected 0"));
  EXPECT_TRUE(contains(rowsError({{"t[0:2]", {3, 3}}}),
                       "parameter \"t[0:2]\" is f32[3,3] in the file, expected 2 rows, as its name "
                       "says"));
  EXPECT_TRUE(contains(rowsError({{"t[0:2]", {2, 3}}, {"t[2:4]", {2, 5}}}),
                       "parameters \"t[0:2]\" and \"t[2:4]\" are f32[2,3] and f32[2,5] in the "
                       "file, expected rows of one tensor"));
  EXPECT_EQ(rowsError({{"t[:,2:6]", {3, 4}}, {"t[:,0:2]", {3, 2}}}), "");
  EXPECT_TRUE(contains(rowsError({{"t[:,0:2]", {2, 3}}}),
                       "parameter \"t[:,0:2]\" is f32[2,3] in the file, expected 2 rows"));
  EXPECT_TRUE(contains(rowsError({{"t[:,0:2]", {2}}}), "expected 2 rows, as its name says"));
  EXPECT_TRUE(contains(rowsError({{"t[:,0:2]", {2, 2}}, {"t[2:4]", {2, 2}}}),
                       "parameters \"t[:,0:2]\" and \"t[2:4]\" are parts along different "
                       "dimensions, expected rows of one tensor"));
  EXPECT_TRUE(contains(rowsError({{"t[:,0:2]", {3, 2}}, {"t[:,2:4]", {5, 2}}}),
                       "parameters \"t[:,0:2]\" and \"t[:,2:4]\" are f32[3,2] and f32[5,2] in the "
                       "file, expected rows of one tensor"));
  for (const char *other : {"t", "t[0:1]"})
    EXPECT_TRUE(contains(rowsError({{"t[0:2]", {2, 3}}, {other, {2, 3}}}),
                         "are the same rows of a tensor of weights files"))
        << other;
}

TEST(VerifyBindings, StacksOfTensorsOfWeightsFiles) {
  EXPECT_EQ(rowsError({{"e[0:2].w", {2, 3}}, {"e[2:5].w", {3, 4}}, {"e[0:2].v", {2}}}), "");
  // The name may have a range that is part of it.
  EXPECT_EQ(rowsError({{"e[0:2].w[0:4]", {4, 3}}, {"e[0:65537].w", {2}}}), "");
  EXPECT_TRUE(contains(rowsError({{"e[0:3].w", {2, 3}}}),
                       "parameter \"e[0:3].w\" is f32[2,3] in the file, expected 3 tensors, as "
                       "its name says"));
  EXPECT_TRUE(contains(rowsError({{"e[4:5].w", {}}}),
                       "parameter \"e[4:5].w\" is f32[] in the file, expected 1 tensors"));
  for (const auto &[other, shape] :
       {std::pair("e.1.w", Shape{3}), std::pair("e.1.w[0:3]", Shape{3}),
        std::pair("e[1:3].w", Shape{2, 3}), std::pair("e[0:1].w", Shape{1, 3})}) {
    EXPECT_TRUE(contains(rowsError({{"e[0:2].w", {2, 3}}, {other, shape}}),
                         "are the same rows of a tensor of weights files"))
        << other;
    EXPECT_TRUE(contains(rowsError({{other, shape}, {"e[0:2].w", {2, 3}}}),
                         "are the same rows of a tensor of weights files"))
        << other;
  }
}

/// The error of a plan for dp=2, micro=4, ep=2 with an input, or a state, of these shards.
static std::string pieceError(const Shape &shape, const DimAxes &sharding, bool isInput = true,
                              int64_t microbatches = 4) {
  PlanBuilder builder;
  builder.axis("dp", 2);
  builder.axis("micro", microbatches, /*temporal=*/true);
  builder.axis("ep", 2);
  if (isInput)
    builder.input("x", DType::F32, shape, sharding);
  else
    builder.state("x", DType::F32, shape, sharding);
  return messageOf(findPlanError(*builder.build()));
}

TEST(VerifyBindings, InputsMayHaveAPieceOfEachMicrobatch) {
  EXPECT_EQ(pieceError({16, 3}, {{"dp", "micro", "ep"}, {}}), "");
  EXPECT_EQ(pieceError({32, 3}, {{"micro", "ep"}, {"dp"}}), "");
  EXPECT_EQ(pieceError({8}, {{"micro", "ep"}}), "");
  EXPECT_EQ(pieceError({16}, {{"micro", "ep", "dp"}}), "");
  EXPECT_EQ(pieceError({0}, {{"micro", "ep"}}), "");
  EXPECT_EQ(pieceError({6}, {{"micro", "ep"}}, true, /*microbatches=*/1), "");
  // Other dimensions may have padding.
  EXPECT_EQ(pieceError({8, 3}, {{"micro", "ep"}, {"dp"}}), "");
}

TEST(VerifyBindings, PiecesOfMicrobatchesAreOfEvenSizes) {
  std::string expected = " over the temporal axis \"micro\"; expected other axes after it, and a "
                         "size that all of them divide";
  for (const DimAxes &sharding :
       {DimAxes{{"micro"}, {}}, DimAxes{{"dp", "micro"}, {}}, DimAxes{{"ep", "dp", "micro"}, {}}})
    EXPECT_TRUE(contains(pieceError({16, 3}, sharding),
                         "input \"x\": the sharding splits dimension 0 of f32[16,3]" + expected));
  for (int64_t size : {1, 4, 12, 17})
    EXPECT_TRUE(contains(pieceError({size}, {{"dp", "micro", "ep"}}), expected)) << size;
  EXPECT_TRUE(contains(pieceError({7}, {{"micro", "ep"}}, true, /*microbatches=*/1), expected));
}

TEST(VerifyBindings, OnlyTheRowsOfInputsHavePieces) {
  std::string expected = "the sharding names the temporal axis \"micro\"; what outlives a "
                         "microbatch is split over spatial axes only";
  EXPECT_TRUE(contains(pieceError({3, 16}, {{}, {"micro", "ep"}}), "input \"x\": " + expected));
  EXPECT_TRUE(contains(pieceError({16, 3}, {{"micro", "ep"}, {}}, /*isInput=*/false),
                       "state \"x\": " + expected));
  EXPECT_TRUE(
      contains(pieceError({16, 3}, {{"dp", "micro", "ep"}, {}}, /*isInput=*/false), expected));
}

TEST(VerifyBindings, OutputsHaveNoPieces) {
  PlanBuilder builder;
  builder.axis("micro", 4, /*temporal=*/true);
  builder.axis("ep", 2);
  uint32_t y = builder.state("y", DType::F32, {8}, {{}}).buffer();
  builder.output("z", DType::F32, {16}, {{"micro", "ep"}}, y);
  EXPECT_ERROR(findPlanError(*builder.build()),
               "output \"z\": the sharding names the temporal axis \"micro\"");
}

TEST(VerifyBindings, WhatMustBeZeroIsAMetricOfFloats) {
  auto errorOf = [](DType dtype, bool isMetric, bool mustBeZero) {
    PlanBuilder builder;
    uint32_t x = builder.input("x", dtype, {4}, {{}}).buffer();
    plan::Output &output = builder.output("lost:h.0", dtype, {4}, {{}}, x);
    output.set_metric(isMetric);
    output.set_must_be_zero(mustBeZero);
    return messageOf(findPlanError(*builder.build()));
  };
  for (DType dtype : {DType::F32, DType::F64}) {
    EXPECT_EQ(errorOf(dtype, false, false), "");
    EXPECT_EQ(errorOf(dtype, true, false), "");
    EXPECT_EQ(errorOf(dtype, true, true), "");
    EXPECT_TRUE(contains(errorOf(dtype, false, true),
                         "output \"lost:h.0\" must be zero, and is no metric; expected a metric "
                         "of floats"));
  }
  EXPECT_EQ(errorOf(DType::I32, true, false), "");
  EXPECT_TRUE(contains(errorOf(DType::I32, true, true),
                       "output \"lost:h.0\" must be zero, and is not of floats; expected a metric "
                       "of floats"));
}

TEST(VerifyBindings, MasterWeightsMayLieInAnotherWay) {
  PlanBuilder builder;
  builder.axis("a", 2);
  builder.state("w", DType::BF16, {4, 6}, {{}, {}});
  auto addMaster = [&](const std::string &name) {
    plan::State &master = builder.state(name, DType::F32, {4, 6}, {{}, {"a"}});
    master.set_parameter("w");
    master.set_kind(plan::State::MASTER_WEIGHTS);
  };
  addMaster("w.master");
  EXPECT_OK(findPlanError(*builder.build()));
  addMaster("w.second");
  EXPECT_ERROR(findPlanError(*builder.build()),
               "states \"w.master\" and \"w.second\" both hold master "
               "weights of parameter \"w\"; expected one at most");
}

TEST(VerifyBindings, RolesOfInputs) {
  auto errorOf = [](plan::Input::Role role, DType dtype, const Shape &shape) {
    PlanBuilder builder;
    builder.input("x", dtype, shape, DimAxes(shape.size())).set_role(role);
    return messageOf(findPlanError(*builder.build()));
  };
  EXPECT_EQ(errorOf(plan::Input::BATCHES, DType::F32, {}), "");
  EXPECT_EQ(errorOf(plan::Input::BATCHES, DType::F64, {}), "");
  EXPECT_TRUE(contains(errorOf(plan::Input::BATCHES, DType::F32, {1}),
                       "the number of batches is a scalar of a float type, found f32[1]"));
  for (const auto &[dtype, shape] :
       {std::pair(DType::F32, Shape{}), std::pair(DType::I32, Shape{4}),
        std::pair(DType::BF16, Shape{4}), std::pair(DType::F32, Shape{0}),
        std::pair(DType::F32, Shape{2, 2})})
    EXPECT_TRUE(contains(errorOf(plan::Input::LEARNING_RATES, dtype, shape),
                         "learning rates are a vector of f32 or f64, found " +
                             TensorType{dtype, shape}.str()));
  for (const auto &[dtype, shape] :
       {std::pair(DType::I32, Shape{1}), std::pair(DType::F32, Shape{})})
    EXPECT_TRUE(contains(errorOf(plan::Input::FIRST_STEP, dtype, shape),
                         "the step of the first learning rate is a scalar of i32, found"));
  for (const auto &[role, type] :
       {std::pair(plan::Input::LEARNING_RATES, TensorType{DType::F32, {4}}),
        std::pair(plan::Input::FIRST_STEP, TensorType{DType::I32, {}})})
    EXPECT_TRUE(contains(errorOf(role, type.dtype, type.shape),
                         "the program has one of LEARNING_RATES and FIRST_STEP; expected both"));
}

TEST(VerifyBindings, LearningRatesAreOnEveryDeviceAndGoWithCounters) {
  auto errorOf = [](const std::function<void(PlanBuilder &)> &change) {
    PlanBuilder builder;
    builder.axis("a", 2);
    StepStatePlan stepState(builder, /*scalesLoss=*/true);
    builder.task("t");
    builder.schedule(0);
    stepState.computeScalars();
    change(builder);
    return messageOf(findPlanError(*builder.build()));
  };
  EXPECT_EQ(errorOf([](PlanBuilder &) {}), "");
  EXPECT_TRUE(
      contains(errorOf([](PlanBuilder &b) {
                 b.program().mutable_inputs(0)->mutable_sharding()->mutable_dims(0)->add_axes("a");
                 b.program().mutable_buffers(0)->set_shape(0, kNumTestRates / 2);
               }),
               "input \"learning_rates\": is split over devices; expected all of it"));
  for (plan::State::Kind kind : {plan::State::APPLIED_STEPS, plan::State::SKIPPED_STEPS})
    EXPECT_TRUE(contains(errorOf([&](PlanBuilder &b) {
                           for (int i = 0; i < b.program().states_size(); ++i)
                             if (b.program().states(i).kind() == kind)
                               b.program().mutable_states()->DeleteSubrange(i, 1);
                         }),
                         "the program has learning rates and no state of kind " +
                             plan::State::Kind_Name(kind)));
}

TEST(VerifyBindings, StepStates) {
  auto errorOf = [](plan::State::Kind kind, DType dtype, const Shape &shape,
                    const std::function<void(plan::State &)> &change = {}) {
    PlanBuilder builder;
    plan::State &state = builder.state("s", dtype, shape, DimAxes(shape.size()));
    state.set_kind(kind);
    if (change)
      change(state);
    return messageOf(findPlanError(*builder.build()));
  };
  for (auto kind : {plan::State::APPLIED_STEPS, plan::State::SKIPPED_STEPS, plan::State::GOOD_STEPS,
                    plan::State::GROWTH_INTERVAL}) {
    EXPECT_EQ(errorOf(kind, DType::I32, {}), "");
    EXPECT_TRUE(contains(errorOf(kind, DType::F32, {}), "of step state is i32[], found f32[]"));
    EXPECT_TRUE(contains(errorOf(kind, DType::I32, {1}), "of step state is i32[], found i32[1]"));
  }
  EXPECT_EQ(errorOf(plan::State::LOSS_SCALE, DType::F32, {}), "");
  EXPECT_EQ(errorOf(plan::State::LOSS_SCALE, DType::F64, {}), "");
  EXPECT_TRUE(contains(errorOf(plan::State::LOSS_SCALE, DType::F16, {}),
                       "LOSS_SCALE of step state is f32[] or f64[], found f16[]"));
  EXPECT_EQ(errorOf(plan::State::RANDOM_KEY, DType::I32, {2}), "");
  EXPECT_TRUE(contains(errorOf(plan::State::RANDOM_KEY, DType::I32, {}),
                       "RANDOM_KEY of step state is i32[2], found i32[]"));
  EXPECT_TRUE(contains(
      errorOf(plan::State::LOSS_SCALE, DType::F32, {},
              [](plan::State &state) { state.mutable_init()->set_kind(plan::Init::NORMAL); }),
      "is step state and starts as random numbers"));
  EXPECT_TRUE(contains(errorOf(plan::State::GROWTH_INTERVAL, DType::I32, {},
                               [](plan::State &state) { state.set_update(state.buffer()); }),
                       "is the step state growth_interval and updated by the step"));
  EXPECT_TRUE(contains(errorOf(plan::State::GOOD_STEPS, DType::I32, {},
                               [](plan::State &state) { state.set_parameter("w"); }),
                       "state \"s\" is of kind GOOD_STEPS and belongs to parameter \"w\"; only "
                       "OPTIMIZER and MASTER_WEIGHTS do"));
  EXPECT_TRUE(contains(errorOf(plan::State::OPTIMIZER, DType::F32, {}),
                       "is of kind OPTIMIZER, but names no parameter"));
  EXPECT_TRUE(contains(errorOf(static_cast<plan::State::Kind>(77), DType::F32, {}),
                       "state \"s\" is of the unknown kind 77"));
  PlanBuilder twice;
  for (const char *name : {"a", "b"})
    twice.state(name, DType::I32, {}, {}).set_kind(plan::State::GOOD_STEPS);
  EXPECT_ERROR(findPlanError(*twice.build()),
               "states \"a\" and \"b\" are both of kind GOOD_STEPS; expected one at most");
  PlanBuilder split;
  split.axis("a", 2);
  split.state("key", DType::I32, {2}, {{"a"}}).set_kind(plan::State::RANDOM_KEY);
  EXPECT_ERROR(findPlanError(*split.build()),
               "state \"key\": is step state and split over devices; expected all of it on each");
}

TEST(VerifyBindings, StatesAndInputsLieApart) {
  PlanBuilder builder;
  builder.state("s", DType::F32, {64}, {{}});
  uint32_t input = builder.input("x", DType::F32, {16}, {{}}).buffer();
  EXPECT_OK(findPlanError(*builder.build()));
  builder.program().mutable_buffers(static_cast<int>(input))->set_offset(64);
  EXPECT_ERROR(findPlanError(*builder.build()),
               "state \"s\" and input \"x\" share bytes of the arena");
}

} // namespace verifyBindingsTest
