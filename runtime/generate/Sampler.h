//===- Sampler.h - Sampling of tokens from logits -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_GENERATE_SAMPLER_H
#define DTC_RUNTIME_GENERATE_SAMPLER_H

#include <cstdint>
#include <span>

namespace dtc::runtime {

struct SamplerOptions {
  /// 0: the most likely token. T > 0: drawn from softmax(logits / T).
  double temperature = 0;
  /// Only this many of the most likely tokens are drawn; 0: all.
  int64_t topK = 0;
  uint64_t seed = 0;
};

/// Chooses a token. What is drawn depends on the options, the sequence, the position of the new
/// token in it and the logits alone: not on which sequences are generated together. Among equal
/// logits the lower token is the more likely one. `logits` is not empty; NaNs are never chosen
/// unless there is nothing else.
int32_t sampleToken(std::span<const double> logits, int64_t sequence, int64_t position,
                    const SamplerOptions &options);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_GENERATE_SAMPLER_H
