//===- TrainingArguments.h - Arguments of a training benchmark ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_BENCHMARKS_TRAININGARGUMENTS_H
#define DTC_BENCHMARKS_TRAININGARGUMENTS_H

#include "compiler/import/ImportModel.h"
#include "tools/CommandLine.h"

#include <string>

namespace dtc::benchmarks {

struct TrainingArguments {
  std::string config;
  int64_t batch = 1;
  int64_t seq = 1;
  int steps = 8;
  int threads = 2;

  /// Adds an option for each; the present values are the defaults.
  void addTo(CLI::App &app, const std::string &aboutThreads) {
    app.add_option("--config", config, "A Hugging Face config.json")->capture_default_str();
    app.add_option("--batch", batch, "Sequences in a batch")
        ->check(CLI::Range(int64_t{1}, kMaxTokens))
        ->capture_default_str();
    app.add_option("--seq", seq, "Tokens in a sequence")
        ->check(CLI::Range(int64_t{1}, kMaxTokens))
        ->capture_default_str();
    app.add_option("--steps", steps, "Steps that count; one more runs before them")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--threads", threads, aboutThreads)
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
  }
};

} // namespace dtc::benchmarks

#endif // DTC_BENCHMARKS_TRAININGARGUMENTS_H
