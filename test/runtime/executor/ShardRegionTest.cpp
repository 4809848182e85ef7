//===- ShardRegionTest.cpp - Tests of index ranges of shards --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/ShardRegion.h"

#include <gtest/gtest.h>
#include <numeric>

namespace shardRegionTest {

using namespace dtc;
using namespace dtc::runtime;

namespace {

dtc::plan::Sharding sharding(const std::vector<std::vector<std::string>> &dims) {
  dtc::plan::Sharding result;
  for (const auto &axes : dims)
    result.add_dims()->mutable_axes()->Assign(axes.begin(), axes.end());
  return result;
}

/// The numbers of the elements that a device holds, in the order in which it holds them.
std::vector<int32_t> shardOf(const Mesh &mesh, const dtc::plan::Sharding &sharding,
                             const std::vector<int64_t> &shape, int64_t device) {
  ShardRegion region = ShardRegion::of(mesh, sharding, shape, device);
  int64_t whole = 1, local = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    whole *= shape[d];
    local *= region.local[d];
  }
  std::vector<int32_t> global(static_cast<size_t>(whole));
  std::iota(global.begin(), global.end(), 0);
  std::vector<int32_t> shard(static_cast<size_t>(local), -1);
  copyToShard(region, 4, reinterpret_cast<const std::byte *>(global.data()),
              reinterpret_cast<std::byte *>(shard.data()));
  return shard;
}

} // namespace

TEST(ShardRegion, SplitsDimensions) {
  Mesh mesh({{"a", 2, false}, {"b", 2, false}});
  EXPECT_EQ(shardOf(mesh, sharding({{}, {}}), {2, 2}, 3), (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(shardOf(mesh, sharding({{"a"}, {}}), {4, 2}, 2), (std::vector<int32_t>{4, 5, 6, 7}));
  EXPECT_EQ(shardOf(mesh, sharding({{}, {"b"}}), {2, 4}, 1), (std::vector<int32_t>{2, 3, 6, 7}));
  EXPECT_EQ(shardOf(mesh, sharding({{"b"}, {"a"}}), {2, 4}, 1), (std::vector<int32_t>{4, 5}));
  EXPECT_EQ(shardOf(mesh, sharding({{"a"}, {}, {"b"}}), {2, 2, 4}, 3),
            (std::vector<int32_t>{10, 11, 14, 15}));
}

TEST(ShardRegion, TheFirstAxisOfADimensionSplitsCoarsest) {
  Mesh mesh({{"a", 2, false}, {"b", 2, false}});
  EXPECT_EQ(shardOf(mesh, sharding({{"a", "b"}}), {8}, 1), (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(shardOf(mesh, sharding({{"b", "a"}}), {8}, 1), (std::vector<int32_t>{4, 5}));
}

TEST(ShardRegion, ScalarsAndEmptyTensors) {
  Mesh mesh({{"a", 2, false}});
  EXPECT_EQ(shardOf(mesh, sharding({}), {}, 1), std::vector<int32_t>{0});
  EXPECT_EQ(shardOf(mesh, sharding({{"a"}, {}}), {0, 5}, 1), std::vector<int32_t>{});
  EXPECT_EQ(shardOf(mesh, sharding({{"a"}, {}}), {4, 0}, 1), std::vector<int32_t>{});
}

TEST(ShardRegion, AllShardsTogetherAreTheWhole) {
  Mesh mesh({{"a", 2, false}, {"b", 3, false}, {"c", 2, false}});
  dtc::plan::Sharding split = sharding({{"c"}, {"b", "a"}, {}});
  std::vector<int32_t> whole(4 * 6 * 3, -1), expected(whole.size());
  std::iota(expected.begin(), expected.end(), 0);
  for (int64_t device = 0; device < mesh.numDevices(); ++device) {
    std::vector<int32_t> shard = shardOf(mesh, split, {4, 6, 3}, device);
    copyFromShard(ShardRegion::of(mesh, split, {4, 6, 3}, device), 4,
                  reinterpret_cast<const std::byte *>(shard.data()),
                  reinterpret_cast<std::byte *>(whole.data()));
  }
  EXPECT_EQ(whole, expected);
}

TEST(ShardRegion, RunsAreAsLongAsTheyCanBe) {
  Mesh mesh({{"a", 2, false}});
  auto runs = [&](const std::vector<std::vector<std::string>> &dims) {
    int count = 0;
    ShardRegion::of(mesh, sharding(dims), {4, 6, 8}, 1).forEachRun([&](int64_t, int64_t, int64_t) {
      ++count;
    });
    return count;
  };
  EXPECT_EQ(runs({{}, {}, {}}), 1);
  EXPECT_EQ(runs({{"a"}, {}, {}}), 1);
  EXPECT_EQ(runs({{}, {"a"}, {}}), 4);
  EXPECT_EQ(runs({{}, {}, {"a"}}), 24);
}

} // namespace shardRegionTest
