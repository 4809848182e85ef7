//===- Sampler.cpp - Sampling of tokens from logits -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/generate/Sampler.h"

#include "support/Philox.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace dtc::runtime {

/// A number in [0, 1) for a token of a sequence.
static double draw(uint64_t seed, int64_t sequence, int64_t position) {
  // The constant sets these numbers apart from other uses of the seed.
  PhiloxKey key = philoxKey(seed ^ 0x73616d70'6c746f6b);
  PhiloxCounter words = philox4x32(
      philoxCounter(static_cast<uint64_t>(position), static_cast<uint64_t>(sequence)), key);
  uint64_t bits = (words[0] | uint64_t{words[1]} << 32) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

int32_t sampleToken(std::span<const double> logits, int64_t sequence, int64_t position,
                    const SamplerOptions &options) {
  auto isMoreLikely = [&](int32_t a, int32_t b) {
    double x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    if (std::isnan(x) || std::isnan(y))
      return std::isnan(x) == std::isnan(y) ? a < b : std::isnan(y);
    return x != y ? x > y : a < b;
  };
  std::vector<int32_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  if (options.temperature == 0)
    return *std::min_element(tokens.begin(), tokens.end(), isMoreLikely);
  size_t kept = tokens.size();
  if (options.topK > 0)
    kept = std::min(kept, static_cast<size_t>(options.topK));
  std::partial_sort(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(kept),
                    tokens.end(), isMoreLikely);
  tokens.resize(kept);
  double largest = logits[static_cast<size_t>(tokens.front())];
  std::vector<double> sums; // of the weights up to each token
  double sum = 0;
  for (int32_t token : tokens) {
    double weight = std::exp((logits[static_cast<size_t>(token)] - largest) / options.temperature);
    sums.push_back(sum += std::isnan(weight) ? 0 : weight);
  }
  auto chosen =
      std::upper_bound(sums.begin(), sums.end(), draw(options.seed, sequence, position) * sum);
  auto index = std::min<size_t>(static_cast<size_t>(chosen - sums.begin()), kept - 1);
  return tokens[index];
}

} // namespace dtc::runtime
