//===- ShardingTest.cpp - Tests of kernels that depend on coordinates -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/conformance/KernelTest.h"

#include <limits>

namespace dtc::runtime::test::shardingTest {
namespace {

using Axes = std::vector<std::string>;

std::vector<AxisCoordinate> mesh(int64_t dp, int64_t tp, int64_t micro) {
  return {{"dp", 2, dp, false}, {"tp", 3, tp, false}, {"micro", 2, micro, true}};
}

struct Case {
  Axes axes;
  int64_t blocks;
  std::function<int64_t(int64_t dp, int64_t tp, int64_t micro)> block;
};

std::vector<Case> cases() {
  return {{{}, 1, [](int64_t, int64_t, int64_t) { return 0; }},
          {{"tp"}, 3, [](int64_t, int64_t tp, int64_t) { return tp; }},
          {{"dp", "tp"}, 6, [](int64_t dp, int64_t tp, int64_t) { return dp * 3 + tp; }},
          {{"tp", "dp"}, 6, [](int64_t dp, int64_t tp, int64_t) { return tp * 2 + dp; }},
          {{"dp", "micro"}, 4, [](int64_t dp, int64_t, int64_t micro) { return dp * 2 + micro; }}};
}

/// Calls check(case, dp, tp, micro) for all coordinates.
void forAllPositions(
    const std::function<void(const Case &, int64_t dp, int64_t tp, int64_t micro)> &check) {
  for (const Case &c : cases())
    for (int64_t dp = 0; dp < 2; ++dp)
      for (int64_t tp = 0; tp < 3; ++tp)
        for (int64_t micro = 0; micro < 2; ++micro)
          check(c, dp, tp, micro);
}

TEST(Sharding, ShardSlice) {
  Random random(50);
  forAllPositions([&](const Case &c, int64_t dp, int64_t tp, int64_t micro) {
    for (DType dtype : {DType::F32, DType::F64, DType::I32, DType::Bool})
      for (int64_t dim = 0; dim < 3; ++dim) {
        size_t d = static_cast<size_t>(dim);
        Shape whole{5, 4, 3}, local = whole;
        whole[d] = 2 * c.blocks;
        local[d] = 2;
        HostTensor x = random.integers(dtype, whole, 0, dtype == DType::Bool ? 1 : 100);
        Values values = valuesOf(x), expected;
        for (int64_t i = 0; i < local[0]; ++i)
          for (int64_t j = 0; j < local[1]; ++j)
            for (int64_t k = 0; k < local[2]; ++k) {
              int64_t index[3] = {i, j, k};
              index[d] += 2 * c.block(dp, tp, micro);
              expected.push_back(values[static_cast<size_t>(
                  (index[0] * whole[1] + index[1]) * whole[2] + index[2])]);
            }
        expectKernel({"shard_slice",
                      {x},
                      {TensorType{dtype, local}},
                      {{"dim", dim}, {"axes", c.axes}},
                      mesh(dp, tp, micro)},
                     {expected}, 0);
      }
  });
}

TEST(Sharding, ShardOffset) {
  forAllPositions([&](const Case &c, int64_t dp, int64_t tp, int64_t micro) {
    expectKernel({"shard_offset",
                  {},
                  {TensorType{DType::I32, {}}},
                  {{"axes", c.axes}, {"size", 7 * c.blocks}},
                  mesh(dp, tp, micro)},
                 {{7.0 * static_cast<double>(c.block(dp, tp, micro))}}, 0);
  });
}

TEST(Sharding, Accumulate) {
  for (DType dtype : kFloatTypes)
    for (int64_t micro : {0, 1}) {
      Random random(51);
      HostTensor x = random.floats(dtype, {90, 501}), before = random.floats(dtype, {90, 501});
      Values expected = valuesOf(x), old = valuesOf(before);
      for (size_t i = 0; micro > 0 && i < expected.size(); ++i)
        expected[i] += old[i];
      expectKernel(
          {"accumulate", {x}, {x.type}, {{"axis", "micro"}}, mesh(1, 2, micro), {}, {before}},
          {expected}, 1e-15);
    }
}

TEST(Sharding, Refuses) {
  TensorType whole{DType::F32, {6, 4}}, half{DType::F32, {3, 4}}, index{DType::I32, {}};
  auto refuseSlice = [&](const AttributeMap &attributes, const std::string &message) {
    expectRefused({"shard_slice", {whole}, {half}, attributes, mesh(0, 0, 0)}, message);
  };
  refuseSlice({{"dim", int64_t{2}}, {"axes", Axes{"dp"}}}, "attribute 'dim' is 2");
  refuseSlice({{"dim", int64_t{-1}}, {"axes", Axes{"dp"}}}, "attribute 'dim' is -1");
  refuseSlice({{"dim", int64_t{0}}, {"axes", Axes{"pp"}}},
              "attribute 'axes' is \"pp\", expected distinct axes of the mesh");
  refuseSlice({{"dim", int64_t{0}}, {"axes", Axes{"dp", "dp"}}}, "expected distinct axes");
  refuseSlice({{"dim", int64_t{0}}, {"axes", Axes{"tp"}}},
              "output 0 is f32[3,4], expected f32[2,4]");
  refuseSlice({{"dim", int64_t{1}}, {"axes", Axes{"tp"}}},
              "output 0 is f32[3,4], expected f32[6,2]");
  refuseSlice({{"dim", int64_t{0}}}, "attribute 'axes' is missing");
  std::vector<AxisCoordinate> corrupt = {
      {"dp", 0, 0, false}, {"tp", int64_t{1} << 40, 0, false}, {"pp", int64_t{1} << 40, 0, false}};
  for (const Axes &axes : {Axes{"dp"}, Axes{"tp", "pp"}})
    expectRefused({"shard_offset", {}, {index}, {{"axes", axes}, {"size", int64_t{1}}}, corrupt},
                  "attribute 'axes'");
  // The second half of 2^32 elements begins at 2^31, which is the first that does not fit.
  for (int64_t size : {int64_t{-1}, (int64_t{1} << 32) - 1, std::numeric_limits<int64_t>::max()})
    expectRefused(
        {"shard_offset", {}, {index}, {{"axes", Axes{"dp"}}, {"size", size}}, mesh(0, 0, 0)},
        "attribute 'size'");
  expectKernel({"shard_offset",
                {},
                {index},
                {{"axes", Axes{"dp"}}, {"size", (int64_t{1} << 32) - 2}},
                mesh(1, 0, 0)},
               {{2147483647.0}}, 0);
  expectRefused(
      {"shard_offset", {}, {whole}, {{"axes", Axes{"dp"}}, {"size", int64_t{1}}}, mesh(0, 0, 0)},
      "output 0 is f32[6,4], expected i32[]");
  for (const char *axis : {"dp", "time"})
    expectRefused({"accumulate", {whole}, {whole}, {{"axis", axis}}, mesh(0, 0, 0)},
                  "expected the temporal axis of the mesh");
}

} // namespace
} // namespace dtc::runtime::test::shardingTest
