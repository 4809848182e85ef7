//===- OwnRowsTest.cpp - Tests of the rows that a process reads -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/OwnRows.h"

#include "plan/PlanTypes.h"

#include <gtest/gtest.h>
#include <numeric>

namespace ownRowsTest {

using namespace dtc;
using namespace dtc::runtime;

namespace {

/// Two stages, each over dp=4; the first has tokens[10, 3], split over dp, and the second labels.
plan::Plan makePlan() {
  plan::Plan plan;
  for (const char *name : {"tokens", "labels"}) {
    plan::Input &input = *plan.add_programs()->add_inputs();
    input.set_name(name);
    input.set_dtype(plan::I32);
    input.add_shape(10);
    input.add_shape(3);
    input.mutable_sharding()->add_dims()->add_axes("dp");
    input.mutable_sharding()->add_dims();
  }
  return plan;
}

const Mesh kMesh({{"dp", 4, false}, {"pp", 2, false, true}});

using Pairs = std::vector<std::pair<int64_t, int64_t>>;

Pairs pairsOf(const BatchRows &rows, const char *name) {
  Pairs pairs;
  for (const RowRange &range : rows.at(name))
    pairs.emplace_back(range.begin, range.end);
  return pairs;
}

} // namespace

TEST(OwnRows, ThoseOfTheDevices) {
  plan::Plan plan = makePlan();
  // Devices are numbered dp, then pp: 0 has the first rows of the tokens, 7 the last of the labels.
  const int64_t first[] = {0}, ends[] = {0, 1, 6, 7}, middle[] = {2, 4};
  EXPECT_EQ(pairsOf(rowsOf(plan, kMesh, first), "tokens"), (Pairs{{0, 3}}));
  EXPECT_EQ(pairsOf(rowsOf(plan, kMesh, first), "labels"), Pairs());
  EXPECT_EQ(pairsOf(rowsOf(plan, kMesh, ends), "tokens"), (Pairs{{0, 3}, {9, 10}}));
  EXPECT_EQ(pairsOf(rowsOf(plan, kMesh, ends), "labels"), (Pairs{{0, 3}, {9, 10}}));
  EXPECT_EQ(pairsOf(rowsOf(plan, kMesh, middle), "tokens"), (Pairs{{3, 9}}));
}

TEST(OwnRows, AllDevicesHaveAllRows) {
  std::vector<int64_t> all(8);
  std::iota(all.begin(), all.end(), int64_t{0});
  EXPECT_TRUE(rowsOf(makePlan(), kMesh, all).empty());
}

TEST(OwnRows, RowsGoToTheirPlaces) {
  plan::Plan plan = makePlan();
  BatchRows rows = {{"tokens", {{1, 3}, {9, 10}}}, {"labels", {}}};
  HostTensor part(TensorType{DType::I32, {3, 3}});
  std::iota(part.as<int32_t>(), part.as<int32_t>() + 9, 1);
  Batch batch;
  batch.emplace("tokens", std::move(part));
  batch.emplace("labels", HostTensor(TensorType{DType::I32, {0, 3}}));
  Batch whole = intoWhole(std::move(batch), rows, dataInputsOf(plan));
  ASSERT_EQ(whole.at("tokens").type, (TensorType{DType::I32, {10, 3}}));
  std::vector<int32_t> expected(30);
  std::iota(expected.begin() + 3, expected.begin() + 9, 1);
  std::iota(expected.begin() + 27, expected.end(), 7);
  const auto *values = whole.at("tokens").as<int32_t>();
  EXPECT_EQ(std::vector<int32_t>(values, values + 30), expected);
  EXPECT_EQ(whole.at("labels").type, (TensorType{DType::I32, {10, 3}}));
}

} // namespace ownRowsTest
