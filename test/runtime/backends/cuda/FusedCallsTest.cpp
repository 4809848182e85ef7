//===- FusedCallsTest.cpp - Calls without products that share a kernel ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/cuda/FusedCallsFixture.h"

#include <algorithm>

namespace dtc::runtime::fusedCallsTest {

namespace {

using testing::Calls;

const auto kTypes = ::testing::Values(DType::F32, DType::BF16);
std::string nameOf(const ::testing::TestParamInfo<DType> &info) {
  return std::string(name(info.param));
}

/// The gradient of a norm, and what is added to it.
class FusedNormGrad : public testing::FusedCallsTest {
protected:
  /// `sumAt` gives the value in whose place the sum is.
  Calls make(bool hasMean, size_t sumAt, int64_t rows = 5, int64_t width = 24) {
    Calls calls(mesh);
    TensorType matrix = type({rows, width});
    calls.placeBytes = std::max(calls.placeBytes, matrix.numBytes());
    size_t x = calls.value(matrix), gamma = calls.value(type({width})),
           rstd = calls.value(wide({rows})), dy = calls.value(matrix), other = calls.value(matrix),
           mean = calls.value(wide({rows})), dx = calls.value(matrix),
           dgamma = calls.value(wide({width})), dbeta = calls.value(wide({width}));
    size_t sum = calls.valueAt(sumAt, matrix);
    if (hasMean)
      calls.call("layer_norm_grad", {x, gamma, mean, rstd, dy}, {dx, dgamma, dbeta});
    else
      calls.call("rms_norm_grad", {x, gamma, rstd, dy}, {dx, dgamma});
    calls.call("add", {other, dx}, {sum});
    calls.keep(dgamma);
    if (hasMean)
      calls.keep(dbeta);
    calls.keep(sum);
    return calls;
  }
  static constexpr size_t kX = 0, kDy = 3, kOther = 4, kDx = 6, kDgamma = 7, kDbeta = 8, kSum = 9;
};
INSTANTIATE_TEST_SUITE_P(Types, FusedNormGrad, kTypes, nameOf);

TEST_P(FusedNormGrad, HasTheBitsOfTheCalls) {
  // Several rows at a time, or two vectors of a row for each thread, or rows without vectors.
  for (auto [rows, width] : {std::pair(5, 24), {70, 24}, {5, 2056}, {70, 23}, {3, 2057}})
    for (bool hasMean : {false, true})
      for (size_t sumAt : {kOther, kDx}) {
        Calls calls = make(hasMean, sumAt, rows, width);
        std::vector<std::byte> single = runOneByOne(calls), fused = runFused(calls);
        expectSameBits(calls, single, fused, {kDgamma, kSum, hasMean ? kDbeta : kSum});
      }
}

TEST_P(FusedNormGrad, RefusesASumWhereTheGradientReads) {
  EXPECT_FALSE(hasKernel(make(true, kX)));
  EXPECT_FALSE(hasKernel(make(true, kDy)));
  Calls calls = make(true, kOther);
  EXPECT_TRUE(hasKernel(calls));
  calls.keep(kDx);
  EXPECT_FALSE(hasKernel(calls));
}

/// The gradient of a norm, what is added to it, and the sum of all rows.
class FusedColumnSums : public testing::FusedCallsTest {
protected:
  struct Values {
    size_t dgamma, dbeta, result, columns;
  };

  std::pair<Calls, Values> make(bool hasMean, int64_t rows, int64_t width,
                                AttributeMap reduce = {{"kind", "sum"},
                                                       {"dims", std::vector<int64_t>{0}}}) {
    Calls calls(mesh);
    TensorType matrix = type({rows, width});
    calls.placeBytes = std::max(calls.placeBytes, matrix.numBytes());
    size_t x = calls.value(matrix), gamma = calls.value(type({width})),
           rstd = calls.value(wide({rows})), dy = calls.value(matrix), other = calls.value(matrix),
           mean = calls.value(wide({rows})), dx = calls.value(matrix), sum = calls.value(matrix);
    Values at{calls.value(wide({width})), calls.value(wide({width})), sum,
              calls.value(wide({width}))};
    if (hasMean)
      calls.call("layer_norm_grad", {x, gamma, mean, rstd, dy}, {dx, at.dgamma, at.dbeta});
    else
      calls.call("rms_norm_grad", {x, gamma, rstd, dy}, {dx, at.dgamma});
    calls.call("add", {other, dx}, {sum});
    calls.call("reduce", {at.result}, {at.columns}, std::move(reduce));
    calls.keep(at.dgamma);
    if (hasMean)
      calls.keep(at.dbeta);
    calls.keep(at.result);
    calls.keep(at.columns);
    return {calls, at};
  }
};
INSTANTIATE_TEST_SUITE_P(Types, FusedColumnSums, kTypes, nameOf);

// The columns are added in another order than by the kernel of the sum, all else has its bits.
TEST_P(FusedColumnSums, SumsWhatItWrites) {
  for (auto [rows, width] : {std::pair(5, 24), {70, 24}, {70, 23}, {40, 2048}, {3, 2041}})
    for (bool hasMean : {false, true}) {
      SCOPED_TRACE(::testing::Message() << rows << "x" << width << (hasMean ? ", mean" : ""));
      auto [calls, at] = make(hasMean, rows, width);
      std::vector<std::byte> single = runOneByOne(calls), fused = runFused(calls);
      EXPECT_EQ(launches, 2u);
      expectSameBits(calls, single, fused, {at.dgamma, at.result, hasMean ? at.dbeta : at.result});
      for (int64_t column = 0; column < width; ++column) {
        double expected = 0, magnitude = 0;
        for (int64_t row = 0; row < rows; ++row) {
          double element = elementOf(calls, single, at.result, row * width + column);
          expected += element;
          magnitude += std::abs(element);
        }
        EXPECT_NEAR(elementOf(calls, fused, at.columns, column), expected,
                    1e-6 * magnitude + 1e-30);
      }
    }
}

TEST_P(FusedColumnSums, RefusesOtherSums) {
  EXPECT_TRUE(hasKernel(make(true, 5, 24).first));
  EXPECT_FALSE(hasKernel(make(true, 5, 2056).first)); // no registers for wider rows
  EXPECT_FALSE(
      hasKernel(make(true, 24, 24, {{"kind", "sum"}, {"dims", std::vector<int64_t>{1}}}).first));
  EXPECT_FALSE(
      hasKernel(make(true, 5, 24, {{"kind", "max"}, {"dims", std::vector<int64_t>{0}}}).first));
}

/// The gradient of a table, and another one that is added to it.
class FusedEmbeddingGrad : public testing::FusedCallsTest {
protected:
  /// `sumAt` gives the value in whose place the sum is.
  Calls make(size_t sumAt, bool isFirst, int64_t sequence = 7) {
    Calls calls(mesh);
    size_t ids = calls.value({DType::I32, {2, sequence}}), dy = calls.value(type({2, sequence, 4})),
           other = calls.value(wide({9, 4})), grad = calls.value(wide({9, 4})),
           sum = calls.valueAt(sumAt, wide({9, 4}));
    calls.call("embedding_grad", {ids, dy}, {grad});
    calls.call("add", isFirst ? std::vector{grad, other} : std::vector{other, grad}, {sum});
    calls.keep(sum);
    return calls;
  }
  static constexpr size_t kDy = 1, kOther = 2, kGrad = 3, kSum = 4;
};
INSTANTIATE_TEST_SUITE_P(Types, FusedEmbeddingGrad, kTypes, nameOf);

TEST_P(FusedEmbeddingGrad, HasTheBitsOfTheCalls) {
  // Few places of a row, or more than are listed.
  for (int64_t sequence : {7, 100})
    for (bool isFirst : {false, true})
      for (size_t sumAt : {kOther, kGrad, kSum}) {
        Calls calls = make(sumAt, isFirst, sequence);
        std::vector<std::byte> single = runOneByOne(calls);
        uint64_t launchesOfSingles = launches;
        std::vector<std::byte> fused = runFused(calls);
        EXPECT_EQ(launches + 1, launchesOfSingles); // that of the addition
        expectSameBits(calls, single, fused, {kSum});
      }
}

TEST_P(FusedEmbeddingGrad, RefusesAGradientThatIsReadElsewhereAndASumInOtherPlaces) {
  EXPECT_FALSE(hasKernel(make(kDy, true)));
  Calls calls = make(kOther, true);
  calls.keep(kGrad);
  EXPECT_FALSE(hasKernel(calls));
}

/// The loss of a classification and its gradient.
class FusedCrossEntropy : public testing::FusedCallsTest {
protected:
  struct Options {
    size_t gradAt = 0;        // the value in whose place the gradient is
    bool isBroadcast = true;  // one number is dloss
    int64_t width = 40;       // 8 elements at a time, or one by one
    double gradSmoothing = 0; // that of the loss is 0
    size_t logitsOfGrad = kLogits;
  };
  Calls make(const Options &options) {
    Calls calls(mesh);
    TensorType matrix = type({6, options.width}), row = wide({6});
    calls.placeBytes = std::max(calls.placeBytes, matrix.numBytes());
    calls.value(matrix);
    calls.value({DType::I32, {6}});
    calls.value(wide({}));
    calls.value(row);
    calls.value(row);
    calls.value(row);
    calls.valueAt(options.gradAt, matrix);
    calls.value(matrix);
    calls.call("cross_entropy", {kLogits, kLabels}, {kLoss, kLse});
    if (options.isBroadcast)
      calls.call("broadcast", {kNumber}, {kDloss}, {{"dims", std::vector<int64_t>{}}});
    AttributeMap attributes;
    if (options.gradSmoothing != 0)
      attributes["label_smoothing"] = options.gradSmoothing;
    calls.call("cross_entropy_grad", {options.logitsOfGrad, kLabels, kLse, kDloss}, {kGrad},
               attributes);
    calls.keep(kLoss);
    calls.keep(kGrad);
    return calls;
  }
  static constexpr size_t kLogits = 0, kLabels = 1, kNumber = 2, kLoss = 3, kLse = 4, kDloss = 5,
                          kGrad = 6, kOthers = 7;
};
INSTANTIATE_TEST_SUITE_P(Types, FusedCrossEntropy, kTypes, nameOf);

TEST_P(FusedCrossEntropy, HasTheBitsOfTheCalls) {
  for (size_t gradAt : {kLogits, kGrad})
    for (bool isBroadcast : {false, true})
      for (int64_t width : {40, 37}) {
        Calls calls = make({gradAt, isBroadcast, width});
        expectBits(calls, {kLoss, kGrad});
        calls.keep(kLse);
        expectBits(calls, {kLoss, kLse, kGrad});
      }
}

TEST_P(FusedCrossEntropy, HasTheBitsOfTheCallsForWideRows) {
  // In shared memory as a whole, or in registers and not kept in part.
  for (int64_t width : {33000, 32777, 45000, 66000, 60001})
    expectBits(make({kLogits, /*isBroadcast=*/true, width}), {kLoss, kGrad});
}

TEST_P(FusedCrossEntropy, AppliesEachItsOwnSmoothing) {
  expectBits(make({.gradAt = kLogits, .gradSmoothing = 0.1}), {kLoss, kGrad});
}

TEST_P(FusedCrossEntropy, RefusesOtherLogitsAndResultsInOtherPlaces) {
  EXPECT_TRUE(hasKernel(make({.gradAt = kLogits})));
  EXPECT_FALSE(hasKernel(make({.gradAt = kGrad, .logitsOfGrad = kOthers})));
  EXPECT_FALSE(hasKernel(make({.gradAt = kLabels})));
  EXPECT_FALSE(hasKernel(make({.gradAt = kNumber})));
  // The broadcast value has other readers.
  Calls calls = make({.gradAt = kLogits});
  calls.keep(kDloss);
  EXPECT_FALSE(hasKernel(calls));
}

/// An activation function whose result another tensor multiplies, forward and backward.
class GatedActivation : public testing::FusedCallsTest {
protected:
  struct Function {
    std::string name;
    AttributeMap attributes;
  };
  const std::vector<Function> functions = {{"silu", {}},
                                           {"gelu", {{"approximate", std::string("tanh")}}},
                                           {"gelu", {{"approximate", std::string("none")}}}};

  /// x, gate, act, out; `width` is of rows that are read 16 bytes at a time, or is not.
  Calls forward(const Function &function, size_t outAt, int64_t width) {
    Calls calls(mesh);
    TensorType matrix = type({5, width});
    for (int i = 0; i < 3; ++i)
      calls.value(matrix);
    calls.valueAt(outAt, matrix);
    calls.call(function.name, {0}, {2}, function.attributes);
    calls.call("mul", {2, 1}, {3});
    calls.keep(3);
    return calls;
  }

  /// dout, gate, act, x, dact, dgate, dx. `order` names the calls by results: "a" is dact, "g"
  /// dgate, "x" dx.
  Calls backward(const Function &function, const std::string &order, size_t dactAt = 4,
                 size_t dgateAt = 5, size_t dxAt = 6) {
    Calls calls(mesh);
    TensorType matrix = type({5, 24});
    for (int i = 0; i < 4; ++i)
      calls.value(matrix);
    for (size_t at : {dactAt, dgateAt, dxAt})
      calls.valueAt(at, matrix);
    for (char call : order) {
      if (call == 'a')
        calls.call("mul", {0, 1}, {4});
      else if (call == 'g')
        calls.call("mul", {2, 0}, {5});
      else
        calls.call(function.name + "_grad", {3, 4}, {6}, function.attributes);
    }
    for (char call : order)
      if (call != 'a' || order.find('x') == std::string::npos)
        calls.keep(call == 'a' ? 4 : call == 'g' ? 5 : 6);
    return calls;
  }
};
INSTANTIATE_TEST_SUITE_P(Types, GatedActivation, kTypes, nameOf);

TEST_P(GatedActivation, HasTheBitsOfTheCallsForward) {
  for (const Function &function : functions)
    for (int64_t width : {24, 3})
      for (size_t outAt : {0, 1, 2, 3}) {
        Calls calls = forward(function, outAt, width);
        expectBits(calls, {3});
        if (outAt != 2) {
          calls.keep(2);
          expectBits(calls, {2, 3});
        }
      }
}

TEST_P(GatedActivation, HasTheBitsOfTheCallsBackward) {
  for (const Function &function : functions) {
    for (const char *order : {"agx", "gax", "axg"}) {
      expectBits(backward(function, order), {5, 6});
      Calls calls = backward(function, order);
      calls.keep(4);
      expectBits(calls, {4, 5, 6});
    }
    expectBits(backward(function, "ax"), {6});
    expectBits(backward(function, "ag"), {4, 5});
    expectBits(backward(function, "ga"), {4, 5});
  }
}

TEST_P(GatedActivation, ResultsLieInThePlacesOfOperands) {
  for (const Function &function : functions) {
    expectBits(backward(function, "agx", /*dactAt=*/4, /*dgateAt=*/0, /*dxAt=*/4), {5, 6});
    expectBits(backward(function, "agx", /*dactAt=*/1, /*dgateAt=*/2, /*dxAt=*/3), {5, 6});
    expectBits(backward(function, "agx", /*dactAt=*/1, /*dgateAt=*/0, /*dxAt=*/1), {5, 6});
  }
}

TEST_P(GatedActivation, FindsTheLargestMagnitudesOfItsResults) {
  for (const Function &function : functions) {
    for (int64_t width : {24, 3, 199}) { // also of several blocks
      Calls calls = forward(function, 3, width);
      calls.placeBytes = 8192;
      size_t largest = calls.value(wide({}));
      calls.call("largest_magnitude", {3}, {largest});
      calls.keep(largest);
      expectBits(calls, {3, largest});
    }
    for (const char *order : {"agx", "gax", "axg"}) {
      Calls calls = backward(function, order);
      size_t ofGate = calls.value(wide({})), ofX = calls.value(wide({}));
      calls.call("largest_magnitude", {5}, {ofGate});
      calls.keep(ofGate);
      expectBits(calls, {5, 6, ofGate});
      calls.call("largest_magnitude", {6}, {ofX});
      calls.keep(ofX);
      expectBits(calls, {5, 6, ofGate, ofX});
    }
  }
}

TEST_P(GatedActivation, RefusesTheLargestMagnitudeOfSomethingElseOrInThePlaceOfAnOperand) {
  auto isFused = [&](size_t of, size_t at) {
    Calls calls = backward(functions[0], "agx");
    size_t largest = at < 7 ? calls.valueAt(at, wide({})) : calls.value(wide({}));
    calls.call("largest_magnitude", {of}, {largest});
    calls.keep(largest);
    return hasKernel(calls);
  };
  EXPECT_TRUE(isFused(5, 7));
  EXPECT_FALSE(isFused(4, 7)); // which is not written
  EXPECT_FALSE(isFused(0, 7));
  EXPECT_FALSE(isFused(5, 0));
}

TEST_P(GatedActivation, RefusesWhatIsNoGate) {
  const Function &silu = functions[0];
  EXPECT_TRUE(hasKernel(forward(silu, 3, 24)));
  {
    Calls squared(mesh);
    for (int i = 0; i < 3; ++i)
      squared.value(type({4, 8}));
    squared.call("silu", {0}, {1});
    squared.call("mul", {1, 1}, {2});
    EXPECT_FALSE(hasKernel(squared));
  }
  {
    Calls row(mesh); // the gate is one row
    row.value(type({4, 8}));
    row.value(type({8}));
    row.value(type({4, 8}));
    row.value(type({4, 8}));
    row.call("silu", {0}, {2});
    row.call("mul", {2, 1}, {3}, {{"rhs_dims", std::vector<int64_t>{1}}});
    EXPECT_FALSE(hasKernel(row));
  }
  {
    Calls apart(mesh); // two products that share no operand
    for (int i = 0; i < 6; ++i)
      apart.value(type({4, 8}));
    apart.call("mul", {0, 1}, {4});
    apart.call("mul", {2, 3}, {5});
    EXPECT_FALSE(hasKernel(apart));
  }
  {
    Calls other(mesh); // the gradient is of what neither product makes
    for (int i = 0; i < 6; ++i)
      other.value(type({4, 8}));
    other.call("mul", {0, 1}, {4});
    other.call("silu_grad", {4, 2}, {5});
    EXPECT_FALSE(hasKernel(other));
  }
}

/// The update of a parameter and its conversion to 16 bits.
class ConvertedUpdate : public testing::FusedCallsTest {
protected:
  /// p, g, the moments, lr, step, grad_scale, apply, then the results in the places of p and the
  /// moments, and the parameter in 16 bits.
  Calls make(const std::string &kernel, DType to, int64_t count = 48,
             std::optional<size_t> convertedAt = std::nullopt) {
    bool isAdam = kernel.starts_with("adam");
    size_t moments = isAdam ? 2 : 1;
    Calls calls(mesh);
    std::vector<size_t> inputs, outputs;
    for (size_t i = 0; i < 2 + moments; ++i)
      inputs.push_back(calls.value(wide({count})));
    for (size_t i = 0; i < (isAdam ? 3u : 2u); ++i)
      inputs.push_back(calls.value(wide({})));
    inputs.push_back(calls.value({DType::Bool, {}}));
    for (size_t place : {0u, 2u, 3u})
      if (place < 2 + moments)
        outputs.push_back(calls.valueAt(place, wide({count})));
    converted = calls.types.size();
    calls.valueAt(convertedAt.value_or(converted), {to, {count}});
    AttributeMap attributes = {{"weight_decay", 0.1}};
    if (kernel != "sgd") {
      attributes["beta1"] = 0.9;
      attributes["beta2"] = 0.99;
    }
    if (isAdam)
      attributes["eps"] = 1e-8;
    if (kernel == "sgd")
      attributes["momentum"] = 0.9;
    calls.call(kernel, inputs, outputs, attributes);
    calls.call("convert", {outputs[0]}, {converted});
    kept = outputs;
    kept.push_back(converted);
    for (size_t value : kept)
      calls.keep(value);
    return calls;
  }
  size_t converted = 0;
  std::vector<size_t> kept;
};
INSTANTIATE_TEST_SUITE_P(Types, ConvertedUpdate, ::testing::Values(DType::BF16, DType::F16),
                         nameOf);

TEST_P(ConvertedUpdate, HasTheBitsOfTheCalls) {
  for (const char *kernel : {"adamw", "adam", "sgd", "lion"})
    for (int64_t count : {48, 37}) {
      Calls calls = make(kernel, GetParam(), count);
      expectBits(calls, kept);
    }
}

TEST_P(ConvertedUpdate, RefusesAConversionOfSomethingElseOrInThePlaceOfAnOperand) {
  EXPECT_TRUE(hasKernel(make("adamw", GetParam())));
  EXPECT_FALSE(hasKernel(make("adamw", GetParam(), 48, /*convertedAt=*/1)));
  EXPECT_FALSE(hasKernel(make("adamw", DType::F64)));
}

} // namespace

} // namespace dtc::runtime::fusedCallsTest
