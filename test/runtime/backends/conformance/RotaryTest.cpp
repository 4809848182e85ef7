//===- RotaryTest.cpp - Rotary position embedding -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/conformance/KernelTest.h"

#include <cmath>
#include <complex>

namespace dtc::runtime::test::rotaryTest {
namespace {

/// Pairs as complex numbers, turned by the angle.
Values reference(const HostTensor &x, double theta, bool inverse) {
  const Shape &shape = x.type.shape;
  Values in = valuesOf(x), out = in;
  size_t size = static_cast<size_t>(shape[3]), half = size / 2;
  for (size_t head = 0; head * size < in.size(); ++head) {
    double position = static_cast<double>(static_cast<int64_t>(head) / shape[2] % shape[1]);
    for (size_t i = 0; i < half; ++i) {
      double angle =
          position / std::pow(theta, 2.0 * static_cast<double>(i) / static_cast<double>(size));
      size_t low = head * size + i;
      std::complex<double> turned =
          std::complex<double>(in[low], in[low + half]) * std::polar(1.0, inverse ? -angle : angle);
      out[low] = turned.real();
      out[low + half] = turned.imag();
    }
  }
  return out;
}

TEST(Rotary, BothDirections) {
  for (const Shape &shape : {Shape{2, 5, 3, 4}, Shape{1, 1, 1, 2}, Shape{2, 70, 4, 64},
                             Shape{1, 9, 2, 6}, Shape{0, 5, 3, 4}, Shape{2, 3, 1, 0}})
    for (bool inverse : {false, true})
      for (DType dtype : kFloatTypes) {
        Random random(100);
        HostTensor x = random.floats(dtype, shape);
        expectKernel(
            {"rotary", {x}, {x.type}, {{"theta", 10000.0}, {"inverse", inverse}}, {}, {{0, 0}}},
            {reference(x, 10000, inverse)}, dtype == DType::F32 ? 1e-15 : 1e-13);
      }
}

/// Positions that count from those of the first rows, and positions of each row: in documents that
/// begin again, and beyond the sequence.
TEST(Rotary, Positions) {
  Shape shape{3, 6, 2, 8};
  Values first{0, 40, -3}, each{0, 1, 2, 0, 1, 0, 3, 2, 1, 0, 1, 2, 100, 5, 6, -2, 1 << 20, 0};
  for (bool ofRows : {false, true})
    for (bool inverse : {false, true})
      for (DType dtype : kFloatTypes) {
        Random random(105);
        HostTensor x = random.floats(dtype, shape);
        Values in = valuesOf(x), out = in;
        for (size_t head = 0; head < in.size() / 8; ++head) {
          size_t row = head / 2;
          double position = ofRows ? each[row] : first[row / 6] + static_cast<double>(row % 6);
          for (size_t i = 0; i < 4; ++i) {
            double angle = position / std::pow(100.0, static_cast<double>(i) / 4);
            size_t low = head * 8 + i;
            std::complex<double> turned = std::complex<double>(in[low], in[low + 4]) *
                                          std::polar(1.0, inverse ? -angle : angle);
            out[low] = turned.real();
            out[low + 4] = turned.imag();
          }
        }
        HostTensor positions =
            ofRows ? makeTensor(DType::I32, {3, 6}, each) : makeTensor(DType::I32, {3}, first);
        AttributeMap attributes{{"theta", 100.0}, {"inverse", inverse}};
        expectKernel({"rotary", {x, positions}, {x.type}, attributes, {}, {{0, 0}}}, {out},
                     dtype == DType::F32 ? 1e-15 : 1e-9);
        for (DType half : kHalfTypes)
          expectRounded({"rotary",
                         {makeTensor(half, shape, in), positions},
                         {TensorType{half, shape}},
                         attributes});
      }
}

/// The attribute of a table.
RawBytes tableOf(const std::vector<double> &frequencies) {
  return {std::string(reinterpret_cast<const char *>(frequencies.data()),
                      frequencies.size() * sizeof(double))};
}

/// Frequencies of all pairs, of some, and of none but one; times a factor or not.
TEST(Rotary, Frequencies) {
  struct Case {
    Shape shape;
    std::vector<double> frequencies;
    double factor;
  };
  for (const Case &c :
       {Case{{2, 5, 3, 8}, {1, 0.3, 0.02, 0}, 1}, Case{{2, 5, 3, 8}, {1, 0.3, 0.02}, 1.25},
        Case{{1, 70, 2, 64}, {0.7, 0.01, 0.3, 1.5, 2, 3, 4, 5}, 0.5}, Case{{3, 4, 1, 6}, {0.9}, 1}})
    for (bool inverse : {false, true})
      for (DType dtype : kFloatTypes) {
        Random random(102);
        HostTensor x = random.floats(dtype, c.shape);
        Values in = valuesOf(x), out = in;
        size_t size = static_cast<size_t>(c.shape[3]), pairs = c.frequencies.size();
        for (size_t head = 0; head * size < in.size(); ++head) {
          double position =
              static_cast<double>(static_cast<int64_t>(head) / c.shape[2] % c.shape[1]);
          for (size_t i = 0; i < pairs; ++i) {
            double angle = position * c.frequencies[i];
            size_t low = head * size + i;
            std::complex<double> turned = std::complex<double>(in[low], in[low + pairs]) *
                                          std::polar(c.factor, inverse ? -angle : angle);
            out[low] = turned.real();
            out[low + pairs] = turned.imag();
          }
        }
        AttributeMap attributes{{"frequencies", tableOf(c.frequencies)}, {"inverse", inverse}};
        if (c.factor != 1)
          attributes["factor"] = c.factor;
        expectKernel({"rotary", {x}, {x.type}, attributes, {}, {{0, 0}}}, {out},
                     dtype == DType::F32 ? 1e-15 : 1e-13);
        // Not in place: elements that are not rotated are copied.
        expectKernel({"rotary", {x}, {x.type}, attributes}, {out},
                     dtype == DType::F32 ? 1e-15 : 1e-13);
      }
  Random random(103);
  for (DType dtype : kHalfTypes)
    expectRounded({"rotary",
                   {random.floats(dtype, {2, 9, 3, 10})},
                   {TensorType{dtype, {2, 9, 3, 10}}},
                   {{"frequencies", tableOf({1, 0.5, 0.1})}, {"inverse", false}}});
}

/// A table of theta's own frequencies is theta.
TEST(Rotary, TableOfTheta) {
  Random random(104);
  HostTensor x = random.floats(DType::F64, {2, 30, 2, 8});
  std::vector<double> frequencies;
  for (int i = 0; i < 4; ++i)
    frequencies.push_back(std::pow(500.0, -2.0 * i / 8));
  KernelCall byTheta{"rotary", {x}, {x.type}, {{"theta", 500.0}, {"inverse", false}}};
  KernelCall byTable{
      "rotary", {x}, {x.type}, {{"frequencies", tableOf(frequencies)}, {"inverse", false}}};
  EXPECT_EQ(byTheta.run(1)[0].bytes, byTable.run(1)[0].bytes);
}

TEST(Rotary, InverseUndoes) {
  Random random(101);
  HostTensor x = random.floats(DType::F64, {1, 50, 2, 8});
  AttributeMap attributes{{"theta", 500.0}, {"inverse", false}};
  HostTensor turned = KernelCall{"rotary", {x}, {x.type}, attributes}.run(1)[0];
  attributes["inverse"] = true;
  expectKernel({"rotary", {turned}, {x.type}, attributes}, {valuesOf(x)});
}

TEST(Rotary, Refuses) {
  TensorType x{DType::F32, {1, 2, 3, 4}}, odd{DType::F32, {1, 2, 3, 5}}, flat{DType::F32, {2, 12}};
  TensorType huge{DType::F32, {0, 2, 3, int64_t{1} << 40}};
  AttributeMap attributes{{"theta", 10000.0}, {"inverse", false}};
  expectRefused({"rotary", {flat}, {flat}, attributes, {}}, "expected 4 dimensions");
  expectRefused({"rotary", {odd}, {odd}, attributes, {}}, "expected an even last dimension");
  expectRefused({"rotary", {huge}, {huge}, attributes, {}}, "expected an even last dimension");
  for (double theta : {0.0, -1.0, std::nan(""), std::exp(1000.0)})
    expectRefused({"rotary", {x}, {x}, {{"theta", theta}, {"inverse", false}}, {}},
                  "attribute 'theta'");
  expectRefused({"rotary", {x}, {x}, {{"theta", 10000.0}}, {}}, "attribute 'inverse' is missing");
  expectRefused({"rotary", {x, {DType::I32, {2}}}, {x}, attributes, {}}, "expected i32[1]");
  expectRefused({"rotary", {x, {DType::I32, {1, 3}}}, {x}, attributes, {}}, "expected i32[1,2]");
  expectRefused({"rotary", {x, {DType::F32, {1, 2}}}, {x}, attributes, {}}, "expected i32[1,2]");
  for (const std::vector<double> &table :
       {std::vector<double>{}, {1, 1, 1}, {-1.0}, {std::nan("")}, {1, HUGE_VAL}})
    expectRefused({"rotary", {x}, {x}, {{"frequencies", tableOf(table)}, {"inverse", false}}, {}},
                  "attribute 'frequencies'");
  expectRefused({"rotary", {x}, {x}, {{"frequencies", RawBytes{"12345"}}, {"inverse", false}}, {}},
                "attribute 'frequencies' is 5 bytes, expected f64 numbers, from 1 to 2");
  attributes["frequencies"] = tableOf({1});
  expectRefused({"rotary", {x}, {x}, attributes, {}}, "'theta'");
  attributes.erase("theta");
  for (double factor : {0.0, -1.0, std::nan("")}) {
    attributes["factor"] = factor;
    expectRefused({"rotary", {x}, {x}, attributes, {}}, "attribute 'factor'");
  }
}

} // namespace
} // namespace dtc::runtime::test::rotaryTest
