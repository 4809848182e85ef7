//===- NormAndLargestTest.cpp - Norms that find the largest magnitude ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/cuda/FusedCallsFixture.h"

#include <algorithm>

namespace dtc::runtime::normAndLargestTest {

namespace {

using testing::Calls;

/// A norm and the largest magnitude of what it makes.
class NormAndLargest : public testing::FusedCallsTest {
protected:
  /// The largest magnitude of value `of`, in the place of value `at`, or in a place of its own.
  Calls make(bool hasMean, int64_t rows, int64_t width, size_t of = kY,
             std::optional<size_t> at = std::nullopt) {
    Calls calls(mesh);
    TensorType matrix = type({rows, width});
    calls.placeBytes = std::max(calls.placeBytes, matrix.numBytes());
    calls.value(matrix);
    calls.value(type({width}));
    calls.value(type({width}));
    calls.value(matrix);
    calls.value(wide({rows}));
    calls.value(wide({rows}));
    size_t largest = at ? calls.valueAt(*at, wide({})) : calls.value(wide({}));
    AttributeMap eps = {{"eps", 1e-5}};
    if (hasMean)
      calls.call("layer_norm", {kX, kGamma, kBeta}, {kY, kMean, kRstd}, eps);
    else
      calls.call("rms_norm", {kX, kGamma}, {kY, kRstd}, eps);
    calls.call("largest_magnitude", {of}, {largest});
    for (size_t value : kept(hasMean))
      if (value != at)
        calls.keep(value);
    return calls;
  }
  static std::vector<size_t> kept(bool hasMean) {
    std::vector<size_t> values = {kY, kRstd, kLargest};
    if (hasMean)
      values.push_back(kMean);
    return values;
  }
  static constexpr size_t kX = 0, kGamma = 1, kBeta = 2, kY = 3, kMean = 4, kRstd = 5, kLargest = 6;
};
INSTANTIATE_TEST_SUITE_P(Types, NormAndLargest, ::testing::Values(DType::F32, DType::BF16),
                         [](const auto &info) { return std::string(name(info.param)); });

TEST_P(NormAndLargest, HasTheBitsOfTheCalls) {
  for (bool hasMean : {false, true}) {
    // Rows in vectors and not, and rows for which threads have no registers.
    for (auto [rows, width] : {std::pair(1, 8), {5, 24}, {7, 33}, {3, 20000}})
      expectBits(make(hasMean, rows, width), kept(hasMean));
  }
}

TEST_P(NormAndLargest, LiesInThePlaceOfWhatNothingReads) {
  for (auto [hasMean, at] : {std::pair(true, kMean), {true, kRstd}, {false, kRstd}})
    for (int64_t width : {24, 33, 20000}) {
      std::vector<size_t> others = kept(hasMean);
      std::erase(others, at);
      expectBits(make(hasMean, 5, width, kY, at), others);
    }
}

TEST_P(NormAndLargest, FindsANaN) {
  for (int64_t width : {24, 33, 20000}) {
    Calls calls = make(false, 5, width);
    // The root mean square of a row with an infinity is one, and 0 times that is no number.
    infiniteAt = static_cast<size_t>(3 * width);
    std::vector<std::byte> fused = runFused(calls);
    EXPECT_TRUE(std::isnan(elementOf(calls, fused, kLargest, 0))) << width;
  }
}

TEST_P(NormAndLargest, RefusesOtherTensorsAndPlaces) {
  EXPECT_TRUE(hasKernel(make(true, 5, 24)));
  EXPECT_FALSE(hasKernel(make(true, 5, 24, kX)));
  EXPECT_FALSE(hasKernel(make(true, 5, 24, kRstd)));
  EXPECT_FALSE(hasKernel(make(true, 5, 24, kY, kX)));
  EXPECT_FALSE(hasKernel(make(false, 1, 1, kY, kGamma)));
}

} // namespace

} // namespace dtc::runtime::normAndLargestTest
