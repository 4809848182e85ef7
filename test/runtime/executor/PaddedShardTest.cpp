//===- PaddedShardTest.cpp - Tests of padded shards -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/InitialValues.h"
#include "runtime/executor/Session.h"
#include "runtime/executor/ShardRegion.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/FakeBackend.h"
#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/TrainStep.h"

#include <gtest/gtest.h>
#include <numeric>
#include <random>

namespace paddedShardTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

namespace {

constexpr int32_t kGarbage = -77;

plan::Sharding shardingOf(const DimAxes &dims) {
  plan::Sharding result;
  for (const Axes &axes : dims)
    result.add_dims()->mutable_axes()->Assign(axes.begin(), axes.end());
  return result;
}

int64_t product(const Shape &shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

/// The numbers 1, 2, ... of the elements of a tensor.
std::vector<int32_t> numbered(const Shape &shape) {
  std::vector<int32_t> values(static_cast<size_t>(product(shape)));
  std::iota(values.begin(), values.end(), 1);
  return values;
}

const std::byte *bytesOf(const std::vector<int32_t> &values) {
  return reinterpret_cast<const std::byte *>(values.data());
}
std::byte *bytesOf(std::vector<int32_t> &values) {
  return reinterpret_cast<std::byte *>(values.data());
}

/// A device's shard of a numbered tensor, in a buffer that held garbage.
std::vector<int32_t> shardOf(const Mesh &mesh, const DimAxes &dims, const Shape &shape,
                             int64_t device) {
  ShardRegion region = ShardRegion::of(mesh, shardingOf(dims), shape, device);
  std::vector<int32_t> shard(static_cast<size_t>(product(region.local)), kGarbage);
  copyToShard(region, 4, bytesOf(numbered(shape)), bytesOf(shard));
  return shard;
}

/// Where element `index` of a dimension lies: follows it from axis to axis, and gives its place in
/// the shard if the device at `coordinates` holds it, else -1.
int64_t placeOf(int64_t index, int64_t size, const Mesh &mesh, const Axes &axes,
                const std::vector<int64_t> &coordinates) {
  for (const std::string &name : axes) {
    const MeshAxis *axis = mesh.find(name);
    size = (size + axis->size - 1) / axis->size;
    if (coordinates[static_cast<size_t>(axis - mesh.axes().data())] != index / size)
      return -1;
    index %= size;
  }
  return index;
}

/// The expected result of shardOf, element by element.
std::vector<int32_t> expectedShard(const Mesh &mesh, const DimAxes &dims, const Shape &shape,
                                   int64_t device) {
  Shape local = ShardRegion::of(mesh, shardingOf(dims), shape, device).local;
  std::vector<int32_t> shard(static_cast<size_t>(product(local)), 0);
  std::vector<int64_t> coordinates = mesh.coordinates(device);
  for (int64_t element = 0; element < product(shape); ++element) {
    int64_t rest = element, place = 0, stride = 1;
    bool held = true;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) {
      int64_t index = placeOf(rest % shape[d], shape[d], mesh, dims[d], coordinates);
      held = held && index >= 0;
      place += index * stride;
      stride *= local[d];
    }
    if (held)
      shard[static_cast<size_t>(place)] = static_cast<int32_t>(element) + 1;
  }
  return shard;
}

/// Random axes, a shape and a sharding of it.
struct RandomLayout {
  explicit RandomLayout(unsigned seed) : engine(seed) {
    auto upTo = [&](unsigned limit) { return engine() % (limit + 1); };
    std::vector<MeshAxis> axes;
    for (const char *name : {"a", "b", "c", "d"})
      axes.push_back({name, 1 + static_cast<int64_t>(upTo(3)), false});
    axes.resize(upTo(4));
    mesh = Mesh(axes);
    for (unsigned d = 0; d < 1 + upTo(2); ++d)
      shape.push_back(upTo(9));
    dims.resize(shape.size());
    for (const MeshAxis &axis : axes)
      if (unsigned d = upTo(static_cast<unsigned>(shape.size())); d < shape.size())
        dims[d].insert(dims[d].begin() + upTo(static_cast<unsigned>(dims[d].size())), axis.name);
  }

  std::mt19937 engine;
  Mesh mesh;
  Shape shape;
  DimAxes dims;
};

} // namespace

TEST(PaddedShard, PaddingIsZero) {
  Mesh mesh({{"dp", 2, false}, {"tp", 2, false}});
  using Values = std::vector<int32_t>;
  auto shards = [&](const DimAxes &dims, const Shape &shape) {
    std::vector<Values> result;
    for (int64_t device = 0; device < 4; ++device)
      result.push_back(shardOf(mesh, dims, shape, device));
    return result;
  };
  EXPECT_EQ(shards({{"dp", "tp"}}, {5}), (std::vector<Values>{{1, 2}, {3, 0}, {4, 5}, {0, 0}}));
  EXPECT_EQ(shards({{"dp"}, {"tp"}}, {3, 3}),
            (std::vector<Values>{{1, 2, 4, 5}, {3, 0, 6, 0}, {7, 8, 0, 0}, {9, 0, 0, 0}}));
  EXPECT_EQ(shards({{"tp"}, {}}, {1, 2}), (std::vector<Values>{{1, 2}, {0, 0}, {1, 2}, {0, 0}}));
}

TEST(PaddedShard, RunsAreAsLongAsTheyCanBe) {
  Mesh mesh({{"a", 2, false}});
  auto runs = [&](const DimAxes &dims, int64_t device) {
    std::vector<std::vector<int64_t>> result;
    ShardRegion::of(mesh, shardingOf(dims), {3, 5}, device)
        .forEachRun([&](int64_t global, int64_t local, int64_t count) {
          result.push_back({global, local, count});
        });
    return result;
  };
  using Runs = std::vector<std::vector<int64_t>>;
  EXPECT_EQ(runs({{"a"}, {}}, 1), (Runs{{10, 0, 5}}));
  EXPECT_EQ(runs({{}, {"a"}}, 1), (Runs{{3, 0, 2}, {8, 3, 2}, {13, 6, 2}}));
}

TEST(PaddedShard, AllShardsTogetherAreTheWhole) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomLayout layout(seed);
    const Mesh &mesh = layout.mesh;
    Axes all;
    for (const Axes &axes : layout.dims)
      all.insert(all.end(), axes.begin(), axes.end());
    std::vector<int32_t> whole(static_cast<size_t>(product(layout.shape)), kGarbage);
    for (int64_t device = 0; device < mesh.numDevices(); ++device) {
      std::vector<int32_t> shard = shardOf(mesh, layout.dims, layout.shape, device);
      ASSERT_EQ(shard, expectedShard(mesh, layout.dims, layout.shape, device))
          << "device " << device;
      // Padding may hold anything later on, and none of it may get out.
      std::replace(shard.begin(), shard.end(), 0, 2 * kGarbage);
      if (mesh.firstReplica(device, all) == device)
        copyFromShard(ShardRegion::of(mesh, shardingOf(layout.dims), layout.shape, device), 4,
                      bytesOf(shard), bytesOf(whole));
    }
    ASSERT_EQ(whole, numbered(layout.shape));
  }
}

TEST(PaddedShard, InitialValuesDependOnTheElementAlone) {
  for (plan::Init::Kind kind : {plan::Init::NORMAL, plan::Init::UNIFORM, plan::Init::ONES})
    for (unsigned seed = 0; seed < 100; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      RandomLayout layout(seed);
      plan::State state;
      state.set_name("w");
      state.set_dtype(plan::F32);
      state.mutable_init()->set_kind(kind);
      state.mutable_init()->set_scale(0.5);
      auto valuesOn = [&](const ShardRegion &region) {
        std::vector<int32_t> bits(static_cast<size_t>(product(region.local)), kGarbage);
        writeInitialValues(state, region, 3, bytesOf(bits));
        return bits;
      };
      std::vector<int32_t> whole = valuesOn(
          ShardRegion::of(Mesh(), shardingOf(DimAxes(layout.shape.size())), layout.shape, 0));
      for (int64_t device = 0; device < layout.mesh.numDevices(); ++device) {
        ShardRegion region =
            ShardRegion::of(layout.mesh, shardingOf(layout.dims), layout.shape, device);
        std::vector<int32_t> expected(static_cast<size_t>(product(region.local)), kGarbage);
        copyToShard(region, 4, bytesOf(whole), bytesOf(expected));
        ASSERT_EQ(valuesOn(region), expected);
      }
    }
}

TEST(PaddedShard, ASessionTakesAndGivesWholeTensors) {
  PlanBuilder builder;
  builder.axis("dp", 2);
  builder.axis("tp", 3);
  DimAxes split = {{"tp", "dp"}, {}};
  builder.state("w", DType::F32, {7, 5}, split).mutable_init()->set_kind(plan::Init::ONES);
  uint32_t x = builder.input("x", DType::F32, {7, 5}, split).buffer();
  uint32_t y = builder.buffer(DType::F32, builder.localShape({7, 5}, split));
  uint32_t sum = builder.buffer(DType::F32, {});
  builder.task("t");
  builder.kernel("add", {x, x}, {y});
  plan::KernelCall &reduce = builder.kernel("reduce", {x}, {sum});
  (*reduce.mutable_attributes())["kind"] = stringAttribute("sum");
  (*reduce.mutable_attributes())["dims"] = intsAttribute({0, 1});
  builder.collective(plan::Collective::ALL_REDUCE, {"dp", "tp"}, sum, sum);
  builder.schedule(0);
  builder.output("y", DType::F32, {7, 5}, split, y);
  builder.output("sum", DType::F32, {}, {}, sum);
  auto session = Session::create(builder.build(), createFakeBackend());
  ASSERT_OK(session);

  HostTensor value(TensorType{DType::F32, {7, 5}}), twice(value.type), ones(value.type);
  std::iota(value.as<float>(), value.as<float>() + 35, 1.0f);
  std::fill_n(ones.as<float>(), 35, 1.0f);
  for (int i = 0; i < 35; ++i)
    twice.as<float>()[i] = 2 * value.as<float>()[i];
  ASSERT_OK((*session)->initializeStates(1));
  EXPECT_EQ((*session)->getState("w")->bytes, ones.bytes);
  ASSERT_OK((*session)->setState("w", value));
  EXPECT_EQ((*session)->getState("w")->bytes, value.bytes);
  ASSERT_OK((*session)->setInput("x", value));
  ASSERT_OK(trainStep(**session, 0));
  EXPECT_EQ((*session)->getOutput("y")->bytes, twice.bytes);
  // The padding of an input is zero, so that a sum does not see it.
  EXPECT_EQ(*(*session)->getOutput("sum")->as<float>(), 35 * 36 / 2);
}

} // namespace paddedShardTest
