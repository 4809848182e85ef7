//===- TrainStep.h - Steps and step state of sessions in tests ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_LIB_PLANS_TRAINSTEP_H
#define DTC_TEST_LIB_PLANS_TRAINSTEP_H

#include "plan/PlanTypes.h"
#include "runtime/executor/Session.h"

#include <initializer_list>

namespace dtc::runtime::testing {

/// Sets the elements of the state of that kind, if the plan has one.
inline MaybeError setStepState(Session &session, plan::State::Kind kind,
                               std::initializer_list<double> elements) {
  const plan::State *state = findState(session.plan(), kind);
  if (!state)
    return std::nullopt;
  HostTensor value(fileTypeOf(*state));
  int64_t next = 0;
  for (double element : elements)
    setElement(value, next++, element);
  return session.setState(state->name(), value);
}

/// Sets a loss scale that stays as it is while no step is skipped.
inline MaybeError setLossScale(Session &session, double scale) {
  if (MaybeError error = setStepState(session, plan::State::GROWTH_INTERVAL, {1 << 30}))
    return error;
  return setStepState(session, plan::State::LOSS_SCALE, {scale});
}

/// An element of the state of that kind; 0 where the plan has none.
inline Expected<double> stepStateOf(const Session &session, plan::State::Kind kind,
                                    int64_t element = 0) {
  const plan::State *state = findState(session.plan(), kind);
  if (!state)
    return 0.0;
  Expected<HostTensor> value = session.getState(state->name());
  if (!value)
    return value.error();
  return elementAt(*value, element);
}

/// Runs a step with this learning rate, which plans that do not train ignore.
inline MaybeError trainStep(Session &session, double learningRate) {
  int64_t done = 0;
  for (plan::State::Kind kind : {plan::State::APPLIED_STEPS, plan::State::SKIPPED_STEPS}) {
    Expected<double> count = stepStateOf(session, kind);
    if (!count)
      return count.error();
    done += static_cast<int64_t>(*count);
  }
  const double rates[] = {learningRate};
  if (MaybeError error = session.setLearningRates(done, rates))
    return error;
  return session.step();
}

} // namespace dtc::runtime::testing

namespace dtc::test {
using runtime::testing::setLossScale;
using runtime::testing::setStepState;
using runtime::testing::stepStateOf;
using runtime::testing::trainStep;
} // namespace dtc::test

#endif // DTC_TEST_LIB_PLANS_TRAINSTEP_H
