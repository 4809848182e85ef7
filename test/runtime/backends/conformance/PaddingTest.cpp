//===- PaddingTest.cpp - Kernels for shards with padding ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/conformance/KernelTest.h"

#include <limits>

namespace dtc::runtime::test::paddingTest {
namespace {

using Axes = std::vector<std::string>;
constexpr DType kAllTypes[] = {DType::F32, DType::F64, DType::I32, DType::Bool};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// dp=2 and tp=2 at these coordinates.
std::vector<AxisCoordinate> mesh(int64_t dp = 0, int64_t tp = 0) {
  return {{"dp", 2, dp, false}, {"tp", 2, tp, false}};
}

/// The elements of a dimension that lie in each place of a device's block, -1 for padding: every
/// element is followed from axis to axis.
std::vector<int64_t> blockOf(const std::vector<AxisCoordinate> &position, const Axes &axes,
                             int64_t size) {
  std::vector<int64_t> block;
  for (int64_t element = 0; element <= size; ++element) {
    int64_t place = element, room = size;
    bool held = element < size;
    for (const std::string &name : axes)
      for (const AxisCoordinate &axis : position)
        if (axis.name == name) {
          room = (room + axis.size - 1) / axis.size;
          held = held && place / room == axis.coordinate;
          place -= axis.coordinate * room;
        }
    block.resize(static_cast<size_t>(room), -1);
    if (held)
      block[static_cast<size_t>(place)] = element;
  }
  return block;
}

/// Picks the elements `block` along a dimension, `padding` where it has -1.
Values take(const Values &values, const Shape &shape, size_t dim, const std::vector<int64_t> &block,
            double padding) {
  Shape outer(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(dim));
  int64_t rows = count(outer), inner = 1;
  for (size_t d = dim + 1; d < shape.size(); ++d)
    inner *= shape[d];
  Values result;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t element : block)
      for (int64_t i = 0; i < inner; ++i)
        result.push_back(
            element < 0 ? padding
                        : values[static_cast<size_t>((row * shape[dim] + element) * inner + i)]);
  return result;
}

/// A random mesh with a device on it, the axes that split one dimension of a random tensor, and
/// that tensor.
struct RandomCase {
  explicit RandomCase(unsigned seed) : random(seed), engine(seed) {
    for (const char *name : {"a", "b", "c", "micro"}) {
      AxisCoordinate axis{name, 1 + draw(3), 0, std::string(name) == "micro"};
      axis.coordinate = draw(axis.size - 1);
      position.push_back(axis);
      axes.insert(axes.begin() + draw(static_cast<int64_t>(axes.size())), name);
    }
    axes.resize(static_cast<size_t>(draw(4)));
    for (int64_t d = 0, rank = 1 + draw(2); d < rank; ++d)
      shape.push_back(draw(11));
    dim = static_cast<size_t>(draw(static_cast<int64_t>(shape.size()) - 1));
    dtype = kAllTypes[draw(3)];
    block = blockOf(position, axes, shape[dim]);
    local = shape;
    local[dim] = static_cast<int64_t>(block.size());
  }

  int64_t draw(int64_t last) {
    return static_cast<int64_t>(engine() % static_cast<uint64_t>(last + 1));
  }
  HostTensor tensor(const Shape &of) {
    return random.integers(dtype, of, 0, dtype == DType::Bool ? 1 : 100);
  }
  KernelCall slice(const HostTensor &from, const Shape &to, const Axes &over) const {
    return {"shard_slice",
            {from},
            {TensorType{dtype, to}},
            {{"dim", static_cast<int64_t>(dim)}, {"axes", over}},
            position};
  }

  Random random;
  std::mt19937_64 engine;
  std::vector<AxisCoordinate> position;
  Axes axes;
  Shape shape, local;
  size_t dim = 0;
  DType dtype = DType::F32;
  std::vector<int64_t> block;
};

KernelCall mask(const HostTensor &x, int64_t dim, const Axes &axes, int64_t size,
                const std::string &value, const std::vector<AxisCoordinate> &position) {
  return {"mask_padding", {x},
          {x.type},       {{"dim", dim}, {"axes", axes}, {"size", size}, {"value", value}},
          position,       {{0, 0}}};
}

TEST(Padding, ShardSlice) {
  Values x{1, 2, 3, 4, 5};
  std::vector<Values> expected{{1, 2}, {3, 0}, {4, 5}, {0, 0}};
  for (DType dtype : {DType::F32, DType::F64, DType::I32})
    for (int64_t device = 0; device < 4; ++device)
      expectKernel({"shard_slice",
                    {makeTensor(dtype, {5}, x)},
                    {TensorType{dtype, {2}}},
                    {{"dim", int64_t{0}}, {"axes", Axes{"dp", "tp"}}},
                    mesh(device / 2, device % 2)},
                   {expected[static_cast<size_t>(device)]}, 0);
}

TEST(Padding, ShardSliceOfRandomBlocks) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    RandomCase c(seed);
    HostTensor x = c.tensor(c.shape);
    Values expected = take(valuesOf(x), c.shape, c.dim, c.block, 0);
    expectKernel(c.slice(x, c.local, c.axes), {expected}, 0);
    // Axis by axis comes to the same.
    HostTensor part = x;
    for (const std::string &name : c.axes)
      for (const AxisCoordinate &axis : c.position)
        if (axis.name == name) {
          Shape to = part.type.shape;
          to[c.dim] = (to[c.dim] + axis.size - 1) / axis.size;
          part = c.slice(part, to, {name}).run(1)[0];
        }
    ASSERT_EQ(part.type.shape, c.local);
    ASSERT_EQ(valuesOf(part), expected);
  }
}

TEST(Padding, ShardOffset) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomCase c(seed);
    int64_t size = c.shape[c.dim];
    HostTensor offset = KernelCall{"shard_offset",
                                   {},
                                   {TensorType{DType::I32, {}}},
                                   {{"axes", c.axes}, {"size", size}},
                                   c.position}
                            .run(1)[0];
    // The sum of the coordinates times the sizes of the parts, also where the block is empty.
    int64_t expected = 0, room = size;
    for (const std::string &name : c.axes)
      for (const AxisCoordinate &axis : c.position)
        if (axis.name == name) {
          room = (room + axis.size - 1) / axis.size;
          expected += axis.coordinate * room;
        }
    EXPECT_EQ(*offset.as<int32_t>(), expected);
    if (!c.block.empty() && c.block[0] >= 0) {
      EXPECT_EQ(*offset.as<int32_t>(), c.block[0]);
    }
  }
}

TEST(Padding, MaskPadding) {
  constexpr double least = std::numeric_limits<int32_t>::min();
  constexpr double greatest = std::numeric_limits<int32_t>::max();
  auto check = [](DType dtype, const std::string &value, double padding) {
    // 7 elements in 4 blocks: the last one has 1 element and 1 of padding.
    HostTensor x = makeTensor(dtype, {2, 2, 3}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
    double p = padding;
    expectKernel(mask(x, 1, {"tp", "dp"}, 7, value, mesh(1, 1)),
                 {{1, 1, 1, p, p, p, 1, 1, 1, p, p, p}}, 0);
    expectKernel(mask(x, 1, {"tp", "dp"}, 7, value, mesh(1, 0)), {Values(12, 1)}, 0);
    // Nothing to mask, and nothing but padding.
    expectKernel(mask(x, 1, {"tp"}, 4, value, mesh(1, 1)), {Values(12, 1)}, 0);
    expectKernel(mask(x, 1, {"tp", "dp"}, 5, value, mesh(1, 1)), {Values(12, p)}, 0);
  };
  for (DType dtype : kAllTypes)
    check(dtype, "zero", 0);
  for (DType dtype : kFloatTypes) {
    check(dtype, "lowest", -kInfinity);
    check(dtype, "highest", kInfinity);
  }
  check(DType::I32, "lowest", least);
  check(DType::I32, "highest", greatest);
}

TEST(Padding, MaskPaddingReplacesNaN) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  for (DType dtype : kFloatTypes)
    expectKernel(mask(makeTensor(dtype, {2}, {5, nan}), 0, {"dp"}, 3, "zero", mesh(1)), {{5, 0}},
                 0);
}

TEST(Padding, MaskPaddingOfRandomBlocks) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    RandomCase c(seed);
    HostTensor x = c.tensor(c.local);
    // The place in the block itself, where an element exists.
    std::vector<int64_t> places = c.block;
    for (size_t i = 0; i < places.size(); ++i)
      places[i] = places[i] < 0 ? -1 : static_cast<int64_t>(i);
    expectKernel(mask(x, static_cast<int64_t>(c.dim), c.axes, c.shape[c.dim], "zero", c.position),
                 {take(valuesOf(x), c.local, c.dim, places, 0)}, 0);
  }
}

TEST(Padding, ManyElementsOnSeveralThreads) {
  Random random(60);
  for (Shape shape : {Shape{201, 501}, Shape{100001}, Shape{3, 7, 5001}, Shape{30001, 5}})
    for (size_t dim = 0; dim < shape.size(); ++dim)
      for (int64_t device = 0; device < 4; ++device) {
        std::vector<AxisCoordinate> position = mesh(device / 2, device % 2);
        Axes axes{"dp", "tp"};
        std::vector<int64_t> block = blockOf(position, axes, shape[dim]);
        Shape local = shape;
        local[dim] = static_cast<int64_t>(block.size());
        HostTensor x = random.integers(DType::I32, shape, 1, 100);
        auto d = static_cast<int64_t>(dim);
        KernelCall slice{"shard_slice",
                         {x},
                         {TensorType{DType::I32, local}},
                         {{"dim", d}, {"axes", axes}},
                         position};
        expectKernel(slice, {take(valuesOf(x), shape, dim, block, 0)}, 0);
        HostTensor part = random.integers(DType::I32, local, 1, 100);
        for (size_t i = 0; i < block.size(); ++i)
          block[i] = block[i] < 0 ? -1 : static_cast<int64_t>(i);
        expectKernel(mask(part, d, axes, shape[dim], "zero", position),
                     {take(valuesOf(part), local, dim, block, 0)}, 0);
      }
}

TEST(Padding, Refuses) {
  TensorType whole{DType::F32, {5, 4}}, part{DType::F32, {3, 4}};
  auto refuseMask = [&](const TensorType &type, int64_t dim, int64_t size, const char *value,
                        const std::string &message) {
    expectRefused({"mask_padding",
                   {type},
                   {type},
                   {{"dim", dim}, {"axes", Axes{"dp"}}, {"size", size}, {"value", value}},
                   mesh()},
                  message);
  };
  refuseMask(part, 2, 5, "zero", "attribute 'dim' is 2");
  refuseMask(part, 0, -1, "zero", "attribute 'size' is -1, expected 0 or more");
  refuseMask(part, 0, std::numeric_limits<int64_t>::max(), "zero", "attribute 'size'");
  refuseMask(part, 0, 7, "zero",
             "dimension 0 of input 0 (f32[3,4]) has 3 elements, expected 4: 7 in 2 blocks");
  refuseMask(part, 0, 3, "zero", "has 3 elements, expected 2: 3 in 2 blocks");
  refuseMask(part, 0, 5, "nan",
             "attribute 'value' is \"nan\", expected one of \"zero\", \"lowest\", \"highest\"");
  for (const char *value : {"lowest", "highest"})
    refuseMask({DType::Bool, {3}}, 0, 5, value, "expected \"zero\" for elements of bool");
  AttributeMap attributes = {
      {"dim", int64_t{0}}, {"axes", Axes{"dp"}}, {"size", int64_t{5}}, {"value", "zero"}};
  expectRefused({"mask_padding", {part}, {whole}, attributes, mesh()},
                "output 0 is f32[5,4], expected f32[3,4]");
  expectRefused({"mask_padding", {part}, {part}, attributes, {}}, "attribute 'axes'");
  attributes.erase("size");
  expectRefused({"mask_padding", {part}, {part}, attributes, mesh()},
                "attribute 'size' is missing");
  expectRefused({"shard_slice",
                 {whole},
                 {TensorType{DType::F32, {2, 4}}},
                 {{"dim", int64_t{0}}, {"axes", Axes{"dp"}}},
                 mesh()},
                "output 0 is f32[2,4], expected f32[3,4]");
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  expectRefused({"shard_slice",
                 {TensorType{DType::Bool, {most, 0}}},
                 {TensorType{DType::Bool, {most / 2 + 1, 0}}},
                 {{"dim", int64_t{0}}, {"axes", Axes{"dp"}}},
                 mesh()},
                "more elements with their padding than 64 bits count");
}

} // namespace
} // namespace dtc::runtime::test::paddingTest
