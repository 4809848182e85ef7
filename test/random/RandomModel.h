//===- RandomModel.h - Small random models that may mix samples -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_RANDOM_RANDOMMODEL_H
#define DTC_TEST_RANDOM_RANDOMMODEL_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dtc::test {

/// A loss in which ops may cut, join and sum the samples of the batch, and four of the strategies
/// that it can be asked for, as strategy() reads them.
struct RandomModel {
  std::string loss;
  std::map<std::string, int64_t> indexLimits; ///< for each input of indices
  std::vector<std::string> strategies;
};

RandomModel makeRandomModel(uint64_t seed);

} // namespace dtc::test

#endif // DTC_TEST_RANDOM_RANDOMMODEL_H
