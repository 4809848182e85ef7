//===- Permutation.h - Permutations computed on demand --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_DATA_PERMUTATION_H
#define DTC_RUNTIME_DATA_PERMUTATION_H

#include <cstdint>

namespace dtc::runtime {

/// The image of `index` under a permutation of the numbers from 0 to `count` - 1, which (seed,
/// epoch) chooses; index < count <= 2^62. Each image is computed for itself, in about a
/// microsecond, so that an order of any length takes no memory and can be entered anywhere.
///
/// The permutation is a balanced Feistel network (Luby, Rackoff: "How to Construct Pseudorandom
/// Permutations from Pseudorandom Functions", 1988) on the fewest pairs of bits that hold all
/// numbers, with Philox as its round function, and cycle walking: what leaves the range goes
/// through the network again (Black, Rogaway: "Ciphers with Arbitrary Finite Domains", 2002).
uint64_t permuted(uint64_t seed, uint64_t epoch, uint64_t index, uint64_t count);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_DATA_PERMUTATION_H
