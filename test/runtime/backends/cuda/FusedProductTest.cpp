//===- FusedProductTest.cpp - Calls that are computed together ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/cuda/FusedCallsFixture.h"

#include <cmath>

namespace dtc::runtime::fusedProductTest {

namespace {

using testing::Calls;

class FusedProduct : public testing::FusedCallsTest {
protected:
  /// One launch gives the kept values that the calls give one by one; without epilogues the bits.
  void expectEqual(Calls &calls, const std::vector<size_t> &kept, int64_t microbatch = 0,
                   uint64_t expectedLaunches = 1) {
    for (size_t value : kept)
      calls.keep(value);
    std::vector<std::byte> single = runOneByOne(calls, microbatch);
    std::vector<std::byte> fused = runFused(calls, microbatch);
    ASSERT_EQ(fused.size(), single.size());
    EXPECT_EQ(launches, expectedLaunches);
    for (size_t value : kept) {
      bool isNarrow = calls.types[value].dtype == DType::BF16;
      for (int64_t i = 0; i < calls.types[value].numElements(); ++i) {
        double expected = elementOf(calls, single, value, i);
        ASSERT_NEAR(elementOf(calls, fused, value, i), expected,
                    (isNarrow ? 0x1p-6 : 1e-5) * std::max(1.0, std::abs(expected)))
            << "value " << value << ", element " << i;
      }
    }
    standin::Settings settings;
    settings.epilogues = standin::Epilogues::WithoutAlgorithm;
    standin::reset(settings);
    std::vector<std::byte> fallback = runFused(calls, microbatch);
    for (size_t value : kept)
      EXPECT_EQ(std::memcmp(fallback.data() + calls.places[value] * calls.placeBytes,
                            single.data() + calls.places[value] * calls.placeBytes,
                            calls.types[value].numBytes()),
                0)
          << value;
    standin::reset();
  }
};

const AttributeMap kAlongRows = {{"rhs_dims", std::vector<int64_t>{2}}};
const AttributeMap kTanh = {{"approximate", std::string("tanh")}};
AttributeMap equation(const std::string &text) { return {{"equation", text}}; }
AttributeMap sumOver(std::vector<int64_t> dims) {
  return {{"kind", std::string("sum")}, {"dims", std::move(dims)}};
}

/// x [2, 3, 8] times w [8, 16].
struct Forward {
  Calls calls;
  size_t x, w, product;
  Forward(const std::vector<AxisCoordinate> &mesh, DType dtype) : calls(mesh) {
    x = calls.value({dtype, {2, 3, 8}});
    w = calls.value({dtype, {8, 16}});
    product = calls.value({dtype, {2, 3, 16}});
    calls.call("einsum", {x, w}, {product}, equation("bsd,df->bsf"));
  }
};

TEST_P(FusedProduct, AddsABias) {
  Forward forward(mesh, GetParam());
  Calls &calls = forward.calls;
  size_t bias = calls.value(type({16})), sum = calls.valueAt(forward.product, type({2, 3, 16}));
  calls.call("add", {forward.product, bias}, {sum}, kAlongRows);
  expectEqual(calls, {sum});
}

TEST_P(FusedProduct, AddsABiasAndAMatrixInWhosePlaceTheSumIs) {
  Forward forward(mesh, GetParam());
  Calls &calls = forward.calls;
  size_t bias = calls.value(type({16})), sum = calls.valueAt(forward.product, type({2, 3, 16})),
         residual = calls.value(type({2, 3, 16})),
         total = calls.valueAt(residual, type({2, 3, 16}));
  calls.call("add", {forward.product, bias}, {sum}, kAlongRows);
  calls.call("add", {residual, sum}, {total});
  expectEqual(calls, {total});
}

TEST_P(FusedProduct, ComputesAGelu) {
  for (bool isKept : {false, true}) {
    Forward forward(mesh, GetParam());
    Calls &calls = forward.calls;
    size_t bias = calls.value(type({16})), sum = calls.valueAt(forward.product, type({2, 3, 16})),
           gelu = calls.value(type({2, 3, 16}));
    calls.call("add", {forward.product, bias}, {sum}, kAlongRows);
    calls.call("gelu", {sum}, {gelu}, kTanh);
    expectEqual(calls, isKept ? std::vector{sum, gelu} : std::vector{gelu});
  }
}

TEST_P(FusedProduct, ComputesTheGradientOfAGelu) {
  Calls calls(mesh);
  size_t dy = calls.value(type({2, 3, 8})), w = calls.value(type({16, 8})),
         x = calls.value(type({2, 3, 16})), product = calls.value(type({2, 3, 16})),
         dx = calls.valueAt(product, type({2, 3, 16}));
  calls.call("einsum", {dy, w}, {product}, equation("bsd,fd->bsf"));
  calls.call("gelu_grad", {x, product}, {dx}, kTanh);
  expectEqual(calls, {dx});
}

TEST_P(FusedProduct, SumsTheGradientOfABias) {
  // The gradient is the right or the left operand, and its sum comes before or after the product.
  for (bool isRight : {false, true}) {
    Calls calls(mesh);
    size_t x = calls.value(type({2, 3, 8})), dy = calls.value(type({2, 3, 2, 4})),
           dw = calls.value(
               wide(isRight ? std::vector<int64_t>{8, 2, 4} : std::vector<int64_t>{2, 4, 8})),
           db = calls.value(wide({2, 4}));
    if (isRight)
      calls.call("reduce", {dy}, {db}, sumOver({0, 1}));
    calls.call("einsum", {isRight ? x : dy, isRight ? dy : x}, {dw},
               equation(isRight ? "bsd,bshe->dhe" : "bshe,bsd->hed"));
    if (!isRight)
      calls.call("reduce", {dy}, {db}, sumOver({0, 1}));
    expectEqual(calls, {dw, db});
  }
}

TEST_P(FusedProduct, IsAddedFromTheSecondMicrobatchOn) {
  for (int64_t microbatch : {0, 2}) {
    Calls calls(mesh);
    size_t x = calls.value(type({6, 8})), dy = calls.value(type({6, 16})),
           dw = calls.value(wide({8, 16})), db = calls.value(wide({16})),
           sum = calls.value(wide({8, 16}));
    calls.call("einsum", {x, dy}, {dw}, equation("kd,kf->df"));
    calls.call("reduce", {dy}, {db}, sumOver({0}));
    calls.call("accumulate", {dw}, {sum}, {{"axis", std::string("micro")}});
    expectEqual(calls, {sum, db}, microbatch);
  }
}

TEST_P(FusedProduct, ReadsSlicesWhereTheyAre) {
  Calls calls(mesh);
  size_t x = calls.value(type({2, 3, 8})), weights = calls.value(type({8, 3, 2, 8})),
         biases = calls.value(type({3, 2, 8})), w = calls.value(type({8, 1, 2, 8})),
         bias = calls.value(type({1, 2, 8})), product = calls.value(type({2, 3, 2, 8})),
         sum = calls.valueAt(product, type({2, 3, 2, 8}));
  calls.call("slice", {weights}, {w}, {{"offsets", std::vector<int64_t>{0, 1, 0, 0}}});
  calls.call("slice", {biases}, {bias}, {{"offsets", std::vector<int64_t>{2, 0, 0}}});
  calls.types[w] = type({8, 2, 8}); // a view
  calls.types[bias] = type({2, 8});
  calls.call("einsum", {x, w}, {product}, equation("bsd,dhe->bshe"));
  calls.call("add", {product, bias}, {sum}, {{"rhs_dims", std::vector<int64_t>{2, 3}}});
  expectEqual(calls, {sum});
}

/// f32 has 13 bits less in a product's operands then, and nothing else changes.
TEST_P(FusedProduct, RoundsOperandsToTf32WhereThatIsAskedFor) {
  for (bool hasBias : {false, true}) {
    Forward forward(mesh, GetParam());
    Calls &calls = forward.calls;
    size_t result = forward.product;
    if (hasBias) {
      size_t bias = calls.value(type({16}));
      result = calls.value(type({2, 3, 16}));
      calls.call("add", {forward.product, bias}, {result}, kAlongRows);
    }
    calls.keep(result);
    auto compute = [&] { return hasBias ? runFused(calls) : runOneByOne(calls); };
    backend = createCudaBackend();
    std::vector<std::byte> exact = compute();
    backend = createCudaBackend({.usesTf32 = true});
    std::vector<std::byte> rounded = compute();
    double largest = 0;
    for (int64_t i = 0; i < 96; ++i)
      largest = std::max(largest, std::abs(elementOf(calls, rounded, result, i) -
                                           elementOf(calls, exact, result, i)));
    if (GetParam() == DType::F32) {
      EXPECT_GT(largest, 0x1p-16);
      EXPECT_LT(largest, 8 * 0x1p-10); // eight products of elements in [-1, 1)
    } else {
      EXPECT_EQ(largest, 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, FusedProduct, ::testing::Values(DType::F32, DType::BF16),
                         [](const auto &info) { return std::string(name(info.param)); });

/// Calls that look alike and are something else.
class FusedProductRefuses : public FusedProduct {};
INSTANTIATE_TEST_SUITE_P(Types, FusedProductRefuses, ::testing::Values(DType::F32));

TEST_P(FusedProductRefuses, AProductThatIsReadElsewhere) {
  Forward forward(mesh, GetParam());
  Calls &calls = forward.calls;
  size_t bias = calls.value(type({16})), sum = calls.value(type({2, 3, 16}));
  calls.call("add", {forward.product, bias}, {sum}, kAlongRows);
  calls.keep(sum);
  EXPECT_TRUE(hasKernel(calls));
  calls.keep(forward.product);
  EXPECT_FALSE(hasKernel(calls));
}

TEST_P(FusedProductRefuses, AResultInThePlaceOfAnOperand) {
  Forward forward(mesh, GetParam());
  Calls &calls = forward.calls;
  size_t bias = calls.value(type({16})), sum = calls.valueAt(forward.x, type({2, 3, 16}));
  calls.call("add", {forward.product, bias}, {sum}, kAlongRows);
  calls.keep(sum);
  EXPECT_FALSE(hasKernel(calls));
}

TEST_P(FusedProductRefuses, WhatIsNoEpilogue) {
  auto refuses = [&](const std::string &kernel, const TensorType &other, AttributeMap attributes,
                     bool isFirst = false) {
    Forward forward(mesh, GetParam());
    Calls &calls = forward.calls;
    size_t operand = calls.value(other), out = calls.value(type({2, 3, 16}));
    calls.call(kernel,
               isFirst ? std::vector{forward.product, operand}
                       : std::vector{operand, forward.product},
               {out}, std::move(attributes));
    calls.keep(out);
    return !hasKernel(calls);
  };
  // A column of its own, the middle dimension, another operation, GELU by erf.
  EXPECT_TRUE(refuses("add", type({2, 3}), {{"lhs_dims", std::vector<int64_t>{0, 1}}}));
  EXPECT_TRUE(refuses("add", type({3}), {{"lhs_dims", std::vector<int64_t>{1}}}));
  EXPECT_TRUE(refuses("mul", type({2, 3, 16}), {}));
  EXPECT_TRUE(refuses("gelu_grad", type({2, 3, 16}), {{"approximate", std::string("none")}}));
  // The product is what the GELU is of, not its gradient.
  EXPECT_TRUE(refuses("gelu_grad", type({2, 3, 16}), kTanh, /*isFirst=*/true));
  EXPECT_FALSE(refuses("gelu_grad", type({2, 3, 16}), kTanh));
}

TEST_P(FusedProductRefuses, SumsOverOtherDimensions) {
  for (const std::vector<int64_t> &dims : {std::vector<int64_t>{0}, {1, 2}, {0, 1, 2}}) {
    Calls calls(mesh);
    size_t x = calls.value(type({2, 16, 8})), dy = calls.value(type({2, 16, 16})),
           dw = calls.value(type({8, 16})),
           db = calls.value(type(dims.size() == 1   ? std::vector<int64_t>{16, 16}
                                 : dims.size() == 2 ? std::vector<int64_t>{2}
                                                    : std::vector<int64_t>{}));
    calls.call("reduce", {dy}, {db}, sumOver(dims));
    calls.call("einsum", {x, dy}, {dw}, equation("bsd,bsf->df"));
    calls.keep(dw);
    calls.keep(db);
    EXPECT_FALSE(hasKernel(calls)) << dims.size();
  }
}

TEST_P(FusedProductRefuses, OtherProducts) {
  TensorType square = type({4, 4}), row = type({4});
  auto isFused = [&](const std::string &text, const TensorType &out) {
    Calls calls(mesh);
    size_t a = calls.value(square), b = calls.value(square), c = calls.value(out),
           sum = calls.value(out);
    calls.call("einsum", {a, b}, {c}, equation(text));
    calls.call("accumulate", {c}, {sum}, {{"axis", std::string("micro")}});
    calls.keep(sum);
    return hasKernel(calls);
  };
  EXPECT_TRUE(isFused("ij,jk->ik", square));
  // Elements, and dots.
  EXPECT_FALSE(isFused("ij,ij->ij", square));
  EXPECT_FALSE(isFused("ij,ij->i", row));
  // A bias in f64.
  Forward forward(mesh, DType::F64);
  size_t bias = forward.calls.value({DType::F64, {16}}),
         sum = forward.calls.value({DType::F64, {2, 3, 16}});
  forward.calls.call("add", {forward.product, bias}, {sum}, kAlongRows);
  forward.calls.keep(sum);
  EXPECT_FALSE(hasKernel(forward.calls));
}

/// Products of operands of 8 bits; the parameter is the type of the left one.
class FusedScaledProduct : public FusedProduct {
protected:
  /// x [2, 16, 32] times w [48, 32], which lies along the summed dimension, or w [32, 48].
  struct Product {
    Calls calls;
    size_t x, w, product;
    Product(const std::vector<AxisCoordinate> &mesh, DType left, bool isAlongSum = true,
            DType out = DType::BF16)
        : calls(mesh) {
      calls.placeBytes = 8192;
      x = calls.value({left, {2, 16, 32}});
      w = calls.value({DType::F8E4M3,
                       isAlongSum ? std::vector<int64_t>{48, 32} : std::vector<int64_t>{32, 48}});
      size_t scaleX = calls.value(wide({})), scaleW = calls.value(wide({}));
      product = calls.value({out, {2, 16, 48}});
      calls.call("scaled_product", {x, w, scaleX, scaleW}, {product},
                 equation(isAlongSum ? "bsd,fd->bsf" : "bsd,df->bsf"));
    }
    size_t result() { return calls.value(calls.types[product]); }
  };
};

TEST_P(FusedScaledProduct, AddsABiasAndAMatrix) {
  for (bool isAlongSum : {true, false}) {
    Product product(mesh, GetParam(), isAlongSum);
    Calls &calls = product.calls;
    size_t bias = calls.value({DType::BF16, {48}}), sum = product.result(),
           residual = product.result(), total = calls.valueAt(residual, calls.types[sum]);
    calls.call("add", {product.product, bias}, {sum}, kAlongRows);
    calls.call("add", {residual, sum}, {total});
    // A matrix in another order is copied first.
    expectEqual(calls, {total}, 0, isAlongSum ? 1 : 2);
  }
}

TEST_P(FusedScaledProduct, ComputesAGelu) {
  for (bool isKept : {false, true}) {
    Product product(mesh, GetParam());
    Calls &calls = product.calls;
    size_t bias = calls.value({DType::BF16, {48}}), sum = product.result(), gelu = product.result();
    calls.call("add", {product.product, bias}, {sum}, kAlongRows);
    calls.call("gelu", {sum}, {gelu}, kTanh);
    expectEqual(calls, isKept ? std::vector{sum, gelu} : std::vector{gelu});
  }
}

TEST_P(FusedScaledProduct, IsAddedFromTheSecondMicrobatchOn) {
  for (int64_t microbatch : {0, 2}) {
    Product product(mesh, GetParam(), true, DType::F32);
    size_t sum = product.result();
    product.calls.call("accumulate", {product.product}, {sum}, {{"axis", std::string("micro")}});
    expectEqual(product.calls, {sum}, microbatch);
  }
}

TEST_P(FusedScaledProduct, RefusesWhatCublasLtHasNot) {
  auto refuses = [&](const std::string &kernel, DType out, std::vector<int64_t> shape,
                     AttributeMap attributes) {
    Product product(mesh, GetParam(), true, out);
    Calls &calls = product.calls;
    size_t operand = calls.value({out, std::move(shape)}), result = product.result();
    if (kernel == "add")
      calls.call(kernel, {product.product, operand}, {result}, std::move(attributes));
    else
      calls.call(kernel, {operand, product.product}, {result}, std::move(attributes));
    calls.keep(result);
    return !hasKernel(calls);
  };
  EXPECT_FALSE(refuses("add", DType::BF16, {48}, kAlongRows));
  EXPECT_TRUE(refuses("add", DType::F32, {48}, kAlongRows));
  EXPECT_FALSE(refuses("add", DType::F32, {2, 16, 48}, {}));
  EXPECT_TRUE(refuses("gelu_grad", DType::BF16, {2, 16, 48}, kTanh));
}

TEST_P(FusedScaledProduct, RefusesAResultInThePlaceOfAScale) {
  Product product(mesh, GetParam());
  Calls &calls = product.calls;
  size_t residual = product.result(), total = calls.valueAt(product.w + 1, calls.types[residual]);
  calls.call("add", {residual, product.product}, {total});
  calls.keep(total);
  EXPECT_FALSE(hasKernel(calls));
}

INSTANTIATE_TEST_SUITE_P(Types, FusedScaledProduct, ::testing::Values(DType::F8E4M3, DType::F8E5M2),
                         [](const auto &info) { return std::string(name(info.param)); });

} // namespace

} // namespace dtc::runtime::fusedProductTest
