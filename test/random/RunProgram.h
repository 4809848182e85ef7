//===- RunProgram.h - Random inputs for random programs -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_RANDOM_RUNPROGRAM_H
#define DTC_TEST_RANDOM_RUNPROGRAM_H

#include "test/lib/compile/CompileAndRun.h"
#include "test/random/RandomGraph.h"

#include <map>
#include <string>

namespace dtc::test {

/// Sets the data of one batch of a step: floats, and indices that are in range. What a plan says of
/// their range must be true.
MaybeError setInputs(runtime::Session &session, const std::map<std::string, int64_t> &indexLimits,
                     uint64_t seed, int64_t batch = 0);

/// Sets all states of a program of f64.
MaybeError setStates(runtime::Session &session, uint64_t seed);

/// Sets all that a program of f64 reads and runs it; twice where it trains, as the second step
/// reads what the first one wrote. `indexLimits` has each input of indices.
MaybeError runProgram(runtime::Session &session, const std::map<std::string, int64_t> &indexLimits,
                      CompileMode mode, uint64_t seed);

/// The outputs ("output loss"), and the states where a program trains ("state a0").
std::map<std::string, HostTensor> resultsOf(const runtime::Session &session);

} // namespace dtc::test

#endif // DTC_TEST_RANDOM_RUNPROGRAM_H
