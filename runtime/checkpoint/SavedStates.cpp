//===- SavedStates.cpp - The tensors of a checkpoint of a plan ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/SavedStates.h"

#include "plan/PlanTypes.h"

namespace dtc::runtime {

std::map<std::string, SavedState> savedStatesOf(const plan::Plan &plan) {
  std::map<std::string, const plan::State *> parameters;
  for (const plan::State *state : distinctStates(plan))
    if (state->parameter().empty())
      parameters[state->name()] = state;
  std::map<std::string, SavedState> saved;
  for (const plan::State *state : distinctStates(plan))
    if (state->master())
      saved[state->parameter()] = {state, parameters.at(state->parameter())};
  for (const plan::State *state : distinctStates(plan))
    if (!state->master() && !state->cache())
      saved.try_emplace(state->name(), SavedState{state, nullptr});
  return saved;
}

std::map<std::string, TensorType> typesOf(const std::map<std::string, SavedState> &states) {
  std::map<std::string, TensorType> types;
  for (const auto &[name, saved] : states)
    types.emplace(name, fileTypeOf(*saved.state));
  return types;
}

} // namespace dtc::runtime
