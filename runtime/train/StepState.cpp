//===- StepState.cpp - The step state of a plan, on the host --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/StepState.h"

#include "plan/PlanTypes.h"
#include "runtime/data/Sampling.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <vector>

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

/// The scalar state of that kind, of each replica; empty if the plan does not have it.
static Expected<std::vector<double>> readScalars(const Session &session, plan::State::Kind kind,
                                                 bool ofAll) {
  std::vector<double> elements;
  const plan::State *state = findState(session.plan(), kind);
  if (!state)
    return elements;
  Expected<HostTensor> values = ofAll ? session.getStateOfAllReplicas(state->name())
                                      : session.getStateOfReplicas(state->name());
  if (!values)
    return values.error();
  for (int64_t i = 0; i < values->type.numElements(); ++i)
    elements.push_back(elementAt(*values, i));
  return elements;
}

static int64_t sumOf(const std::vector<double> &values) {
  return static_cast<int64_t>(std::accumulate(values.begin(), values.end(), 0.0));
}

Expected<StepState> readStepState(const Session &session, bool ofAll) {
  auto applied = readScalars(session, plan::State::APPLIED_STEPS, ofAll);
  if (!applied)
    return applied.error();
  auto skipped = readScalars(session, plan::State::SKIPPED_STEPS, ofAll);
  if (!skipped)
    return skipped.error();
  auto scales = readScalars(session, plan::State::LOSS_SCALE, ofAll);
  if (!scales)
    return scales.error();
  StepState state{sumOf(*applied), sumOf(*skipped), std::nullopt,
                  std::max<int64_t>(std::ssize(*applied), 1)};
  if (!scales->empty())
    state.lossScale = *std::ranges::min_element(*scales);
  return state;
}

} // namespace dtc::runtime
