//===- SavedStates.cpp - The tensors of a checkpoint of a plan ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/SavedStates.h"

#include "plan/PlanTypes.h"
#include "plan/Replicas.h"
#include "plan/StepStates.h"

namespace dtc::runtime {

/// Whether a state is saved under its own name.
static bool isSaved(plan::State::Kind kind) {
  if (const StepStateKind *ofStep = stepStateKindOf(kind))
    return ofStep->isInCheckpoint;
  return kind != plan::State::MASTER_WEIGHTS && kind != plan::State::CACHE;
}

std::map<std::string, SavedState> savedStatesOf(const plan::Plan &plan) {
  std::map<std::string, const plan::State *> parameters;
  for (const plan::State *state : distinctStates(plan))
    if (state->kind() == plan::State::PARAMETER)
      parameters[state->name()] = state;
  std::map<std::string, SavedState> saved;
  for (const plan::State *state : distinctStates(plan))
    if (state->kind() == plan::State::MASTER_WEIGHTS)
      saved[state->parameter()] = {state, parameters.at(state->parameter())};
  for (const plan::State *state : distinctStates(plan))
    if (isSaved(state->kind()))
      saved.try_emplace(state->name(), SavedState{state, nullptr});
  if (std::optional<Replicas> replicas = replicasOf(plan))
    for (auto &[name, tensor] : saved)
      if (replicas->differ(*tensor.state))
        tensor.copies = replicas->count;
  return saved;
}

TensorType savedTypeOf(const SavedState &saved) {
  TensorType type = fileTypeOf(*saved.state);
  if (saved.copies > 0)
    type.shape.insert(type.shape.begin(), saved.copies);
  return type;
}

std::map<std::string, TensorType> typesOf(const std::map<std::string, SavedState> &states) {
  std::map<std::string, TensorType> types;
  for (const auto &[name, saved] : states)
    types.emplace(name, savedTypeOf(saved));
  return types;
}

} // namespace dtc::runtime
