//===- PeakValues.h - What lives at the peak of a device's memory -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_REPORT_PEAKVALUES_H
#define DTC_REPORT_PEAKVALUES_H

#include "plan/plan.pb.h"
#include "support/Kinds.h"
#include "support/Tensor.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dtc {

/// A tensor that is in the memory of a device at the moment of the peak.
struct PeakValue {
  BufferKind kind = BufferKind::Activation;
  TensorType type;
  std::string name; ///< of the state or the input; else the op that made it, "einsum"
  std::string
      location;        ///< the layer and op that it came from, "h.3.mlp (model.mlir:12:8)"; or none
  uint32_t copies = 1; ///< of several microbatches
  uint64_t bytes = 0;  ///< of all copies
};

/// The moment of a step at which a device needs most memory, the first of several.
struct PlanPeak {
  std::string task, location;    ///< of the instruction that runs then
  uint64_t bytes = 0;            ///< of all values that are needed then
  std::vector<PeakValue> values; ///< the largest of them, the largest first
};

/// The peak of a program, with at most `most` of its values. Values are followed as
/// findValueLives() does, which keeps each no longer than it is needed; an arena may keep some
/// longer. The plan is one that findPlanError() accepts.
PlanPeak findPlanPeak(const plan::Plan &plan, const plan::Program &program, size_t most);

} // namespace dtc

#endif // DTC_REPORT_PEAKVALUES_H
