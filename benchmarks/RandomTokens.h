//===- RandomTokens.h - Random training data ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_BENCHMARKS_RANDOMTOKENS_H
#define DTC_BENCHMARKS_RANDOMTOKENS_H

#include "runtime/executor/Session.h"

#include <random>

namespace dtc::benchmarks {

/// Sets every data input to new tokens. An error if one holds something else.
MaybeError setRandomTokens(runtime::Session &session, std::mt19937_64 &random);

/// Trains a step, of that number from 0, on new tokens. The seconds that it took.
Expected<double> timeStep(runtime::Session &session, int number, std::mt19937_64 &random);

} // namespace dtc::benchmarks

#endif // DTC_BENCHMARKS_RANDOMTOKENS_H
