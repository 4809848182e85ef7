//===- RandomConstants.h - Small models that share constants --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_RANDOM_RANDOMCONSTANTS_H
#define DTC_TEST_RANDOM_RANDOMCONSTANTS_H

#include "test/random/RandomModel.h"

namespace dtc::test {

/// The number of kinds of values, as a constant or a broadcast of a parameter, that
/// makeConstantModel() shares.
extern const unsigned kNumConstantKinds;

/// A loss that uses one value of that kind on data and on parameters of the shape that the data
/// have, in several ways, with four of the strategies in which a microbatch has a part of the
/// batch. Nothing in it mixes samples, so that none may be refused.
RandomModel makeConstantModel(unsigned kind, uint64_t seed);

} // namespace dtc::test

#endif // DTC_TEST_RANDOM_RANDOMCONSTANTS_H
