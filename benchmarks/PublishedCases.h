//===- PublishedCases.h - Published configurations and times --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_BENCHMARKS_PUBLISHEDCASES_H
#define DTC_BENCHMARKS_PUBLISHEDCASES_H

#include "support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dtc::benchmarks {

/// A model, how it is trained, and what somebody measured. The fields are the columns of the table,
/// which calls them as here with "_" between the words.
struct PublishedCase {
  int64_t line = 0; ///< of the table
  std::string name;
  /// The path of a config.json, from the folder of the table, or a family: gpt2 or llama.
  std::string config = "gpt2";
  /// Sizes that the configuration lacks, or has otherwise; 0: the configuration's.
  int64_t heads = 0, kvHeads = 0, hidden = 0, mlp = 0, layers = 0, vocab = 0;
  int64_t seq = 2048;
  int64_t batch = 0; ///< of a step, over all devices; 0: one microbatch of each
  int64_t microbatch = 1, tp = 1, pp = 1, dp = 1;
  int64_t chunks = 0; ///< stages of each device; 0: as few as the schedule has
  std::string schedule = "1f1b";
  bool sequenceParallel = false;
  int64_t zero = 0;
  std::string recompute = "none", attention = "fused", dtype = "bf16", optimizer = "adamw";
  bool dropout = true;
  /// The plan to predict: dtc's own, or the same with the differences of Megatron-LM at the time of
  /// its measurements, "megatron-lm-2022": see computeForwardAgain, computeAttentionToItsEnd,
  /// overlapWithinLayers, scatterTransfers, storedMaskBytes, addMaskTraffic and addGradientKernels.
  std::string executedBy = "dtc";
  /// As dtc-compile takes them; empty: as many layers on each, if `equalStages` and that can be.
  std::string stages;
  bool equalStages = true;
  std::optional<double> measuredSeconds; ///< of a step
  /// The memory of the first device, in GiB: parameters with all that belongs to them (the repeated
  /// layers' alone, if `stateOfLayers`), and activations.
  std::optional<double> measuredStateGib, measuredActivationGib;
  bool stateOfLayers = false;
  /// The time of one layer for one microbatch, in milliseconds; the backward pass includes
  /// recomputation.
  std::optional<double> measuredForwardMs, measuredBackwardMs;
  std::string source;

  bool isMegatron() const { return executedBy != "dtc"; }
  int64_t devices() const { return tp * pp * dp; }
  int64_t microbatches() const { return batch / (dp * microbatch); }
};

/// Reads a table: lines of values between commas, in double quotes where they hold commas. The
/// first line names the columns. Empty lines and those that begin with # do not count. Columns
/// that are missing and values that are empty have the defaults above. An error names the line and
/// the column.
Expected<std::vector<PublishedCase>> parsePublishedCases(const std::string &text);

} // namespace dtc::benchmarks

#endif // DTC_BENCHMARKS_PUBLISHEDCASES_H
