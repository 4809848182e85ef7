//===- StepStateKinds.cpp - Values that a step leaves for the next one ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/StepStateKinds.h"

#include <algorithm>

namespace dtc {

// clang-format off
static constexpr StepStateKind kKinds[] = {
  // name             isFloat numWords startsAsOne isUpdated isInCheckpoint
  {"applied_steps",   false,  0,       false,      true,     true},
  {"skipped_steps",   false,  0,       false,      true,     true},
  {"loss_scale",      true,   0,       true,       true,     true},  // 0 is no scale
  {"good_steps",      false,  0,       false,      true,     true},
  {"growth_interval", false,  0,       true,       false,    false}, // 0 is no interval
  {"random_key",      false,  2,       false,      true,     false}, // of the seed and the number of a batch
};
// clang-format on

TensorType StepStateKind::typeWith(DType floatType) const {
  TensorType type{isFloat ? floatType : DType::I32, {}};
  if (numWords > 0)
    type.shape = {numWords};
  return type;
}

std::span<const StepStateKind> stepStateKinds() { return kKinds; }

const StepStateKind *findStepStateKind(std::string_view name) {
  const auto *found = std::ranges::find(kKinds, name, &StepStateKind::name);
  return found == std::end(kKinds) ? nullptr : found;
}

std::string listStepStateKinds() {
  std::string text;
  for (const StepStateKind &state : kKinds) {
    if (!text.empty())
      text += &state == std::end(kKinds) - 1 ? " or " : ", ";
    text += state.name;
  }
  return text;
}

} // namespace dtc
