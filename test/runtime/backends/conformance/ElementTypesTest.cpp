//===- ElementTypesTest.cpp - Kernels on elements of 16 bits --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A kernel on bf16 or f16 is the kernel on f32, given the widened operands, its results rounded.
// The other tests say what the kernels on f32 are. The comparison is exact, for every kernel: sums
// of elements of 16 bits have the order of those of f32.
//
//===----------------------------------------------------------------------===//

#include "support/Float16.h"
#include "test/runtime/backends/conformance/KernelTest.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dtc::runtime::test::elementTypesTest {
namespace {

/// All values of a type with 16 bits.
HostTensor everyValue(DType dtype) {
  HostTensor tensor(TensorType{dtype, {256, 256}});
  for (int i = 0; i < 65536; ++i)
    tensor.as<uint16_t>()[i] = static_cast<uint16_t>(i);
  return tensor;
}

/// Every value of a type but in another order.
HostTensor otherValues(DType dtype) {
  HostTensor tensor = everyValue(dtype);
  for (int i = 0; i < 65536; ++i)
    tensor.as<uint16_t>()[i] = static_cast<uint16_t>(i * 40503 + 12345);
  return tensor;
}

TEST(ElementTypes, UnaryOfEveryValue) {
  for (DType dtype : kHalfTypes) {
    HostTensor x = everyValue(dtype);
    for (const char *kernel : {"neg", "abs", "exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid",
                               "softplus", "relu", "silu"})
      expectRounded({kernel, {x}, {x.type}, {}, {}, {{0, 0}}});
    for (const char *approximate : {"none", "tanh"})
      expectRounded({"gelu", {x}, {x.type}, {{"approximate", approximate}}, {}, {{0, 0}}});
  }
}

TEST(ElementTypes, Gradients) {
  for (DType dtype : kHalfTypes) {
    HostTensor x = everyValue(dtype), dy = otherValues(dtype);
    for (const char *approximate : {"none", "tanh"})
      expectRounded(
          {"gelu_grad", {x, dy}, {x.type}, {{"approximate", approximate}}, {}, {{0, 0}, {1, 0}}});
    expectRounded({"silu_grad", {x, dy}, {x.type}, {}, {}, {{0, 0}, {1, 0}}});
  }
}

TEST(ElementTypes, BinaryOfEveryValue) {
  for (DType dtype : kHalfTypes)
    for (const char *kernel : {"add", "sub", "mul", "div", "maximum", "minimum"}) {
      HostTensor a = everyValue(dtype), b = otherValues(dtype);
      expectRounded({kernel, {a, b}, {a.type}, {}, {}, {{0, 0}, {1, 0}}});
    }
}

TEST(ElementTypes, BinaryThatRepeats) {
  struct Dims {
    Shape result, lhs, rhs;
  };
  for (const Dims &dims : std::vector<Dims>{{{}, {}, {}},
                                            {{2, 3, 5}, {0, 1}, {0, 1, 2}},
                                            {{2, 3, 5}, {0}, {2}},
                                            {{3, 4}, {}, {}},
                                            {{401, 77}, {0, 1}, {1}},
                                            {{401, 77}, {0}, {0, 1}},
                                            {{9, 3000}, {0}, {1}},
                                            {{3000, 2}, {0, 1}, {1}},
                                            {{1, 7, 1, 6}, {1, 2}, {0, 3}},
                                            {{0, 3}, {0, 1}, {1}}})
    for (DType dtype : kHalfTypes) {
      Random random(8);
      auto operand = [&](const Shape &operandDims) {
        Shape shape;
        for (int64_t dim : operandDims)
          shape.push_back(dims.result[static_cast<size_t>(dim)]);
        return random.floats(dtype, shape);
      };
      expectRounded({"sub",
                     {operand(dims.lhs), operand(dims.rhs)},
                     {TensorType{dtype, dims.result}},
                     {{"lhs_dims", dims.lhs}, {"rhs_dims", dims.rhs}}});
    }
}

TEST(ElementTypes, CompareAndSelect) {
  for (DType dtype : kHalfTypes) {
    HostTensor a = everyValue(dtype), b = otherValues(dtype);
    for (int i = 0; i < 65536; i += 3)
      b.as<uint16_t>()[i] = a.as<uint16_t>()[i];
    for (const char *predicate : {"eq", "ne", "lt", "le", "gt", "ge"})
      expectRounded(
          {"compare", {a, b}, {TensorType{DType::Bool, a.type.shape}}, {{"predicate", predicate}}});
    Random random(9);
    HostTensor condition = random.integers(DType::Bool, a.type.shape, 0, 1);
    KernelCall select{"select", {condition, a, b}, {a.type}};
    for (const auto &shared :
         std::vector<std::vector<std::pair<size_t, size_t>>>{{}, {{1, 0}}, {{2, 0}}}) {
      HostTensor result = select.run(2, shared)[0];
      for (int i = 0; i < 65536; ++i) // the bits, those of a NaN too
        ASSERT_EQ(result.as<uint16_t>()[i], (condition.as<uint8_t>()[i] ? a : b).as<uint16_t>()[i]);
    }
  }
}

TEST(ElementTypes, ConvertsEveryPair) {
  DType all[] = {DType::F32, DType::F64, DType::I32, DType::Bool, DType::BF16, DType::F16};
  for (DType from : all)
    for (DType to : all) {
      Random random(10);
      HostTensor x = is16Bits(from)        ? everyValue(from)
                     : from == DType::Bool ? random.integers(from, {256, 256}, 0, 1)
                     : from == DType::I32 ? random.integers(from, {256, 256}, -100000000, 100000000)
                                          : random.floats(from, {256, 256}, -70000, 70000);
      Values values = valuesOf(x);
      for (double &value : values) {
        if (to == DType::I32)
          value = std::isnan(value) ? 0 : std::clamp(std::trunc(value), -0x1p31, 0x1p31 - 1);
        if (to == DType::Bool)
          value = value != 0;
      }
      KernelCall call{"convert", {x}, {TensorType{to, x.type.shape}}};
      for (int threads : {1, 3}) {
        HostTensor result = call.run(threads)[0];
        if (from == to) {
          EXPECT_EQ(result.bytes, x.bytes);
        }
        expectSame(result, makeTensor(to, x.type.shape, values),
                   std::string(name(from)) + " to " + name(to));
      }
    }
}

/// Values beside the points halfway between neighbours, which a detour over f32 would move there.
TEST(ElementTypes, ConvertsDoublesAndIntegersInOneRounding) {
  for (DType dtype : kHalfTypes) {
    // The last place of 1 is worth 2^-7 in bf16 and 2^-10 in f16.
    double place = dtype == DType::BF16 ? 0x1p-7 : 0x1p-10;
    double tie = 1 + place / 2;
    HostTensor x = makeTensor(DType::F64, {4},
                              {tie, std::nextafter(tie, 2.0), std::nextafter(tie, 0.0), 1e300});
    double infinity = std::numeric_limits<double>::infinity();
    expectSame(KernelCall{"convert", {x}, {TensorType{dtype, {4}}}}.run(1)[0],
               makeTensor(dtype, {4}, {1, 1 + place, 1, infinity}), "convert");
  }
  HostTensor integers = makeTensor(DType::I32, {2}, {16842752, 16842753});
  expectKernel({"convert", {integers}, {TensorType{DType::BF16, {2}}}}, {{16777216, 16908288}}, 0);
}

TEST(ElementTypes, Reduce) {
  struct Case {
    Shape shape, dims;
  };
  for (const Case &c : std::vector<Case>{{{30, 3001}, {1}},
                                         {{1001, 70}, {0}},
                                         {{50003}, {0}},
                                         {{2, 20001}, {1}},
                                         {{7, 30, 5, 11}, {0, 2}},
                                         {{7, 30, 5, 11}, {1, 3}},
                                         {{4, 5}, {}},
                                         {{4, 0}, {1}},
                                         {{}, {}}})
    for (DType dtype : kHalfTypes)
      for (const char *kind : {"sum", "max", "min"})
        for (DType result : {dtype, DType::F32}) {
          Random random(11);
          HostTensor x = random.floats(dtype, c.shape);
          TensorType out{result, {}};
          for (size_t d = 0; d < c.shape.size(); ++d)
            if (std::find(c.dims.begin(), c.dims.end(), static_cast<int64_t>(d)) == c.dims.end())
              out.shape.push_back(c.shape[d]);
          expectRounded({"reduce", {x}, {out}, {{"kind", kind}, {"dims", c.dims}}});
        }
}

/// 4096 times 1: from 256 on, a sum that is kept in bf16 would stay as it is.
TEST(ElementTypes, SumsAreNotRoundedInBetween) {
  for (int64_t dim : {0, 1})
    for (DType dtype : kHalfTypes)
      for (DType result : {dtype, DType::F32}) {
        Shape shape = dim == 0 ? Shape{4096, 20} : Shape{20, 4096};
        HostTensor ones = makeTensor(dtype, shape, Values(4096 * 20, 1));
        expectKernel(
            {"reduce", {ones}, {TensorType{result, {20}}}, {{"kind", "sum"}, {"dims", Shape{dim}}}},
            {Values(20, 4096)}, 0);
      }
}

TEST(ElementTypes, Softmax) {
  for (DType dtype : kHalfTypes)
    for (const Shape &shape : {Shape{5, 1}, Shape{300, 3}, Shape{37, 1025}, Shape{3, 5003},
                               Shape{0, 4}, Shape{70, 600}}) {
      Random random(12);
      HostTensor x = random.floats(dtype, shape, -8, 8), dy = random.floats(dtype, shape);
      expectRounded({"softmax", {x}, {x.type}, {}, {}, {{0, 0}}});
      expectRounded({"softmax_grad", {x, dy}, {x.type}, {}, {}, {{1, 0}}});
      expectRounded({"softmax_grad", {x, dy}, {x.type}, {{"scale", 0.3}}, {}, {{1, 0}}});
    }
  for (DType dtype : kHalfTypes)
    for (const Shape &shape :
         {Shape{1, 1}, Shape{2, 37, 37}, Shape{3, 5, 5003}, Shape{2, 70, 600}}) {
      Random random(13);
      HostTensor x = random.floats(dtype, shape, -8, 8);
      expectRounded({"softmax", {x}, {x.type}, {{"causal", true}, {"scale", 0.3}}, {}, {{0, 0}}});
    }
}

TEST(ElementTypes, CrossEntropy) {
  for (DType dtype : kHalfTypes)
    for (const Shape &shape : {Shape{5, 1}, Shape{300, 3}, Shape{37, 1025}, Shape{2, 3, 5003},
                               Shape{0, 4}, Shape{70, 600}})
      for (double smoothing : {0.0, 0.1}) {
        Random random(16);
        Shape rows(shape.begin(), shape.end() - 1);
        HostTensor x = random.floats(dtype, shape, -8, 8);
        HostTensor labels = random.integers(DType::I32, rows, -1, shape.back());
        HostTensor lse = random.floats(DType::F32, rows, 8, 9);
        HostTensor dloss = random.floats(DType::F32, rows);
        AttributeMap attributes{{"label_smoothing", smoothing}};
        expectRounded({"cross_entropy", {x, labels}, {lse.type, lse.type}, attributes});
        expectRounded(
            {"cross_entropy_grad", {x, labels, lse, dloss}, {x.type}, attributes, {}, {{0, 0}}});
      }
}

TEST(ElementTypes, Norms) {
  for (DType dtype : kHalfTypes)
    for (const Shape &shape : {Shape{5, 1}, Shape{600, 3}, Shape{37, 1025}, Shape{3, 5003},
                               Shape{0, 4}, Shape{70, 600}}) {
      Random random(13);
      Shape rows{shape[0]}, row{shape[1]};
      HostTensor x = random.floats(dtype, shape), dy = random.floats(dtype, shape);
      HostTensor gamma = random.floats(dtype, row), beta = random.floats(dtype, row);
      HostTensor mean = random.floats(DType::F32, rows);
      HostTensor rstd = random.floats(DType::F32, rows, 0.5, 2);
      TensorType wideRows = mean.type, wideRow{DType::F32, row};
      AttributeMap eps{{"eps", 1e-5}};
      expectRounded({"layer_norm", {x, gamma, beta}, {x.type, wideRows, wideRows}, eps});
      expectRounded({"layer_norm_grad", {x, gamma, mean, rstd, dy}, {x.type, wideRow, wideRow}});
      expectRounded({"rms_norm", {x, gamma}, {x.type, wideRows}, eps});
      expectRounded({"rms_norm_grad", {x, gamma, rstd, dy}, {x.type, wideRow}});
    }
}

TEST(ElementTypes, Rotary) {
  for (DType dtype : kHalfTypes)
    for (const Shape &shape : {Shape{2, 300, 3, 8}, Shape{1, 5, 40, 64}, Shape{1, 2, 1, 2050}}) {
      Random random(14);
      HostTensor x = random.floats(dtype, shape);
      for (bool inverse : {false, true})
        expectRounded(
            {"rotary", {x}, {x.type}, {{"theta", 1e4}, {"inverse", inverse}}, {}, {{0, 0}}});
    }
}

TEST(ElementTypes, Indexing) {
  for (DType dtype : kHalfTypes) {
    Random random(15);
    HostTensor ids = random.integers(DType::I32, {50, 40}, -1, 7);
    HostTensor table = random.floats(dtype, {7, 33}), dy = random.floats(dtype, {50, 40, 33});
    expectRounded({"embedding", {table, ids}, {dy.type}});
    expectRounded({"embedding_grad", {ids, dy}, {TensorType{DType::F32, {7, 33}}}});
    HostTensor tables = random.floats(dtype, {40, 3, 33});
    HostTensor rows = random.integers(DType::I32, {2, 40, 6}, -1, 3);
    HostTensor dz = random.floats(dtype, {2, 40, 6, 33});
    expectRounded({"embedding", {tables, rows}, {dz.type}});
    expectRounded({"embedding_grad", {rows, dz}, {TensorType{DType::F32, {40, 3, 33}}}});
    HostTensor picked = random.floats(dtype, {50, 40});
    expectRounded({"pick", {dy, ids}, {picked.type}});
    expectRounded({"pick_grad", {ids, picked}, {dy.type}});
  }
}

/// The bits are moved as they are, those of a NaN too.
TEST(ElementTypes, DataMovement) {
  for (DType dtype : kHalfTypes) {
    HostTensor x = everyValue(dtype);
    auto bitsAfter = [&](const KernelCall &call) { return call.run(2)[0]; };
    TensorType square = x.type, flat{dtype, {65536}}, wider{dtype, {258, 300}};
    HostTensor copy = bitsAfter({"copy", {x}, {flat}});
    EXPECT_EQ(copy.bytes, x.bytes);
    HostTensor turned = bitsAfter({"transpose", {x}, {square}, {{"permutation", Shape{1, 0}}}});
    HostTensor padded =
        bitsAfter({"pad", {x}, {wider}, {{"low", Shape{1, 2}}, {"value", 1 + 0x1p-8 + 0x1p-40}}});
    HostTensor sliced = bitsAfter({"slice", {padded}, {square}, {{"offsets", Shape{1, 2}}}});
    EXPECT_EQ(sliced.bytes, x.bytes);
    // The value of the padding is rounded once.
    EXPECT_EQ(elementAt(padded, 0), dtype == DType::BF16 ? 1 + 0x1p-7 : 1 + 0x1p-8);
    HostTensor joined =
        bitsAfter({"concat", {x, x}, {TensorType{dtype, {256, 512}}}, {{"dim", int64_t{1}}}});
    HostTensor repeated =
        bitsAfter({"broadcast", {copy}, {TensorType{dtype, {3, 65536}}}, {{"dims", Shape{1}}}});
    for (int i = 0; i < 65536; ++i) {
      int row = i / 256, column = i % 256;
      ASSERT_EQ(turned.as<uint16_t>()[column * 256 + row], i);
      ASSERT_EQ(joined.as<uint16_t>()[row * 512 + 256 + column], i);
      ASSERT_EQ(repeated.as<uint16_t>()[2 * 65536 + i], i);
    }
    expectKernel({"fill", {}, {TensorType{dtype, {7}}}, {{"value", -1.5}}}, {Values(7, -1.5)}, 0);
    HostTensor three = makeTensor(dtype, {3}, {1, -2, 0.25});
    std::string data(reinterpret_cast<const char *>(three.bytes.data()), 6);
    expectKernel({"constant", {}, {three.type}, {{"data", RawBytes{data}}}}, {{1, -2, 0.25}}, 0);
  }
}

TEST(ElementTypes, Sharding) {
  double infinity = std::numeric_limits<double>::infinity();
  using Axes = std::vector<std::string>;
  for (DType dtype : kHalfTypes) {
    HostTensor x = makeTensor(dtype, {5}, {1, 2, 3, 4, 5});
    std::vector<AxisCoordinate> mesh = {{"dp", 2, 1, false}};
    AttributeMap slice = {{"dim", int64_t{0}}, {"axes", Axes{"dp"}}};
    expectKernel({"shard_slice", {x}, {TensorType{dtype, {3}}}, slice, mesh}, {{4, 5, 0}}, 0);
    HostTensor shard = makeTensor(dtype, {3}, {4, 5, std::nan("")});
    for (auto [value, expected] :
         {std::pair("zero", 0.0), std::pair("lowest", -infinity), std::pair("highest", infinity)}) {
      AttributeMap mask = slice;
      mask["size"] = int64_t{5};
      mask["value"] = value;
      expectKernel({"mask_padding", {shard}, {shard.type}, mask, mesh, {{0, 0}}},
                   {{4, 5, expected}}, 0);
    }
  }
}

TEST(ElementTypes, RefusesMixtures) {
  TensorType h{DType::F16, {2, 3}}, b{DType::BF16, {2, 3}}, f{DType::F32, {2, 3}};
  TensorType bRow{DType::BF16, {3}}, fRow{DType::F32, {3}}, d{DType::F64, {2, 3}};
  TensorType bRows{DType::BF16, {2}}, fRows{DType::F32, {2}}, ids{DType::I32, {2}};
  expectRefused({"exp", {b}, {f}, {}, {}}, "output 0 is f32[2,3], expected bf16[2,3]");
  expectRefused({"add", {b, h}, {b}, {}, {}}, "input 1 is f16[2,3], expected bf16[2,3]");
  expectRefused({"compare", {b, f}, {b}, {{"predicate", "lt"}}, {}}, "expected bf16[2,3]");
  expectRefused({"copy", {b}, {h}, {}, {}}, "output 0 is f16[2,3]");
  expectRefused({"softmax", {h}, {f}, {}, {}}, "output 0 is f32[2,3], expected f16[2,3]");
  AttributeMap eps{{"eps", 1e-5}};
  expectRefused({"layer_norm", {b, bRow, bRow}, {b, bRows, bRows}, eps, {}},
                "output 1 is bf16[2], expected f32[2]");
  expectRefused({"layer_norm", {b, fRow, fRow}, {b, fRows, fRows}, eps, {}},
                "input 1 is f32[3], expected bf16[3]");
  expectRefused({"layer_norm_grad", {b, bRow, fRows, fRows, b}, {b, bRow, bRow}, {}, {}},
                "output 1 is bf16[3], expected f32[3]");
  expectRefused({"rms_norm", {b, bRow}, {b, bRows}, eps, {}},
                "output 1 is bf16[2], expected f32[2]");
  expectRefused({"rms_norm_grad", {b, bRow, bRows, b}, {b, fRow}, {}, {}},
                "input 2 is bf16[2], expected f32[2]");
  expectRefused({"embedding_grad", {ids, b}, {TensorType{DType::BF16, {4, 3}}}, {}, {}},
                "output 0 is bf16[4,3], expected at least 2 dimensions of f32");
  expectRefused({"pick", {b, ids}, {fRows}, {}, {}}, "output 0 is f32[2], expected bf16[2]");
  AttributeMap sum{{"kind", "sum"}, {"dims", Shape{0}}};
  expectRefused({"reduce", {b}, {TensorType{DType::F16, {3}}}, sum, {}},
                "output 0 is f16[3], expected bf16[3]");
  expectRefused({"reduce", {d}, {fRow}, sum, {}}, "output 0 is f32[3], expected f64[3]");
  expectRefused({"accumulate", {b}, {b}, {{"axis", "m"}}, {{"m", 2, 0, true}}},
                "input 0 is bf16[2,3], expected elements of f32 or f64");
}

} // namespace
} // namespace dtc::runtime::test::elementTypesTest
