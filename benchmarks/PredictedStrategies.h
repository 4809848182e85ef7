//===- PredictedStrategies.h - Predicted and measured strategies ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_BENCHMARKS_PREDICTEDSTRATEGIES_H
#define DTC_BENCHMARKS_PREDICTEDSTRATEGIES_H

#include "compiler/driver/PassPipeline.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dtc::benchmarks {

/// A model that is small enough for virtual devices, and its batch.
struct PredictedModel {
  std::string name, config; ///< a folder of examples/
  int64_t batch = 0, seq = 0;
};

std::vector<PredictedModel> predictedModels();

/// Strategies of these models on one to eight devices, as a search for the best one goes through
/// them: each kind of parallelism on its own and with others, all ZeRO stages, recomputation,
/// the schedules of pipelines, and several numbers of microbatches.
std::vector<CompileOptions> predictedStrategies();

} // namespace dtc::benchmarks

#endif // DTC_BENCHMARKS_PREDICTEDSTRATEGIES_H
