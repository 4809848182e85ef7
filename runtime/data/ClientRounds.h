//===- ClientRounds.h - Clients of each round ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_DATA_CLIENTROUNDS_H
#define DTC_RUNTIME_DATA_CLIENTROUNDS_H

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace dtc::runtime {

/// Which clients train in each round of federated learning. Round 0 is the first. A round takes as
/// many clients as there are replicas, without replacement: a function of the seed and the round's
/// number alone (McMahan et al. 2017, algorithm 1). Several threads may ask at one time.
class ClientRounds {
public:
  /// There are at least as many clients as replicas.
  ClientRounds(uint64_t seed, size_t clients, size_t replicas)
      : seed(seed), replicas(replicas), counts(clients) {}

  size_t numReplicas() const { return replicas; }
  /// The client that a replica trains for.
  size_t clientOf(int64_t round, size_t replica) const;
  /// How many rounds before this one the replica's client was in. The first call for a round far
  /// from the one of the last call goes through those between, or through all before.
  int64_t roundsBefore(int64_t round, size_t replica) const;

private:
  const uint64_t seed;
  const size_t replicas;
  mutable std::mutex mutex;
  // Under the mutex: for each client the rounds before `counted`.
  mutable std::vector<int64_t> counts;
  mutable int64_t counted = 0;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_DATA_CLIENTROUNDS_H
