//===- OwnRowsTest.cpp - Tests of the rows that a process reads -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/OwnRows.h"

#include "plan/PlanTypes.h"
#include "test/lib/RandomCases.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

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

TEST(OwnRows, ArePiecesOfMicrobatches) {
  Mesh mesh({{"dp", 2, false}, {"micro", 2, true}, {"ep", 2, false}});
  plan::Plan plan;
  plan::Input &input = *plan.add_programs()->add_inputs();
  input.set_name("tokens");
  input.set_dtype(plan::I32);
  input.add_shape(16);
  auto &axes = *input.mutable_sharding()->add_dims();
  for (const char *axis : {"dp", "micro", "ep"})
    axes.add_axes(axis);
  auto rows = [&](std::vector<int64_t> devices) {
    return pairsOf(rowsOf(plan, mesh, devices), "tokens");
  };
  EXPECT_EQ(rows({0}), (Pairs{{0, 2}, {4, 6}}));
  EXPECT_EQ(rows({1}), (Pairs{{2, 4}, {6, 8}}));
  EXPECT_EQ(rows({0, 1}), (Pairs{{0, 8}}));
  EXPECT_EQ(rows({3, 0}), (Pairs{{0, 2}, {4, 6}, {10, 12}, {14, 16}}));
  EXPECT_EQ(rows({2, 1}), (Pairs{{2, 4}, {6, 10}, {12, 14}}));
}

/// Against the devices that have each row, of random meshes with an axis of microbatches.
TEST(OwnRows, RandomDevicesHaveTheRowsOfTheirBlocks) {
  dtc::test::forEachRandomCase(300, [](uint64_t seed) {
    std::mt19937_64 engine(seed);
    auto number = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(engine);
    };
    std::vector<MeshAxis> axes = {{"a", number(1, 3), false},
                                  {"b", number(1, 3), false},
                                  {"c", number(1, 3), false},
                                  {"micro", number(1, 4), true}};
    std::shuffle(axes.begin(), axes.end(), engine);
    Mesh mesh(axes);
    // Axes before that of microbatches, and at least one after it.
    std::vector<std::string> split = {"a", "b", "c"};
    std::shuffle(split.begin(), split.end(), engine);
    split.resize(static_cast<size_t>(number(1, 3)));
    split.insert(split.begin() + number(0, std::ssize(split) - 1), "micro");
    int64_t blockRows = number(1, 3), numRows = mesh.groupSize(split) * blockRows;
    plan::Plan plan;
    plan::Input &input = *plan.add_programs()->add_inputs();
    input.set_name("x");
    input.set_dtype(plan::F32);
    input.add_shape(numRows);
    input.mutable_sharding()->add_dims()->mutable_axes()->Assign(split.begin(), split.end());
    std::vector<int64_t> devices(static_cast<size_t>(mesh.numDevices()));
    std::iota(devices.begin(), devices.end(), int64_t{0});
    std::shuffle(devices.begin(), devices.end(), engine);
    devices.resize(static_cast<size_t>(number(0, mesh.numDevices() - 1)));

    auto has = [&](int64_t device, int64_t row) {
      std::vector<int64_t> coordinates = mesh.coordinates(device);
      int64_t block = row / blockRows;
      for (auto axis = split.rbegin(); axis != split.rend(); ++axis) {
        size_t index = 0;
        while (axes[index].name != *axis)
          ++index;
        if (!axes[index].temporal && coordinates[index] != block % axes[index].size)
          return false;
        block /= axes[index].size;
      }
      return true;
    };
    Pairs expected; // as long as they can be
    for (int64_t row = 0; row < numRows; ++row)
      if (std::ranges::any_of(devices, [&](int64_t device) { return has(device, row); })) {
        if (expected.empty() || expected.back().second != row)
          expected.emplace_back(row, row);
        ++expected.back().second;
      }
    EXPECT_EQ(pairsOf(rowsOf(plan, mesh, devices), "x"), expected);
  });
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
