//===- StepStates.cpp - Kinds of step state in a plan ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/StepStates.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cctype>

namespace dtc {

plan::State::Kind kindOf(const StepStateKind &state) {
  std::string name = state.name;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  plan::State::Kind kind = plan::State::PARAMETER;
  [[maybe_unused]] bool isKnown = plan::State::Kind_Parse(name, &kind);
  assert(isKnown && "State.Kind of plan.proto has no kind of this name");
  return kind;
}

const StepStateKind *stepStateKindOf(plan::State::Kind kind) {
  static const auto states = [] {
    std::array<const StepStateKind *, plan::State::Kind_ARRAYSIZE> byKind{};
    for (const StepStateKind &state : stepStateKinds())
      byKind[static_cast<size_t>(kindOf(state))] = &state;
    return byKind;
  }();
  auto index = static_cast<size_t>(kind);
  return index < states.size() ? states[index] : nullptr;
}

} // namespace dtc
