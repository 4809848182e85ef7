//===- RandomPipeline.h - Small random models in stages -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_RANDOM_RANDOMPIPELINE_H
#define DTC_TEST_RANDOM_RANDOMPIPELINE_H

#include "compiler/driver/PassPipeline.h"

#include <cstdint>
#include <map>
#include <string>

namespace dtc::test {

/// A random @loss of f64 whose data has a batch, with skip connections, several towers, and widths
/// that differ from op to op, and a pipeline for it: up to 8 devices with links and devices of
/// random speeds, from which the stages and the order of transfers follow. Pairs of devices may
/// share the batch or be tensor-parallel.
struct RandomPipeline {
  std::string loss;
  std::map<std::string, int64_t> indexLimits; ///< for each input of indices
  CompileOptions options;

  /// "pp=3,dp=2 m=5 zero=1 schedule=zb-v chunks=2", with links and speeds.
  std::string describe() const;
};

/// The pipeline of a seed.
RandomPipeline makeRandomPipeline(uint64_t seed);

} // namespace dtc::test

#endif // DTC_TEST_RANDOM_RANDOMPIPELINE_H
