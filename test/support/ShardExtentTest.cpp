//===- ShardExtentTest.cpp - The part of a dimension that a shard holds ---===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/ShardExtent.h"

#include "support/Mesh.h"

#include <gtest/gtest.h>
#include <random>

namespace shardExtentTest {

using namespace dtc;

namespace {

/// The extents of all devices.
std::vector<ShardExtent> extents(const Mesh &mesh, const std::vector<std::string> &axes,
                                 int64_t size) {
  std::vector<ShardExtent> result;
  for (int64_t device = 0; device < mesh.numDevices(); ++device)
    result.push_back(mesh.shardExtent(device, axes, size));
  return result;
}

} // namespace

TEST(ShardExtent, RoundsUp) {
  EXPECT_EQ(paddedShardSize(6, 3), 2);
  EXPECT_EQ(paddedShardSize(7, 3), 3);
  EXPECT_EQ(paddedShardSize(1, 3), 1);
  EXPECT_EQ(paddedShardSize(0, 3), 0);
  EXPECT_EQ(paddedShardSize(INT64_MAX, 2), int64_t{1} << 62);
  EXPECT_EQ(paddedShardSize(INT64_MAX, INT64_MAX), 1);
}

TEST(ShardExtent, PaddingMayBeTooMuch) {
  EXPECT_TRUE(paddedShardsFit(0, INT64_MAX));
  EXPECT_TRUE(paddedShardsFit(INT64_MAX, 1));
  EXPECT_TRUE(paddedShardsFit(INT64_MAX, INT64_MAX));
  EXPECT_FALSE(paddedShardsFit(INT64_MAX, 2));
}

TEST(ShardExtent, OneAxis) {
  Mesh mesh({{"a", 4, false}});
  using Extents = std::vector<ShardExtent>;
  EXPECT_EQ(extents(mesh, {"a"}, 8), (Extents{{0, 2, 2}, {2, 2, 2}, {4, 2, 2}, {6, 2, 2}}));
  EXPECT_EQ(extents(mesh, {"a"}, 5), (Extents{{0, 2, 2}, {2, 2, 2}, {4, 1, 2}, {6, 0, 2}}));
  EXPECT_EQ(extents(mesh, {"a"}, 1), (Extents{{0, 1, 1}, {1, 0, 1}, {2, 0, 1}, {3, 0, 1}}));
  EXPECT_EQ(extents(mesh, {"a"}, 0), (Extents{{0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}}));
  EXPECT_EQ(extents(mesh, {}, 5), Extents(4, {0, 5, 5}));
}

TEST(ShardExtent, EachAxisSplitsTheBlocksOfThoseBefore) {
  // A block ends where the block of an earlier axis does: device 1 holds element 2 and not 3.
  Mesh mesh({{"dp", 2, false}, {"tp", 2, false}});
  EXPECT_EQ(extents(mesh, {"dp", "tp"}, 5),
            (std::vector<ShardExtent>{{0, 2, 2}, {2, 1, 2}, {3, 2, 2}, {5, 0, 2}}));
  EXPECT_EQ(extents(mesh, {"tp", "dp"}, 5),
            (std::vector<ShardExtent>{{0, 2, 2}, {3, 2, 2}, {2, 1, 2}, {5, 0, 2}}));
}

TEST(ShardExtent, AllShardsPartitionTheDimension) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 engine(seed);
    std::vector<MeshAxis> meshAxes;
    std::vector<std::string> axes;
    for (const char *name : {"a", "b", "c", "d"}) {
      meshAxes.push_back({name, 1 + static_cast<int64_t>(engine() % 4), false});
      axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(engine() % (axes.size() + 1)), name);
    }
    axes.resize(engine() % 5);
    Mesh mesh(meshAxes);
    auto size = static_cast<int64_t>(engine() % 40);
    int64_t room = paddedShardSize(size, mesh.groupSize(axes));
    int64_t next = 0;
    for (int64_t device : mesh.group(0, axes)) {
      ShardExtent extent = mesh.shardExtent(device, axes, size);
      EXPECT_EQ(extent.room, room);
      ASSERT_LE(extent.count, room);
      EXPECT_LE(extent.offset + room, room * mesh.groupSize(axes));
      if (extent.count > 0) {
        EXPECT_EQ(extent.offset, next);
      }
      next += extent.count;
    }
    EXPECT_EQ(next, size);
  }
}

} // namespace shardExtentTest
