//===- CrossEntropyTest.cpp - Tests of cross entropy ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/conformance/KernelTest.h"

#include <cmath>

namespace dtc::runtime::test::crossEntropyTest {
namespace {

Values logSumExp(const Values &logits, size_t rows) {
  Values lse(rows);
  size_t width = logits.size() / std::max<size_t>(rows, 1);
  for (size_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (size_t i = 0; i < width; ++i)
      sum += std::exp(logits[row * width + i]);
    lse[row] = std::log(sum);
  }
  return lse;
}

TEST(CrossEntropy, ForwardAndGradient) {
  for (const Shape &shape : {Shape{1}, Shape{5, 7}, Shape{2, 3, 33}, Shape{31, 3001}, Shape{0, 3}})
    for (DType dtype : kFloatTypes) {
      Random random(80);
      Shape rowShape(shape.begin(), shape.end() - 1);
      size_t rows = static_cast<size_t>(count(rowShape)), width = static_cast<size_t>(shape.back());
      HostTensor logits = random.floats(dtype, shape, -8, 8);
      HostTensor labels = random.integers(DType::I32, rowShape, -1, shape.back());
      HostTensor dloss = random.floats(dtype, rowShape);
      Values x = valuesOf(logits), label = valuesOf(labels), dy = valuesOf(dloss);
      Values lse = logSumExp(x, rows), loss = lse, dx(x.size());
      for (size_t row = 0; row < rows; ++row) {
        for (size_t i = 0; i < width; ++i)
          dx[row * width + i] = std::exp(x[row * width + i] - lse[row]) * dy[row];
        if (label[row] < 0 || label[row] >= static_cast<double>(width))
          continue;
        size_t target = row * width + static_cast<size_t>(label[row]);
        loss[row] -= x[target];
        dx[target] -= dy[row];
      }
      expectKernel({"cross_entropy", {logits, labels}, {dloss.type, dloss.type}}, {loss, lse});
      expectKernel({"cross_entropy_grad",
                    {logits, labels, makeTensor(dtype, rowShape, lse), dloss},
                    {logits.type},
                    {},
                    {},
                    {{0, 0}}},
                   {dx}, 3e-15);
    }
}

/// As the cross entropy of a softmax with a target distribution: what remains of the label's 1, and
/// an equal share of the smoothing for every class.
TEST(CrossEntropy, LabelSmoothing) {
  for (const Shape &shape : {Shape{4, 1}, Shape{5, 7}, Shape{2, 3, 33}, Shape{3, 2051}})
    for (double smoothing : {0.0, 0.1, 0.75})
      for (DType dtype : kFloatTypes) {
        Random random(82);
        Shape rowShape(shape.begin(), shape.end() - 1);
        auto rows = static_cast<size_t>(count(rowShape)), width = static_cast<size_t>(shape.back());
        HostTensor logits = random.floats(dtype, shape, -4, 4);
        HostTensor labels = random.integers(DType::I32, rowShape, -1, shape.back());
        HostTensor dloss = random.floats(dtype, rowShape);
        Values x = valuesOf(logits), label = valuesOf(labels), dy = valuesOf(dloss);
        Values lse = logSumExp(x, rows), loss(rows), dx(x.size());
        for (size_t row = 0; row < rows; ++row) {
          bool valid = label[row] >= 0 && label[row] < static_cast<double>(width);
          // Without a label its part of the target is missing, and the rest of lse stays.
          loss[row] = valid ? 0 : (1 - smoothing) * lse[row];
          for (size_t i = 0; i < width; ++i) {
            double target = smoothing / static_cast<double>(width);
            if (valid && static_cast<double>(i) == label[row])
              target += 1 - smoothing;
            double logProbability = x[row * width + i] - lse[row];
            loss[row] -= target * logProbability;
            dx[row * width + i] = (std::exp(logProbability) - target) * dy[row];
          }
        }
        AttributeMap attributes{{"label_smoothing", smoothing}};
        expectKernel({"cross_entropy", {logits, labels}, {dloss.type, dloss.type}, attributes},
                     {loss, lse});
        expectKernel({"cross_entropy_grad",
                      {logits, labels, makeTensor(dtype, rowShape, lse), dloss},
                      {logits.type},
                      attributes,
                      {},
                      {{0, 0}}},
                     {dx}, 3e-15);
      }
}

TEST(CrossEntropy, LargeLogitsDoNotOverflow) {
  for (DType dtype : kFloatTypes) {
    HostTensor logits = makeTensor(dtype, {1, 2}, {2000, 2000});
    double lse = 2000 + std::log(2);
    expectKernel({"cross_entropy",
                  {logits, makeTensor(DType::I32, {1}, {1})},
                  {TensorType{dtype, {1}}, TensorType{dtype, {1}}}},
                 {{lse - 2000}, {lse}}, 1e-12);
  }
}

TEST(CrossEntropy, WideRowsAreAccurate) {
  Random random(81);
  HostTensor logits = random.floats(DType::F32, {2, 50304}, -3, 3);
  HostTensor labels = makeTensor(DType::I32, {2}, {50303, 50304});
  Values lse = logSumExp(valuesOf(logits), 2);
  std::vector<HostTensor> results = KernelCall{
      "cross_entropy",
      {logits, labels},
      {TensorType{DType::F32, {2}},
       TensorType{DType::F32, {2}}}}.run(2);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_NEAR(valuesOf(results[1])[i], lse[i], 2e-6);
  EXPECT_NEAR(valuesOf(results[0])[0], lse[0] - valuesOf(logits)[50303], 2e-6);
  EXPECT_NEAR(valuesOf(results[0])[1], lse[1], 2e-6);
}

TEST(CrossEntropy, GradientsOfWideRows) {
  // An even and an odd number of vectors of a thread, some threads with one less, and single
  // elements.
  Random random(82);
  for (int64_t width : {32768, 41000, 33001})
    for (DType dtype : kFloatTypes) {
      HostTensor logits = random.floats(dtype, {2, width}, -3, 3);
      HostTensor labels = makeTensor(DType::I32, {2}, {0, static_cast<double>(width - 1)});
      Values x = valuesOf(logits), lse = logSumExp(x, 2), dloss{0.5, -2}, expected;
      for (size_t i = 0; i < x.size(); ++i) {
        size_t columns = static_cast<size_t>(width), row = i / columns;
        bool isLabel = i % columns == (row == 0 ? 0 : columns - 1);
        expected.push_back((std::exp(x[i] - lse[row]) - (isLabel ? 1 : 0)) * dloss[row]);
      }
      expectKernel({"cross_entropy_grad",
                    {logits, labels, makeTensor(dtype, {2}, lse), makeTensor(dtype, {2}, dloss)},
                    {logits.type}},
                   {expected});
    }
}

TEST(CrossEntropy, Refuses) {
  TensorType logits{DType::F32, {2, 5}}, labels{DType::I32, {2}}, row{DType::F32, {2}};
  expectRefused({"cross_entropy", {logits, row}, {row, row}, {}, {}},
                "input 1 is f32[2], expected i32[2]");
  for (double smoothing : {1.0, -0.1, std::nan("")})
    for (bool grad : {false, true}) {
      AttributeMap attributes{{"label_smoothing", smoothing}};
      KernelSignature forward{"cross_entropy", {logits, labels}, {row, row}, attributes, {}};
      KernelSignature backward{
          "cross_entropy_grad", {logits, labels, row, row}, {logits}, attributes, {}};
      expectRefused(grad ? backward : forward, "attribute 'label_smoothing' is");
    }
  TensorType half{DType::BF16, {2, 5}}, halfRow{DType::BF16, {2}};
  expectRefused({"cross_entropy", {half, labels}, {halfRow, row}, {}, {}},
                "output 0 is bf16[2], expected f32[2]");
  expectRefused({"cross_entropy", {logits, labels}, {row}, {}, {}}, "has 1 outputs, expected 2");
  expectRefused({"cross_entropy", {logits, labels}, {row, logits}, {}, {}},
                "output 1 is f32[2,5], expected f32[2]");
  expectRefused({"cross_entropy_grad", {logits, labels, row, logits}, {logits}, {}, {}},
                "input 3 is f32[2,5], expected f32[2]");
  expectRefused({"cross_entropy_grad", {logits, labels, row, row}, {row}, {}, {}},
                "output 0 is f32[2], expected f32[2,5]");
}

} // namespace
} // namespace dtc::runtime::test::crossEntropyTest
