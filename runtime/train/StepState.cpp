//===- StepState.cpp - The step state of a plan, on the host --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/StepState.h"

#include "plan/PlanTypes.h"
#include "runtime/data/Sampling.h"

#include <array>
#include <span>

namespace dtc::runtime {

/// Sets the elements of the state of that kind, if the plan has it.
static MaybeError setIfThere(Session &session, plan::State::Kind kind,
                             std::span<const double> elements) {
  const plan::State *state = findState(session.plan(), kind);
  if (!state)
    return std::nullopt;
  HostTensor value(fileTypeOf(*state));
  for (size_t i = 0; i < elements.size(); ++i)
    setElement(value, static_cast<int64_t>(i), elements[i]);
  return session.setState(state->name(), value);
}

MaybeError startStepState(Session &session, const std::optional<LossScaling> &scaling,
                          uint64_t seed, int64_t nextBatch) {
  if (scaling) {
    const double scale[] = {scaling->initial};
    const double interval[] = {static_cast<double>(scaling->growthInterval)};
    if (MaybeError error = setIfThere(session, plan::State::LOSS_SCALE, scale))
      return error;
    if (MaybeError error = setIfThere(session, plan::State::GROWTH_INTERVAL, interval))
      return error;
  }
  // The plan's words are signed; the bits are the same.
  std::array<uint32_t, 2> key = randomMaskKey(seed, nextBatch);
  const double words[] = {static_cast<double>(static_cast<int32_t>(key[0])),
                          static_cast<double>(static_cast<int32_t>(key[1]))};
  return setIfThere(session, plan::State::RANDOM_KEY, words);
}

/// The scalar state of that kind; none if the plan does not have it.
static Expected<std::optional<double>> readScalar(const Session &session, plan::State::Kind kind) {
  const plan::State *state = findState(session.plan(), kind);
  if (!state)
    return std::optional<double>();
  Expected<HostTensor> value = session.getState(state->name());
  if (!value)
    return value.error();
  return std::optional<double>(elementAt(*value, 0));
}

Expected<StepState> readStepState(const Session &session) {
  auto applied = readScalar(session, plan::State::APPLIED_STEPS);
  if (!applied)
    return applied.error();
  auto skipped = readScalar(session, plan::State::SKIPPED_STEPS);
  if (!skipped)
    return skipped.error();
  auto scale = readScalar(session, plan::State::LOSS_SCALE);
  if (!scale)
    return scale.error();
  return StepState{static_cast<int64_t>(applied->value_or(0)),
                   static_cast<int64_t>(skipped->value_or(0)), *scale};
}

} // namespace dtc::runtime
