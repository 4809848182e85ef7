//===- DataMovementTest.cpp - Kernels that move elements ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/conformance/KernelTest.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace dtc::runtime::test::dataMovementTest {
namespace {

constexpr DType kAllTypes[] = {DType::F32, DType::F64, DType::I32, DType::Bool};

HostTensor randomTensor(Random &random, DType dtype, const Shape &shape) {
  if (dtype == DType::Bool)
    return random.integers(dtype, shape, 0, 1);
  return dtype == DType::I32 ? random.integers(dtype, shape, -1000, 1000)
                             : random.floats(dtype, shape);
}

/// The index of each dimension of element `linear`.
Shape indexOf(int64_t linear, const Shape &shape) {
  Shape index(shape.size());
  for (size_t d = shape.size(); d-- > 0; linear /= shape[d])
    index[d] = linear % shape[d];
  return index;
}
size_t linearOf(const Shape &index, const Shape &shape) {
  int64_t linear = 0;
  for (size_t d = 0; d < shape.size(); ++d)
    linear = linear * shape[d] + index[d];
  return static_cast<size_t>(linear);
}

/// A tensor of shape `to` whose element at `index` is that of `from` at map(index).
Values gather(const HostTensor &from, const Shape &to,
              const std::function<Shape(const Shape &)> &map) {
  Values values = valuesOf(from), result;
  for (int64_t i = 0; i < count(to); ++i)
    result.push_back(values[linearOf(map(indexOf(i, to)), from.type.shape)]);
  return result;
}

RawBytes rawBytes(const HostTensor &tensor) {
  return {std::string(reinterpret_cast<const char *>(tensor.bytes.data()), tensor.bytes.size())};
}

TEST(DataMovement, Fill) {
  for (DType dtype : kAllTypes)
    for (const Shape &shape : {Shape{}, Shape{3, 5}, Shape{70001}, Shape{0}}) {
      double value = dtype == DType::Bool ? 1 : dtype == DType::I32 ? -7 : 0.25;
      expectKernel({"fill", {}, {TensorType{dtype, shape}}, {{"value", value}}},
                   {Values(static_cast<size_t>(count(shape)), value)});
    }
  double infinity = std::numeric_limits<double>::infinity();
  expectKernel({"fill", {}, {TensorType{DType::F32, {2}}}, {{"value", -infinity}}},
               {{-infinity, -infinity}});
}

TEST(DataMovement, Constant) {
  for (DType dtype : kAllTypes) {
    Random random(30);
    HostTensor data = randomTensor(random, dtype, {5, 7});
    expectKernel({"constant", {}, {data.type}, {{"data", rawBytes(data)}}}, {valuesOf(data)}, 0);
  }
}

TEST(DataMovement, Copy) {
  for (DType dtype : kAllTypes)
    for (const Shape &shape : {Shape{2, 6}, Shape{100, 2002}}) {
      Random random(31);
      HostTensor x = randomTensor(random, dtype, shape);
      expectKernel({"copy", {x}, {TensorType{dtype, {2, shape[0] / 2, shape[1]}}}}, {valuesOf(x)},
                   0);
    }
}

TEST(DataMovement, Broadcast) {
  struct Case {
    Shape result, dims;
  };
  for (const Case &c : {Case{{2, 3, 5}, {1}}, Case{{2, 3, 5}, {0, 2}}, Case{{2, 3, 5}, {}},
                        Case{{2, 3, 5}, {0, 1, 2}}, Case{{301, 203}, {0}}, Case{{301, 203}, {1}},
                        Case{{3, 0}, {0}}, Case{{}, {}}})
    for (DType dtype : kAllTypes) {
      Random random(32);
      Shape shape;
      for (int64_t dim : c.dims)
        shape.push_back(c.result[static_cast<size_t>(dim)]);
      HostTensor x = randomTensor(random, dtype, shape);
      Values expected = gather(x, c.result, [&](const Shape &index) {
        Shape from;
        for (int64_t dim : c.dims)
          from.push_back(index[static_cast<size_t>(dim)]);
        return from;
      });
      expectKernel({"broadcast", {x}, {TensorType{dtype, c.result}}, {{"dims", c.dims}}},
                   {expected}, 0);
    }
}

TEST(DataMovement, Transpose) {
  for (const Shape &shape : {Shape{}, Shape{6}, Shape{37, 53}, Shape{3, 17, 20}, Shape{2, 3, 4, 5},
                             Shape{1, 5, 1, 4}, Shape{300, 257}, Shape{0, 3}}) {
    Shape permutation(shape.size());
    std::iota(permutation.begin(), permutation.end(), 0);
    do {
      for (DType dtype : {DType::F32, DType::F64, DType::Bool}) {
        Random random(33);
        HostTensor x = randomTensor(random, dtype, shape);
        Shape result;
        for (int64_t dim : permutation)
          result.push_back(shape[static_cast<size_t>(dim)]);
        Values expected = gather(x, result, [&](const Shape &index) {
          Shape from(index.size());
          for (size_t i = 0; i < index.size(); ++i)
            from[static_cast<size_t>(permutation[i])] = index[i];
          return from;
        });
        expectKernel(
            {"transpose", {x}, {TensorType{dtype, result}}, {{"permutation", permutation}}},
            {expected}, 0);
      }
    } while (std::next_permutation(permutation.begin(), permutation.end()));
  }
}

TEST(DataMovement, SliceAndPad) {
  struct Case {
    Shape whole, offsets, sizes;
  };
  for (const Case &c :
       {Case{{5, 6, 7}, {1, 2, 3}, {3, 4, 2}}, Case{{5, 6, 7}, {0, 0, 0}, {5, 6, 7}},
        Case{{5, 6, 7}, {4, 0, 0}, {1, 6, 7}}, Case{{5, 6}, {5, 6}, {0, 0}}, Case{{}, {}, {}},
        Case{{400, 301}, {17, 1}, {380, 300}}})
    for (DType dtype : kAllTypes) {
      Random random(34);
      HostTensor whole = randomTensor(random, dtype, c.whole);
      auto shifted = [&](Shape index) {
        for (size_t i = 0; i < index.size(); ++i)
          index[i] += c.offsets[i];
        return index;
      };
      expectKernel({"slice", {whole}, {TensorType{dtype, c.sizes}}, {{"offsets", c.offsets}}},
                   {gather(whole, c.sizes, shifted)}, 0);

      HostTensor block = randomTensor(random, dtype, c.sizes);
      Values padded(static_cast<size_t>(count(c.whole)), 1.0), elements = valuesOf(block);
      for (size_t i = 0; i < elements.size(); ++i)
        padded[linearOf(shifted(indexOf(static_cast<int64_t>(i), c.sizes)), c.whole)] = elements[i];
      expectKernel(
          {"pad", {block}, {TensorType{dtype, c.whole}}, {{"low", c.offsets}, {"value", 1.0}}},
          {padded}, 0);
    }
}

TEST(DataMovement, Concat) {
  for (DType dtype : kAllTypes)
    for (int64_t dim = 0; dim < 3; ++dim)
      for (const Shape &sizes : {Shape{2, 1, 4}, Shape{3}, Shape{0, 5}, Shape{40, 60}}) {
        Random random(35);
        size_t d = static_cast<size_t>(dim);
        Shape shape{23, 21, 27};
        KernelCall call{"concat", {}, {}, {{"dim", dim}}};
        shape[d] = 0;
        std::vector<Values> parts;
        for (int64_t size : sizes) {
          Shape part = shape;
          part[d] = size;
          call.inputs.push_back(randomTensor(random, dtype, part));
          parts.push_back(valuesOf(call.inputs.back()));
        }
        shape[d] = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
        call.outputs = {TensorType{dtype, shape}};
        Values expected;
        for (int64_t i = 0; i < count(shape); ++i) {
          Shape index = indexOf(i, shape);
          size_t part = 0;
          while (index[d] >= sizes[part])
            index[d] -= sizes[part++];
          expected.push_back(parts[part][linearOf(index, call.inputs[part].type.shape)]);
        }
        expectKernel(call, {expected}, 0);
      }
}

/// Part i of the result is chunk i and then chunk 2 parts - 1 - i of the operand; `inverse` undoes
/// that.
TEST(DataMovement, Zigzag) {
  for (const Shape &shape : {Shape{12}, Shape{12, 5}, Shape{2, 12, 3}, Shape{3, 2, 12},
                             Shape{12, 0}, Shape{2, 1200, 33}, Shape{24, 12, 36}})
    for (size_t dim = 0; dim < shape.size(); ++dim)
      for (int64_t parts : {1, 2, 3, 6})
        for (DType dtype : {DType::F32, DType::F64, DType::I32, DType::Bool, DType::BF16}) {
          if (shape[dim] == 0 || shape[dim] % (2 * parts) != 0)
            continue;
          int64_t chunk = shape[dim] / (2 * parts);
          Random random(37);
          HostTensor x = randomTensor(random, dtype, shape);
          Values ordered = gather(x, shape, [&](const Shape &index) {
            Shape from = index;
            int64_t part = index[dim] / (2 * chunk), rest = index[dim] % (2 * chunk);
            int64_t first = rest < chunk ? part : 2 * parts - 1 - part;
            from[dim] = first * chunk + rest % chunk;
            return from;
          });
          KernelCall call{"zigzag",
                          {x},
                          {x.type},
                          {{"dim", int64_t(dim)}, {"parts", parts}, {"inverse", false}}};
          expectKernel(call, {ordered}, 0);
          call.inputs = call.run(2);
          call.attributes["inverse"] = true;
          expectKernel(call, {valuesOf(x)}, 0);
        }
}

TEST(DataMovement, ZigzagOfEightElements) {
  HostTensor x = makeTensor(DType::I32, {8}, {0, 1, 2, 3, 4, 5, 6, 7});
  auto zigzag = [&](int64_t parts, bool inverse) {
    return KernelCall{
        "zigzag", {x}, {x.type}, {{"dim", int64_t{0}}, {"parts", parts}, {"inverse", inverse}}};
  };
  expectKernel(zigzag(1, false), {{0, 1, 2, 3, 4, 5, 6, 7}}, 0);
  expectKernel(zigzag(2, false), {{0, 1, 6, 7, 2, 3, 4, 5}}, 0);
  expectKernel(zigzag(4, false), {{0, 7, 1, 6, 2, 5, 3, 4}}, 0);
  expectKernel(zigzag(2, true), {{0, 1, 4, 5, 6, 7, 2, 3}}, 0);
  expectKernel(zigzag(4, true), {{0, 2, 4, 6, 7, 5, 3, 1}}, 0);
}

TEST(DataMovement, RefusesZigzag) {
  TensorType x{DType::F32, {2, 12}}, half{DType::F32, {2, 6}}, i{DType::I32, {2, 12}};
  int64_t huge = std::numeric_limits<int64_t>::max();
  auto attributes = [](int64_t dim, int64_t parts) -> AttributeMap {
    return {{"dim", dim}, {"parts", parts}, {"inverse", false}};
  };
  for (int64_t parts : {int64_t{0}, int64_t{-1}, int64_t{4}, int64_t{7}, int64_t{12}, huge,
                        std::numeric_limits<int64_t>::min()})
    expectRefused({"zigzag", {x}, {x}, attributes(1, parts), {}},
                  "attribute 'parts' is " + std::to_string(parts) +
                      ", expected parts of two equal chunks of the 12 elements of dimension 1");
  for (int64_t dim : {int64_t{-1}, int64_t{2}, huge})
    expectRefused({"zigzag", {x}, {x}, attributes(dim, 2), {}}, "attribute 'dim'");
  expectRefused({"zigzag", {x}, {half}, attributes(1, 2), {}},
                "output 0 is f32[2,6], expected f32[2,12]");
  expectRefused({"zigzag", {x}, {i}, attributes(1, 2), {}},
                "output 0 is i32[2,12], expected f32[2,12]");
  expectRefused({"zigzag", {x, x}, {x}, attributes(1, 2), {}}, "has 2 inputs, expected 1");
  expectRefused({"zigzag", {x}, {x}, {{"dim", int64_t{1}}, {"parts", int64_t{2}}}, {}},
                "attribute 'inverse' is missing");
  expectRefused({"zigzag", {x}, {x}, {{"dim", int64_t{1}}, {"inverse", false}}, {}},
                "attribute 'parts' is missing");
  TensorType scalar{DType::F32, {}}, none{DType::F32, {2, 0}};
  expectRefused({"zigzag", {scalar}, {scalar}, attributes(0, 1), {}}, "attribute 'dim'");
  expectRefused({"zigzag", {none}, {none}, attributes(1, 1), {}}, "attribute 'parts' is 1");
}

TEST(DataMovement, RefusesValues) {
  TensorType f{DType::F32, {2, 3}}, i{DType::I32, {2, 3}}, b{DType::Bool, {2, 3}};
  expectRefused({"fill", {}, {f}, {{"value", int64_t{1}}}, {}},
                "attribute 'value' is an integer, expected a float");
  expectRefused({"fill", {}, {f}, {}, {}}, "attribute 'value' is missing");
  for (double value : {0.5, 1e10, std::numeric_limits<double>::quiet_NaN()})
    expectRefused({"fill", {}, {i}, {{"value", value}}, {}}, "expected a value of i32");
  expectRefused({"fill", {}, {b}, {{"value", 2.0}}, {}}, "expected 0 or 1, a value of bool");
  expectRefused({"constant", {}, {f}, {{"data", RawBytes{"1234"}}}, {}},
                "attribute 'data' is 4 bytes long, expected the 24 bytes of f32[2,3]");
  expectRefused({"constant", {}, {b}, {{"data", RawBytes{std::string(6, '\2')}}}, {}},
                "expected elements of bool");
  expectRefused({"constant", {}, {f}, {{"data", std::string(24, ' ')}}, {}},
                "attribute 'data' is a string, expected bytes");
}

TEST(DataMovement, RefusesShapes) {
  TensorType f{DType::F32, {2, 3}}, i{DType::I32, {2, 3}}, wide{DType::F32, {4, 3}};
  int64_t huge = std::numeric_limits<int64_t>::max();
  expectRefused({"copy", {f}, {wide}, {}, {}},
                "output 0 is f32[4,3], expected the elements of f32[2,3]");
  expectRefused({"copy", {f}, {i}, {}, {}}, "output 0 is i32[2,3]");
  expectRefused({"broadcast", {f}, {wide}, {{"dims", Shape{0, 1}}}, {}},
                "input 0 is f32[2,3], expected f32[4,3]");
  for (const Shape &dims : {Shape{1, 0}, Shape{0, 2}, Shape{-1, 1}, Shape{huge}})
    expectRefused({"broadcast", {f}, {wide}, {{"dims", dims}}, {}}, "attribute 'dims'");
  for (const Shape &permutation :
       {Shape{0, 0}, Shape{1}, Shape{0, 1, 2}, Shape{-1, 0}, Shape{1, 2}, Shape{huge, 0}})
    expectRefused({"transpose", {f}, {f}, {{"permutation", permutation}}, {}},
                  "expected a permutation of 2 dimensions");
  expectRefused({"transpose", {f}, {f}, {{"permutation", Shape{1, 0}}}, {}},
                "output 0 is f32[2,3], expected f32[3,2]");
  for (const Shape &offsets : {Shape{3, 0}, Shape{-1, 0}, Shape{0}, Shape{0, huge},
                               Shape{std::numeric_limits<int64_t>::min(), 0}}) {
    expectRefused({"slice", {wide}, {f}, {{"offsets", offsets}}, {}},
                  "expected offsets that keep f32[2,3] inside f32[4,3]");
    expectRefused({"pad", {f}, {wide}, {{"low", offsets}, {"value", 0.0}}, {}},
                  "expected offsets that keep f32[2,3] inside f32[4,3]");
  }
  expectRefused({"slice", {wide}, {i}, {{"offsets", Shape{0, 0}}}, {}}, "output 0 is i32[2,3]");
  expectRefused({"concat", {}, {f}, {{"dim", int64_t{0}}}, {}}, "has 0 inputs");
  expectRefused({"concat", {f, f}, {f}, {{"dim", int64_t{0}}}, {}},
                "input 1 is f32[2,3], expected f32[0,3]");
  expectRefused({"concat", {f}, {wide}, {{"dim", int64_t{0}}}, {}},
                "the inputs have 2 elements in dimension 0");
  for (int64_t dim : {int64_t{-1}, int64_t{2}, huge})
    expectRefused({"concat", {f, f}, {wide}, {{"dim", dim}}, {}}, "attribute 'dim'");
  TensorType scalar{DType::F32, {}};
  expectRefused({"concat", {scalar}, {f}, {{"dim", int64_t{0}}}, {}}, "input 0 is f32[]");
}

TEST(DataMovement, RefusesSizesThatOverflow) {
  int64_t half = int64_t{1} << 32;
  for (const Shape &shape : {Shape{half, half}, Shape{-1}, Shape{half, half, 0},
                             Shape{std::numeric_limits<int64_t>::max()}}) {
    TensorType type{DType::F32, shape};
    expectRefused({"copy", {type}, {type}, {}, {}}, "expected a tensor of a size");
    expectRefused({"fill", {}, {type}, {{"value", 0.0}}, {}}, "expected a tensor of a size");
  }
}

} // namespace
} // namespace dtc::runtime::test::dataMovementTest
