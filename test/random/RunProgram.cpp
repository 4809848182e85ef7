//===- RunProgram.cpp - Random inputs for random programs -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/random/RunProgram.h"
#include "test/lib/plans/TrainStep.h"

#include "plan/PlanTypes.h"
#include "plan/plan.pb.h"

#include <gtest/gtest.h>

using namespace dtc;
using namespace dtc::test;

MaybeError dtc::test::setInputs(runtime::Session &session,
                                const std::map<std::string, int64_t> &indexLimits, uint64_t seed,
                                int64_t batch) {
  for (const plan::Input *each : distinctInputs(session.plan())) {
    const plan::Input &input = *each;
    if (input.role() != plan::Input::DATA)
      continue;
    TensorType type{static_cast<DType>(input.dtype()),
                    {input.shape().begin(), input.shape().end()}};
    auto limit = indexLimits.find(input.name());
    int64_t below = limit == indexLimits.end() ? 1 : limit->second;
    EXPECT_TRUE(input.index_limit() == 0 || input.index_limit() == below) << input.name();
    if (auto problem =
            session.setInput(input.name(), randomTensor(type, seed, input.name(), below), batch))
      return problem;
  }
  return {};
}

MaybeError dtc::test::setStates(runtime::Session &session, uint64_t seed) {
  for (const plan::State *state : distinctStates(session.plan()))
    if (isStepState(state->kind()))
      continue;
    else if (auto problem = session.setState(
                 state->name(),
                 randomTensor(
                     {DType::F64, {state->file_shape().begin(), state->file_shape().end()}}, seed,
                     state->name())))
      return problem;
  return {};
}

MaybeError dtc::test::runProgram(runtime::Session &session,
                                 const std::map<std::string, int64_t> &indexLimits,
                                 CompileMode mode, uint64_t seed) {
  if (auto problem = setStates(session, seed))
    return problem;
  for (int step = 1; step <= (mode == CompileMode::Train ? 2 : 1); ++step) {
    auto problem = setInputs(session, indexLimits, seed + step);
    if (!problem)
      problem = trainStep(session, 0.1);
    if (problem)
      return problem;
  }
  return {};
}

std::map<std::string, HostTensor> dtc::test::resultsOf(const runtime::Session &session) {
  std::map<std::string, HostTensor> results;
  for (const plan::Output *output : distinctOutputs(session.plan()))
    if (auto value = session.getOutput(output->name()))
      results.emplace("output " + output->name(), *value);
  for (const plan::State *state : distinctStates(session.plan()))
    if (auto value = session.getState(state->name()))
      results.emplace("state " + state->name(), *value);
  return results;
}
