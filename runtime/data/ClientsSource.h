//===- ClientsSource.h - Batches from the data of clients ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_DATA_CLIENTSSOURCE_H
#define DTC_RUNTIME_DATA_CLIENTSSOURCE_H

#include "runtime/data/ClientRounds.h"
#include "runtime/data/DataSource.h"
#include "runtime/data/FilePartition.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dtc::runtime {

/// A client of federated learning.
struct ClientData {
  std::string name;
  std::vector<std::string> paths; // of one data set; see openDataSource()
  /// Its weight in the mean; absent: the number of its samples that share nothing with each other.
  std::optional<int64_t> samples = {};
};

/// The replica of each row of a batch. All replicas have the same number of rows.
struct ReplicaRows {
  size_t replicas = 1;
  std::vector<size_t> replicaOf; // by row
};

/// The work of a client in a round: a number of steps that is the same for all, or passes over its
/// data, rounded up to a step.
struct LocalWork {
  std::optional<int64_t> steps;
  double epochs = 1; ///< if there are no steps
  int64_t batchesOfStep = 1;
};

/// The data sets of all clients. In a round each replica trains for one client, on that client's
/// data, and no two replicas train for the same one. A round has the steps of the client that
/// trains most. A replica's rows are drawn as DataSource::batch() says, with a seed of the client's
/// own, and a round goes on where the client's last one ended. So a sample depends on the seed, the
/// client, its rounds before and the place in the replica's rows, and not on the layout of devices.
/// A client that is done before the round ends is given samples for the other steps, and is given
/// the same ones again in its next round.
class ClientsSource final : public DataSource {
public:
  /// There are at least as many clients as replicas, and at least one input. An error names the
  /// client.
  static Expected<std::unique_ptr<ClientsSource>> open(std::vector<ClientData> clients,
                                                       std::vector<DataInput> inputs,
                                                       DataOptions options, ReplicaRows rows,
                                                       LocalWork work);

  const ClientRounds &getRounds() const { return rounds; }
  const std::string &nameOf(size_t client) const { return clients[client].name; }
  /// The weight of the client's update.
  double weightOf(size_t client) const;
  /// The steps of the client in a round, and those of a round.
  int64_t stepsOf(size_t client) const;
  int64_t stepsOfRound() const { return roundSteps; }

  MaybeError check(const Progress &progress) const override;
  Expected<std::string> fingerprint() const override;
  std::string describe() const override;
  Expected<std::vector<std::string>> notes() const override;

private:
  ClientsSource(std::vector<ClientData> clients, std::vector<DataInput> inputs, DataOptions options,
                ReplicaRows rows, LocalWork work);

  uint64_t numSamples() const override { return samples.total(); }
  uint64_t numDisjoint() const override { return disjoint.total(); }
  uint64_t disjointSample(uint64_t index) const override;
  uint64_t trainingSample(int64_t number, int64_t row) const override;
  MaybeError readSample(const DataInput &input, uint64_t sample, std::byte *out) const override;

  std::vector<ClientData> clients;
  std::vector<std::unique_ptr<DataSource>> sources; // of each client
  FilePartition samples, disjoint;                  // of the clients
  ClientRounds rounds;
  std::vector<size_t> replicaOf; // by row
  std::vector<int64_t> placeOf;  // by row: among those of its replica
  int64_t rowsOfReplica = 0;
  LocalWork work;
  int64_t roundSteps = 1;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_DATA_CLIENTSSOURCE_H
