//===- Generator.h - Generation of tokens ---------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_GENERATE_GENERATOR_H
#define DTC_RUNTIME_GENERATE_GENERATOR_H

#include "runtime/executor/Session.h"
#include "runtime/generate/Sampler.h"

#include <atomic>
#include <vector>

namespace dtc::runtime {

struct GeneratorOptions {
  int64_t maxNewTokens = 64; // at least 1
  SamplerOptions sampler;
  /// A sequence ends after any of these tokens.
  std::vector<int32_t> stopTokens;
};

struct GeneratedText {
  /// The continuation of each prompt, the stop token included.
  std::vector<std::vector<int32_t>> tokens;
  int64_t decodeSteps = 0;
  double prefillSeconds = 0, decodeSeconds = 0;
};

/// Runs the programs of a plan of --mode generate.
class Generator {
public:
  /// The error says what the plan lacks.
  static Expected<Generator> create(Session &session);

  int64_t batch() const { return samples; }
  /// How many tokens there are to generate.
  int64_t vocabulary() const { return prefill.findOutput("logits")->shape(2); }
  /// The most tokens of a prompt with its continuation. The last token is in no cache.
  int64_t longest() const { return places + 1; }

  /// Goes on with the prompts, as many at once as the plan's batch has; `first` is the number of
  /// the first one: random numbers depend on it. None is empty. When `stop` becomes true, the
  /// tokens so far are returned.
  Expected<GeneratedText> run(const std::vector<std::vector<int32_t>> &prompts,
                              const GeneratorOptions &options, const std::atomic<bool> &stop);

private:
  Generator(Session &prefill, Session &decode) : prefill(prefill), decode(decode) {}
  struct Sequence; // that is being generated
  MaybeError runTogether(std::vector<Sequence> &sequences, const GeneratorOptions &options,
                         const std::atomic<bool> &stop, GeneratedText &text);
  MaybeError step(Session &session, HostTensor tokens, const HostTensor &positions);
  MaybeError sample(Session &session, std::vector<Sequence> &sequences,
                    const GeneratorOptions &options);

  Session &prefill, &decode;
  int64_t samples = 0, places = 0;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_GENERATE_GENERATOR_H
