//===- PlanFileTensors.h - The tensors of weights files of a plan ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PLAN_PLANFILETENSORS_H
#define DTC_PLAN_PLANFILETENSORS_H

#include "plan/plan.pb.h"
#include "support/Error.h"
#include "support/Tensor.h"

#include <map>
#include <optional>
#include <string>

namespace dtc {

/// A tensor of weights files.
struct FileTensor {
  TensorType type; ///< its element type is its first part's
  /// The parameters that are its rows, by the first one.
  std::map<int64_t, const plan::State *> parts;
  /// Which element of the first dimension of the one parameter it is, if that is a stack.
  std::optional<int64_t> element;
};

/// Those of the parameters of a plan, by name. An error if parameters are not all rows of a tensor,
/// each once; findPlanError() finds it.
Expected<std::map<std::string, FileTensor>> fileTensorsOf(const plan::Plan &plan);

} // namespace dtc

#endif // DTC_PLAN_PLANFILETENSORS_H
