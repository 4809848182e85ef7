//===- TimeTableTest.cpp - Tests of interpolated times --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/cluster/TimeTable.h"

#include <cmath>
#include <gtest/gtest.h>

namespace timeTableTest {

using namespace dtc;
namespace cluster = dtc::cluster;

static double at(const std::vector<std::pair<double, double>> &points, double bytes) {
  cluster::KernelRate rate;
  for (auto [size, seconds] : points) {
    rate.add_points()->set_bytes(size);
    rate.mutable_points()->rbegin()->set_seconds(seconds);
  }
  return interpolateTime(rate.points(), bytes);
}

TEST(TimeTable, BetweenPoints) {
  std::vector<std::pair<double, double>> points = {{100, 2}, {200, 4}, {600, 6}};
  EXPECT_DOUBLE_EQ(at(points, 100), 2);
  EXPECT_DOUBLE_EQ(at(points, 150), 3);
  EXPECT_DOUBLE_EQ(at(points, 200), 4);
  EXPECT_DOUBLE_EQ(at(points, 400), 5);
  EXPECT_DOUBLE_EQ(at(points, 600), 6);
}

TEST(TimeTable, BeyondPoints) {
  std::vector<std::pair<double, double>> points = {{100, 2}, {200, 4}, {600, 6}};
  EXPECT_DOUBLE_EQ(at(points, 0), 2); // what starting takes
  EXPECT_DOUBLE_EQ(at(points, 1000), 8);
  // The larger one was the faster by chance: it does not get faster still.
  EXPECT_DOUBLE_EQ(at({{100, 2}, {200, 1}}, 1000), 1);
}

TEST(TimeTable, OnePoint) {
  EXPECT_DOUBLE_EQ(at({{100, 2}}, 10), 2);
  EXPECT_DOUBLE_EQ(at({{100, 2}}, 300), 6);
  // A measurement without bytes says nothing about the time of bytes.
  EXPECT_DOUBLE_EQ(at({{0, 2}}, 0), 2);
  EXPECT_DOUBLE_EQ(at({{0, 2}}, 300), 2);
}

namespace {
/// 2 x 3 x 2 rates: 1, 2, 4, ... of rows, columns, depths.
cluster::MatrixTable grid() {
  cluster::MatrixTable table;
  for (int64_t size : {10, 1000})
    table.add_rows(size);
  for (int64_t size : {1, 4, 64})
    table.add_columns(size);
  for (int64_t size : {100, 400})
    table.add_depths(size);
  for (int i = 0; i < 12; ++i)
    table.add_flops(std::exp2(i));
  return table;
}
} // namespace

TEST(MatrixTable, AtItsPoints) {
  EXPECT_NEAR(interpolateRate(grid(), 10, 1, 100), 1, 1e-12);
  EXPECT_NEAR(interpolateRate(grid(), 10, 1, 400), 2, 1e-12);
  EXPECT_NEAR(interpolateRate(grid(), 10, 4, 100), 4, 1e-12);
  EXPECT_NEAR(interpolateRate(grid(), 10, 64, 400), 32, 1e-9);
  EXPECT_NEAR(interpolateRate(grid(), 1000, 1, 100), 64, 1e-9);
  EXPECT_NEAR(interpolateRate(grid(), 1000, 64, 400), 2048, 1e-9);
}

/// A size in the middle on a logarithmic scale has the geometric mean.
TEST(MatrixTable, BetweenItsPoints) {
  EXPECT_NEAR(interpolateRate(grid(), 10, 1, 200), std::sqrt(2), 1e-12);
  EXPECT_NEAR(interpolateRate(grid(), 100, 1, 100), 8, 1e-9);
  EXPECT_NEAR(interpolateRate(grid(), 10, 16, 100), 8, 1e-9);
  EXPECT_NEAR(interpolateRate(grid(), 100, 2, 200), 8 * 2 * std::sqrt(2), 1e-9);
}

TEST(MatrixTable, OutsideOfItsPoints) {
  EXPECT_NEAR(interpolateRate(grid(), 1, 0.5, 1), 1, 1e-12);
  EXPECT_NEAR(interpolateRate(grid(), 1e9, 1e9, 1e9), 2048, 1e-9);
  EXPECT_NEAR(interpolateRate(grid(), 1e9, 1, 50), 64, 1e-9);
}

/// With a model the ratio is interpolated, so that a table of the model's own rates is the model.
TEST(MatrixTable, WithAModel) {
  auto model = [](double rows, double columns, double depth, double batch = 1) {
    return batch * (rows + 3 * columns + depth);
  };
  cluster::MatrixTable table = grid();
  int i = 0;
  for (double rows : {10, 1000})
    for (double columns : {1, 4, 64})
      for (double depth : {100, 400})
        table.set_flops(i++, 2 * model(rows, columns, depth));
  EXPECT_NEAR(interpolateRate(table, 10, 4, 400, model), 2 * model(10, 4, 400), 1e-9);
  EXPECT_NEAR(interpolateRate(table, 77, 5, 123, model), 2 * model(77, 5, 123), 1e-9);
  EXPECT_NEAR(interpolateRate(table, 4000, 1, 7, model), 2 * model(4000, 1, 7), 1e-9);
  // The table is of single products; the gain of several at once is the model's.
  EXPECT_NEAR(interpolateRate(table, 77, 5, 123, model, 9), 2 * model(77, 5, 123, 9), 1e-9);
}

} // namespace timeTableTest
