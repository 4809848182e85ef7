//===- RandomTokens.cpp - Random training data ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/RandomTokens.h"

#include "plan/PlanTypes.h"

#include <chrono>
#include <fmt/format.h>

using namespace dtc;
using namespace dtc::runtime;

MaybeError benchmarks::setRandomTokens(Session &session, std::mt19937_64 &random) {
  for (const plan::Input *each : distinctInputs(session.plan())) {
    const plan::Input &input = *each;
    if (input.role() != plan::Input::DATA)
      continue;
    if (toDType(input.dtype()) != DType::I32 || input.index_limit() < 1)
      return Error{fmt::format("the input \"{}\" does not hold tokens", input.name())};
    HostTensor tokens(typeOf(input));
    std::uniform_int_distribution<int32_t> token(0, static_cast<int32_t>(input.index_limit() - 1));
    for (int64_t i = 0; i < tokens.type.numElements(); ++i)
      tokens.as<int32_t>()[i] = token(random);
    if (MaybeError error = session.setInput(input.name(), std::move(tokens)))
      return error;
  }
  return std::nullopt;
}

Expected<double> benchmarks::timeStep(runtime::Session &session, int number,
                                      std::mt19937_64 &random) {
  if (MaybeError error = setRandomTokens(session, random))
    return *error;
  const double rate[] = {1e-4};
  if (MaybeError error = session.setLearningRates(number, rate))
    return *error;
  auto begin = std::chrono::steady_clock::now();
  if (MaybeError error = session.step())
    return *error;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
