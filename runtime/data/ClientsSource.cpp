//===- ClientsSource.cpp - Batches from the data of clients --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/ClientsSource.h"

#include "runtime/data/DataFiles.h"
#include "support/Philox.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace dtc::runtime {

ClientsSource::ClientsSource(std::vector<ClientData> clients, std::vector<DataInput> inputs,
                             DataOptions options, ReplicaRows rows, LocalWork work)
    : DataSource(std::move(inputs), options), clients(std::move(clients)),
      rounds(options.seed, this->clients.size(), rows.replicas),
      replicaOf(std::move(rows.replicaOf)), work(work) {
  std::vector<int64_t> counts(rows.replicas);
  for (size_t replica : replicaOf)
    placeOf.push_back(counts[replica]++);
  rowsOfReplica = counts.front();
}

/// Data of clients are drawn with different keys.
static uint64_t seedOf(uint64_t seed, size_t client) {
  PhiloxCounter words = philox4x32(philoxCounter(client, 0), philoxKey(seed ^ 0x636c6965'6e740000));
  return words[0] | uint64_t{words[1]} << 32;
}

Expected<std::unique_ptr<ClientsSource>> ClientsSource::open(std::vector<ClientData> clients,
                                                             std::vector<DataInput> inputs,
                                                             DataOptions options, ReplicaRows rows,
                                                             LocalWork work) {
  std::unique_ptr<ClientsSource> source(
      new ClientsSource(std::move(clients), std::move(inputs), options, std::move(rows), work));
  size_t files = 0;
  for (const ClientData &client : source->clients)
    files += client.paths.size();
  if (MaybeError error = allowOpenFiles(files))
    return *error;
  for (size_t index = 0; index < source->clients.size(); ++index) {
    const ClientData &client = source->clients[index];
    Expected<std::unique_ptr<DataSource>> opened = openDataSource(
        client.paths, source->inputs, {seedOf(options.seed, index), options.sampling});
    if (!opened)
      return opened.error().inContext(fmt::format("client \"{}\"", client.name));
    source->samples.add((*opened)->numSamples());
    source->disjoint.add((*opened)->numDisjoint());
    source->samplesOfBatch = (*opened)->samplesOfBatch;
    source->sources.push_back(std::move(*opened));
    source->roundSteps = std::max(source->roundSteps, source->stepsOf(index));
  }
  return source;
}

double ClientsSource::weightOf(size_t client) const {
  return clients[client].samples ? static_cast<double>(*clients[client].samples)
                                 : static_cast<double>(sources[client]->numDisjoint());
}

int64_t ClientsSource::stepsOf(size_t client) const {
  if (work.steps)
    return *work.steps;
  double wanted = std::ceil(work.epochs * static_cast<double>(sources[client]->numDisjoint()));
  auto ofStep = static_cast<double>(rowsOfReplica * work.batchesOfStep);
  return std::max<int64_t>(static_cast<int64_t>(std::ceil(wanted / ofStep)), 1);
}

uint64_t ClientsSource::disjointSample(uint64_t index) const {
  auto [client, place] = disjoint.find(index);
  return samples.firstOf(client) + sources[client]->disjointSample(place);
}

uint64_t ClientsSource::trainingSample(int64_t number, int64_t row) const {
  const int64_t batchesOfRound = roundSteps * work.batchesOfStep;
  int64_t round = (number - 1) / batchesOfRound, batch = (number - 1) % batchesOfRound;
  size_t replica = replicaOf[static_cast<size_t>(row)];
  size_t client = rounds.clientOf(round, replica);
  int64_t before = rounds.roundsBefore(round, replica) * stepsOf(client) * work.batchesOfStep;
  return samples.firstOf(client) + sources[client]->drawnSample(before + batch + 1,
                                                                placeOf[static_cast<size_t>(row)],
                                                                rowsOfReplica);
}

MaybeError ClientsSource::readSample(const DataInput &input, uint64_t sample,
                                     std::byte *out) const {
  auto [client, place] = samples.find(sample);
  return sources[client]->readSample(input, place, out);
}

MaybeError ClientsSource::check(const Progress &progress) const {
  bool goesOn = true;
  for (size_t index = 0; index < sources.size() && goesOn; ++index) {
    auto report = [&](uint64_t done, uint64_t all) {
      // Of all clients, as if each had as much to look at.
      goesOn = progress(index * 1000 + (all ? 1000 * done / all : 1000), sources.size() * 1000);
      return goesOn;
    };
    if (MaybeError error = sources[index]->check(report))
      return error->inContext(fmt::format("client \"{}\"", clients[index].name));
  }
  return std::nullopt;
}

Expected<std::string> ClientsSource::fingerprint() const {
  std::string all;
  for (size_t index = 0; index < sources.size(); ++index) {
    Expected<std::string> own = sources[index]->fingerprint();
    if (!own)
      return own.error().inContext(fmt::format("client \"{}\"", clients[index].name));
    all += fmt::format("{} {} {}\n", clients[index].name, weightOf(index), *own);
  }
  return fmt::format("clients-{}-{:016x}", sources.size(), fnv1a(all));
}

std::string ClientsSource::describe() const {
  return fmt::format("{} clients with {} samples, {} of them in each round of {} step{}",
                     clients.size(), numDisjoint(), rounds.numReplicas(), roundSteps,
                     roundSteps == 1 ? "" : "s");
}

Expected<std::vector<std::string>> ClientsSource::notes() const {
  std::vector<std::string> all;
  for (size_t index = 0; index < sources.size(); ++index) {
    Expected<std::vector<std::string>> own = sources[index]->notes();
    if (!own)
      return own.error().inContext(fmt::format("client \"{}\"", clients[index].name));
    for (const std::string &text : *own)
      all.push_back(fmt::format("client \"{}\": {}", clients[index].name, text));
  }
  return all;
}

} // namespace dtc::runtime
