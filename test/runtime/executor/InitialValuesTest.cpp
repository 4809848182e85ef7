//===- InitialValuesTest.cpp - Tests of initial values --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/InitialValues.h"

#include "plan/PlanTypes.h"
#include "runtime/executor/Session.h"
#include "support/Philox.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/FakeBackend.h"
#include "test/lib/plans/PlanBuilder.h"

#include <cmath>
#include <gtest/gtest.h>

namespace initialValuesTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

/// The initial value of a state of 6 x 10 elements on some mesh, put together from all shards.
static std::vector<float> initialValue(const Mesh &mesh, const DimAxes &sharding, uint64_t seed,
                                       const std::string &name = "w",
                                       plan::Init::Kind kind = plan::Init::NORMAL) {
  PlanBuilder builder;
  for (const MeshAxis &axis : mesh.axes())
    builder.axis(axis.name, axis.size);
  plan::State &state = builder.state(name, DType::F32, {6, 10}, sharding);
  state.mutable_init()->set_kind(kind);
  state.mutable_init()->set_scale(0.5);
  auto session = Session::create(builder.build(), createFakeBackend());
  EXPECT_OK(session);
  EXPECT_OK((*session)->initializeStates(seed));
  auto value = (*session)->getState(name);
  EXPECT_OK(value);
  return {value->as<float>(), value->as<float>() + 60};
}

TEST(InitialValues, DoNotDependOnTheLayout) {
  std::vector<float> one = initialValue(Mesh({{"a", 1, false}}), {{}, {}}, 3);
  Mesh mesh({{"a", 2, false}, {"b", 5, false}, {"c", 3, false}});
  EXPECT_EQ(initialValue(mesh, {{}, {}}, 3), one);
  EXPECT_EQ(initialValue(mesh, {{"a"}, {}}, 3), one);
  EXPECT_EQ(initialValue(mesh, {{"c"}, {"b"}}, 3), one);
  EXPECT_EQ(initialValue(mesh, {{"a", "c"}, {"b"}}, 3), one);
  EXPECT_EQ(initialValue(mesh, {{}, {"b", "a"}}, 3), one);
  // Shards with padding.
  EXPECT_EQ(initialValue(mesh, {{"b"}, {"c", "a"}}, 3), one);
  EXPECT_EQ(initialValue(mesh, {{}, {"c", "b", "a"}}, 3), one);
}

TEST(InitialValues, DependOnSeedAndName) {
  Mesh mesh({{"a", 1, false}});
  std::vector<float> one = initialValue(mesh, {{}, {}}, 3);
  EXPECT_NE(initialValue(mesh, {{}, {}}, 4), one);
  EXPECT_NE(initialValue(mesh, {{}, {}}, uint64_t{3} << 32), one);
  EXPECT_NE(initialValue(mesh, {{}, {}}, 3, "v"), one);
}

TEST(InitialValues, FollowTheDocumentedFormula) {
  std::vector<float> values = initialValue(Mesh({{"a", 1, false}}), {{}, {}}, 0x100000002);
  for (uint64_t i = 0; i < 60; ++i) {
    PhiloxCounter words = philox4x32(philoxCounter(i / 4, fnv1a("w")), {2, 1});
    EXPECT_EQ(values[i], boxMuller(words)[i % 4] * 0.5f);
  }
}

TEST(InitialValues, Constants) {
  Mesh mesh({{"a", 2, false}});
  EXPECT_EQ(initialValue(mesh, {{"a"}, {}}, 1, "w", plan::Init::ONES),
            std::vector<float>(60, 1.0f));
  EXPECT_EQ(initialValue(mesh, {{"a"}, {}}, 1, "w", plan::Init::ZEROS),
            std::vector<float>(60, 0.0f));
}

TEST(InitialValues, UniformStaysWithinItsScale) {
  for (float value : initialValue(Mesh({{"a", 1, false}}), {{}, {}}, 1, "w", plan::Init::UNIFORM)) {
    EXPECT_GE(value, -0.5f);
    EXPECT_LT(value, 0.5f);
  }
}

TEST(InitialValues, F64HoldsTheValuesOfF32) {
  plan::State state;
  state.set_name("w");
  state.mutable_init()->set_kind(plan::Init::NORMAL);
  state.mutable_init()->set_scale(0.02);
  ShardRegion region{{21}, {5}, {11}, {11}};
  std::vector<float> floats(11);
  std::vector<double> doubles(11);
  state.set_dtype(plan::F32);
  writeInitialValues(state, region, 9, reinterpret_cast<std::byte *>(floats.data()));
  state.set_dtype(plan::F64);
  writeInitialValues(state, region, 9, reinterpret_cast<std::byte *>(doubles.data()));
  EXPECT_EQ(std::vector<double>(floats.begin(), floats.end()), doubles);
}

TEST(InitialValues, DoNotDependOnTheThreads) {
  plan::State state;
  state.set_name("w");
  state.set_dtype(plan::F32);
  state.mutable_init()->set_kind(plan::Init::NORMAL);
  state.mutable_init()->set_scale(0.02);
  // One run, and many whose beginnings lie between those of blocks of four; enough for four
  // threads.
  for (const ShardRegion &region : {ShardRegion{{1100003}, {2}, {1100001}, {1100001}},
                                    ShardRegion{{2000, 1001}, {1, 3}, {1999, 601}, {2000, 602}}}) {
    auto elements = static_cast<size_t>(TensorType{DType::F32, region.local}.numElements());
    auto drawnBy = [&](int threads) {
      std::vector<float> values(elements, -1.0f);
      writeInitialValues(state, region, 9, reinterpret_cast<std::byte *>(values.data()), threads);
      return values;
    };
    std::vector<float> one = drawnBy(1);
    for (int threads : {2, 3, 16})
      EXPECT_EQ(drawnBy(threads), one) << threads;
  }
}

TEST(InitialValues, SixteenBitsRoundTheValuesOfF32) {
  for (plan::Init::Kind kind : {plan::Init::NORMAL, plan::Init::UNIFORM, plan::Init::ONES}) {
    plan::State state;
    state.set_name("w");
    state.mutable_init()->set_kind(kind);
    state.mutable_init()->set_scale(0.02);
    ShardRegion region{{21}, {5}, {11}, {11}};
    auto valuesAs = [&](plan::DType dtype) {
      HostTensor values(TensorType{toDType(dtype), {11}});
      state.set_dtype(dtype);
      writeInitialValues(state, region, 9, values.bytes.data());
      return values;
    };
    HostTensor floats = valuesAs(plan::F32);
    for (plan::DType dtype : {plan::BF16, plan::F16}) {
      HostTensor found = valuesAs(dtype), rounded(found.type);
      for (int64_t i = 0; i < 11; ++i)
        setElement(rounded, i, elementAt(floats, i));
      EXPECT_EQ(found.bytes, rounded.bytes);
    }
  }
}

/// A parameter in 16 bits and its master weights, on two devices.
static std::unique_ptr<Session> withMasterWeights(const DimAxes &ofParameter,
                                                  const DimAxes &ofMaster) {
  PlanBuilder builder;
  builder.axis("a", 2);
  plan::State &parameter = builder.state("w", DType::BF16, {6, 10}, ofParameter);
  parameter.mutable_init()->set_kind(plan::Init::NORMAL);
  parameter.mutable_init()->set_scale(0.5);
  plan::State &master = builder.state("w.master", DType::F32, {6, 10}, ofMaster);
  master.set_kind(plan::State::MASTER_WEIGHTS);
  master.set_parameter("w");
  auto session = Session::create(builder.build(), createFakeBackend());
  EXPECT_OK(session);
  return std::move(*session);
}

static HostTensor valueOf(const Session &session, const std::string &name) {
  auto value = session.getState(name);
  EXPECT_OK(value);
  return *value;
}

TEST(InitialValues, AParameterIsWhatItsMasterWeightsRoundTo) {
  std::vector<float> drawn = initialValue(Mesh({{"a", 1, false}}), {{}, {}}, 3);
  for (const auto &[ofParameter, ofMaster] : std::vector<std::pair<DimAxes, DimAxes>>{
           {{{}, {}}, {{}, {}}}, {{{"a"}, {}}, {{"a"}, {}}}, {{{}, {}}, {{"a"}, {}}}}) {
    std::unique_ptr<Session> session = withMasterWeights(ofParameter, ofMaster);
    ASSERT_OK(session->initializeStates(3));
    HostTensor master = valueOf(*session, "w.master"), parameter = valueOf(*session, "w");
    HostTensor rounded(parameter.type);
    for (int64_t i = 0; i < 60; ++i) {
      EXPECT_EQ(elementAt(master, i), drawn[static_cast<size_t>(i)]);
      setElement(rounded, i, elementAt(master, i));
    }
    EXPECT_EQ(parameter.bytes, rounded.bytes);
  }
}

TEST(InitialValues, StatesThatAreSetKeepTheirValues) {
  std::unique_ptr<Session> drawn = withMasterWeights({{}, {}}, {{}, {}});
  ASSERT_OK(drawn->initializeStates(3));
  for (const char *name : {"w", "w.master"}) {
    std::unique_ptr<Session> session = withMasterWeights({{}, {}}, {{}, {}});
    HostTensor value(valueOf(*session, name).type);
    for (int64_t i = 0; i < 60; ++i)
      setElement(value, i, static_cast<double>(i));
    ASSERT_OK(session->setState(name, value));
    ASSERT_OK(session->initializeOtherStates(3));
    for (const char *other : {"w", "w.master"})
      EXPECT_EQ(valueOf(*session, other).bytes,
                other == name ? value.bytes : valueOf(*drawn, other).bytes)
          << name << " was set, " << other << " differs";
    ASSERT_OK(session->initializeStates(3));
    EXPECT_EQ(valueOf(*session, name).bytes, valueOf(*drawn, name).bytes);
  }
}

} // namespace initialValuesTest
