//===- ReshardReference.h - Reference implementation of reshards ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Slow and simple counterparts of the reshard planner. Nothing here uses its code.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_COMPILER_ANALYSIS_RESHARDREFERENCE_H
#define DTC_TEST_COMPILER_ANALYSIS_RESHARDREFERENCE_H

#include "compiler/analysis/ReshardSteps.h"

#include <string>

namespace dtc::testing {

struct ReshardCase {
  LinkedMesh mesh;
  int64_t elementBytes = 4;
  std::vector<int64_t> shape;
  Layout from, to;

  std::string str() const;
};

/// Carries out the steps on the blocks of all devices (each microbatch counts as a device), as the
/// runtime would: padding has no value, and elements of a partial tensor are terms of a sum.
/// Returns what is wrong with the blocks at the end, or an empty string.
std::string simulate(const ReshardCase &c, llvm::ArrayRef<ReshardStep> steps);

/// The seconds of completing all sums, gathering everything and slicing.
double gatherThenSliceSeconds(const ReshardCase &c);

/// The least seconds of all sequences of steps, over all layouts; infinite where there is none.
double leastSeconds(const ReshardCase &c);

} // namespace dtc::testing

#endif // DTC_TEST_COMPILER_ANALYSIS_RESHARDREFERENCE_H
