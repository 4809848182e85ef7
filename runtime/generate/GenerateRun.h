//===- GenerateRun.h - Runs a plan that generates tokens ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_GENERATE_GENERATERUN_H
#define DTC_RUNTIME_GENERATE_GENERATERUN_H

#include "runtime/generate/Generator.h"
#include "runtime/train/TrainOptions.h"

#include <cstdio>
#include <string>
#include <vector>

namespace dtc::runtime {

/// The request to dtc-run for prompts.
struct GenerateOptions {
  /// A file each, as TokenFile reads them.
  std::vector<std::string> promptPaths;
  /// A JSON object for each prompt: "prompt" and "tokens", lists of tokens. Empty: none.
  std::string tokensPath;
  /// No sequence ends after the tokens that end a text of the model; see findStopTokens(). With
  /// stop tokens of the generator, these alone end one.
  bool ignoresEos = false;
  GeneratorOptions generator;
};

/// Loads the plan and the weights, continues the prompts, and prints each with its continuation to
/// `out`: as text where the prompt is text, else as numbers. The options of `run` that concern
/// training are ignored.
MaybeError generate(const TrainOptions &run, const GenerateOptions &options,
                    std::shared_ptr<const Backend> backend, std::FILE *out, std::FILE *notes,
                    const std::atomic<bool> &stop);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_GENERATE_GENERATERUN_H
