//===- StepStateKinds.h - Values that a step leaves for the next one ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_STEPSTATEKINDS_H
#define DTC_SUPPORT_STEPSTATEKINDS_H

#include "support/Tensor.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dtc {

/// A part of the step state: a value that the next step of a run needs beside the tensors of the
/// model and of the optimizer.
struct StepStateKind {
  const char *name;    ///< in the IR; that of its State.Kind in plan/plan.proto, in lower case
  bool isFloat;        ///< of f32, or of f64 where the model is; otherwise of i32
  int64_t numWords;    ///< elements of a vector; 0: a scalar
  bool startsAsOne;    ///< otherwise as zero
  bool isUpdated;      ///< by steps; otherwise it is set when a run starts, and stays
  bool isInCheckpoint; ///< otherwise a run that goes on sets it again

  /// `floatType`: F32 or F64.
  TensorType typeWith(DType floatType) const;
};

/// All kinds.
std::span<const StepStateKind> stepStateKinds();
/// Null if there is none of this name.
const StepStateKind *findStepStateKind(std::string_view name);
/// "applied_steps, skipped_steps, ... or random_key".
std::string listStepStateKinds();

} // namespace dtc

#endif // DTC_SUPPORT_STEPSTATEKINDS_H
