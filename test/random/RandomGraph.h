//===- RandomGraph.h - Small random models, meshes and shardings ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_RANDOM_RANDOMGRAPH_H
#define DTC_TEST_RANDOM_RANDOMGRAPH_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dtc::test {

/// A random function @f of float parameters and inputs, in f64 so that the order of sums does not
/// matter, with a result for each value that nothing else uses. A share of the meshes has a
/// temporal axis.
struct RandomGraph {
  std::string mesh;    ///< "dist.mesh @mesh <...>"
  std::string sharded; ///< the function with random shardings on arguments and some values
  std::string plain;   ///< the same without
  unsigned numResults = 0;
  std::map<std::string, int64_t> indexLimits; ///< for each input of indices
  std::string shardedLoss; ///< @loss: the sum of the squares of these values, the float arguments
                           ///< without a batch as parameters
  std::string plainLoss;
  int64_t zero = 0;                  ///< a ZeRO stage for training @loss
  std::vector<std::string> zeroAxes; ///< spatial axes, at least one
};

/// The graph of a seed. Many shardings do not divide; dimensions may be open and have priorities.
RandomGraph makeRandomGraph(uint64_t seed);

} // namespace dtc::test

#endif // DTC_TEST_RANDOM_RANDOMGRAPH_H
