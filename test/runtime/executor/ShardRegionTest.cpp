//===- ShardRegionTest.cpp - Tests of index ranges of shards --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/ShardRegion.h"

#include "test/lib/RandomCases.h"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <numeric>
#include <optional>
#include <random>

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

TEST(ShardRegion, HasAPieceOfEachMicrobatch) {
  Mesh mesh({{"dp", 2, false}, {"micro", 2, true}, {"ep", 2, false}});
  dtc::plan::Sharding split = sharding({{"dp", "micro", "ep"}, {}});
  EXPECT_EQ(shardOf(mesh, split, {16, 1}, 0), (std::vector<int32_t>{0, 1, 4, 5}));
  EXPECT_EQ(shardOf(mesh, split, {16, 1}, 1), (std::vector<int32_t>{2, 3, 6, 7}));
  EXPECT_EQ(shardOf(mesh, split, {16, 1}, 2), (std::vector<int32_t>{8, 9, 12, 13}));
  EXPECT_EQ(shardOf(mesh, split, {8, 2}, 3), (std::vector<int32_t>{10, 11, 14, 15}));
  ShardRegion region = ShardRegion::of(mesh, split, {16, 1}, 3);
  EXPECT_EQ(region.pieces, 2);
  EXPECT_EQ(region.rowsOfPiece(0), (std::pair<int64_t, int64_t>{10, 12}));
  EXPECT_EQ(region.rowsOfPiece(1), (std::pair<int64_t, int64_t>{14, 16}));
  // Where the axis of microbatches comes last, or first with a size of 1, the rows are one piece.
  ShardRegion whole = ShardRegion::of(mesh, sharding({{"dp"}, {}}), {16, 1}, 3);
  EXPECT_EQ(whole.pieces, 1);
  EXPECT_EQ(whole.rowsOfPiece(0), (std::pair<int64_t, int64_t>{8, 16}));
  Mesh once({{"micro", 1, true}, {"ep", 2, false}});
  EXPECT_EQ(shardOf(once, sharding({{"micro", "ep"}, {}}), {4, 1}, 1),
            (std::vector<int32_t>{2, 3}));
}

namespace {

/// A random mesh, a sharding, and a shape that it can have. In most cases the first dimension is
/// split over the axis of microbatches and then over others.
struct RandomShards {
  explicit RandomShards(uint64_t seed) : engine(seed) {
    std::vector<MeshAxis> axes;
    for (const char *name : {"a", "b", "c", "d"})
      axes.push_back({name, number(1, 3), false});
    axes.push_back({"micro", number(1, 4), true});
    std::shuffle(axes.begin(), axes.end(), engine);
    mesh = Mesh(axes);
    dims.resize(static_cast<size_t>(number(1, 3)));
    std::vector<std::string> inside;
    std::vector<std::string> spatial = {"a", "b", "c", "d"};
    std::shuffle(spatial.begin(), spatial.end(), engine);
    for (const std::string &axis : spatial)
      if (int64_t dim = number(-1, std::ssize(dims)); dim == std::ssize(dims))
        inside.push_back(axis);
      else if (dim >= 0)
        dims[static_cast<size_t>(dim)].push_back(axis);
    if (!inside.empty()) {
      dims[0].emplace_back("micro");
      dims[0].insert(dims[0].end(), inside.begin(), inside.end());
    }
    for (size_t d = 0; d < dims.size(); ++d)
      shape.push_back(d == 0 && !inside.empty() ? mesh.groupSize(dims[0]) * number(0, 3)
                                                : number(0, 7));
  }

  int64_t number(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  }

  /// The places in the shard of `device` that an element of a dimension has; none if another device
  /// has it. Blocks of blocks, as docs/kernels.md says; the coordinate on the axis of microbatches
  /// is any, and their blocks follow each other.
  std::optional<int64_t> placeOf(size_t dim, int64_t element, int64_t device) const {
    std::vector<int64_t> coordinates = mesh.coordinates(device);
    int64_t size = shape[dim], microbatch = 0;
    for (const std::string &name : dims[dim]) {
      size_t axis = 0;
      while (mesh.axes()[axis].name != name)
        ++axis;
      size = (size + mesh.axes()[axis].size - 1) / mesh.axes()[axis].size;
      int64_t block = element / size;
      element %= size;
      if (name == "micro")
        microbatch = block;
      else if (block != coordinates[axis])
        return std::nullopt;
    }
    return microbatch * size + element;
  }

  /// The numbers of the elements in the shard of a device; 0 where it has padding.
  std::vector<int32_t> shardOf(int64_t device) const {
    int64_t whole = 1, room = 1;
    std::vector<int64_t> local;
    for (size_t d = 0; d < shape.size(); ++d) {
      int64_t blocks = 1;
      for (const std::string &axis : dims[d])
        blocks *= axis == "micro" ? 1 : mesh.find(axis)->size;
      local.push_back((shape[d] + blocks - 1) / blocks);
      room *= local.back();
      whole *= shape[d];
    }
    std::vector<int32_t> shard(static_cast<size_t>(room));
    for (int64_t number = 0; number < whole; ++number) {
      int64_t rest = number, stride = 1, at = 0;
      bool has = true;
      for (size_t d = shape.size(); has && d-- > 0;) {
        std::optional<int64_t> place = placeOf(d, rest % shape[d], device);
        has = place.has_value();
        at += place.value_or(0) * stride;
        rest /= shape[d];
        stride *= local[d];
      }
      if (has)
        shard[static_cast<size_t>(at)] = static_cast<int32_t>(number);
    }
    return shard;
  }

  std::mt19937_64 engine;
  Mesh mesh;
  std::vector<std::vector<std::string>> dims;
  std::vector<int64_t> shape;
};

} // namespace

TEST(ShardRegion, RandomShardsHaveTheElementsOfTheirBlocks) {
  dtc::test::forEachRandomCase(400, [](uint64_t seed) {
    RandomShards random(seed);
    dtc::plan::Sharding split = sharding(random.dims);
    int64_t count =
        std::accumulate(random.shape.begin(), random.shape.end(), int64_t{1}, std::multiplies<>());
    std::vector<int32_t> whole(static_cast<size_t>(count), -1), expected(whole.size());
    std::iota(expected.begin(), expected.end(), 0);
    for (int64_t device = 0; device < random.mesh.numDevices(); ++device) {
      std::vector<int32_t> shard = shardOf(random.mesh, split, random.shape, device);
      ASSERT_EQ(shard, random.shardOf(device)) << "device " << device;
      copyFromShard(ShardRegion::of(random.mesh, split, random.shape, device), 4,
                    reinterpret_cast<const std::byte *>(shard.data()),
                    reinterpret_cast<std::byte *>(whole.data()));
    }
    EXPECT_EQ(whole, expected);
  });
}

TEST(ShardRegion, RunsOfPiecesAreAsLongAsTheyCanBe) {
  Mesh mesh({{"micro", 4, true}, {"a", 2, false}, {"b", 2, false}});
  auto runs = [&](const std::vector<std::vector<std::string>> &dims) {
    int count = 0;
    ShardRegion::of(mesh, sharding(dims), {16, 6}, 1).forEachRun([&](int64_t, int64_t, int64_t) {
      ++count;
    });
    return count;
  };
  EXPECT_EQ(runs({{"micro", "a"}, {}}), 4);
  EXPECT_EQ(runs({{"micro", "a"}, {"b"}}), 8);
}
} // namespace shardRegionTest
