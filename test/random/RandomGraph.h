//===- RandomGraph.h - Small random models, meshes and shardings ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_RANDOM_RANDOMGRAPH_H
#define DTC_TEST_RANDOM_RANDOMGRAPH_H

#include <cstdint>
#include <string>
#include <vector>

namespace dtc::test {

/// A random function @f of float parameters and inputs, in f64 so that the order of sums does not
/// matter, with a result for each value that nothing else uses.
struct RandomGraph {
  std::string mesh;    ///< "dist.mesh @mesh <...>"
  std::string sharded; ///< the function with random shardings on arguments and some values
  std::string plain;   ///< the same without
  unsigned numResults = 0;
  std::string shardedLoss; ///< @loss: the sum of the squares of the results, the float arguments as
                           ///< parameters
  std::string plainLoss;
};

/// The graph of a seed. Sizes are products of small powers of two and three; every sharding
/// divides.
RandomGraph makeRandomGraph(uint64_t seed);

} // namespace dtc::test

#endif // DTC_TEST_RANDOM_RANDOMGRAPH_H
