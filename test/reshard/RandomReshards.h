//===- RandomReshards.h - Random programs of reshards ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_RESHARD_RANDOMRESHARDS_H
#define DTC_TEST_RESHARD_RANDOMRESHARDS_H

#include <cstdint>
#include <string>
#include <vector>

namespace dtc::test {

/// How a value comes to its first layout.
enum class Source {
  Complete, ///< an input
  Sum,      ///< an input [K, ...], summed over its first dimensions
  Max,      ///< the same with the maximum
  Min,
  Weighted, ///< an input [K, ...], contracted with another one [K]
};

struct ReshardedValue {
  std::string input, weights; ///< names; no weights unless Source::Weighted
  Source source = Source::Complete;
  bool f64 = false;
  std::vector<int64_t> summed; ///< K, as the dimensions that are summed; empty if Complete
  std::vector<int64_t> shape;
  std::string result;  ///< the output in the target's layout
  std::string witness; ///< an output whose shards come from all copies of the target
};

/// A program of several reshards on one mesh.
struct ReshardProgram {
  std::string text;
  std::vector<ReshardedValue> values;
};

ReshardProgram makeReshardProgram(uint64_t seed);

} // namespace dtc::test

#endif // DTC_TEST_RESHARD_RANDOMRESHARDS_H
