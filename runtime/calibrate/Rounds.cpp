//===- Rounds.cpp - Calibration rounds ------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/Rounds.h"

#include "runtime/calibrate/CoreSpeed.h"

#include <algorithm>

namespace dtc::runtime {

using cluster::Cluster;

namespace {

/// Takes the numbers of several rounds together.
class Combination {
public:
  explicit Combination(std::vector<Cluster> &rounds) : rounds(rounds) {}

  template <typename Get> double least(const Get &get) const {
    std::vector<double> values = all(get);
    return *std::min_element(values.begin(), values.end());
  }
  template <typename Get> double most(const Get &get) const {
    std::vector<double> values = all(get);
    return *std::max_element(values.begin(), values.end());
  }
  template <typename Get> double middle(const Get &get) const { return median(all(get)); }

private:
  template <typename Get> std::vector<double> all(const Get &get) const {
    std::vector<double> values;
    for (const Cluster &round : rounds)
      values.push_back(get(round));
    return values;
  }

  std::vector<Cluster> &rounds;
};

} // namespace

static void combineProducts(const Combination &rounds, cluster::DeviceKind &device) {
  for (int m = 0; m < device.matrix_size(); ++m) {
    cluster::MatrixRate &rate = *device.mutable_matrix(m);
    auto ofRound = [m](const Cluster &round) -> auto & { return round.devices(0).matrix(m); };
    rate.set_flops(rounds.most([&](const Cluster &round) { return ofRound(round).flops(); }));
    for (int i = 0; i < rate.table().flops_size(); ++i)
      rate.mutable_table()->set_flops(
          i, rounds.most([&](const Cluster &round) { return ofRound(round).table().flops(i); }));
    for (int i = 0; i < rate.transposed_table().flops_size(); ++i)
      rate.mutable_transposed_table()->set_flops(i, rounds.most([&](const Cluster &round) {
        return ofRound(round).transposed_table().flops(i);
      }));
  }
}

static void combineKernels(const Combination &rounds, cluster::DeviceKind &device) {
  for (int k = 0; k < device.kernels_size(); ++k) {
    cluster::KernelRate &rate = *device.mutable_kernels(k);
    auto ofRound = [k](const Cluster &round) -> auto & { return round.devices(0).kernels(k); };
    rate.set_flops(rounds.most([&](const Cluster &round) { return ofRound(round).flops(); }));
    for (int i = 0; i < rate.points_size(); ++i)
      rate.mutable_points(i)->set_seconds(
          rounds.least([&](const Cluster &round) { return ofRound(round).points(i).seconds(); }));
  }
  device.set_memory_bandwidth(
      rounds.most([](const Cluster &round) { return round.devices(0).memory_bandwidth(); }));
  device.set_launch_seconds(
      rounds.least([](const Cluster &round) { return round.devices(0).launch_seconds(); }));
}

static void combineCollectives(const Combination &rounds, cluster::Link &link) {
  for (int c = 0; c < link.collectives_size(); ++c)
    for (int i = 0; i < link.collectives(c).points_size(); ++i)
      link.mutable_collectives(c)->mutable_points(i)->set_seconds(
          rounds.middle([&](const Cluster &round) {
            return round.node_kinds(0).link().collectives(c).points(i).seconds();
          }));
  for (int m = 0; m < link.arrival_skews_size(); ++m) {
    auto ofRound = [m](const Cluster &round) -> auto & {
      return round.node_kinds(0).link().arrival_skews(m);
    };
    cluster::ArrivalSkew &skew = *link.mutable_arrival_skews(m);
    skew.set_work_seconds(
        rounds.middle([&](const Cluster &round) { return ofRound(round).work_seconds(); }));
    skew.set_wait_seconds(
        rounds.middle([&](const Cluster &round) { return ofRound(round).wait_seconds(); }));
  }
}

Cluster combineRounds(std::vector<Cluster> rounds) {
  Cluster result = rounds.front();
  Combination combination(rounds);
  combineProducts(combination, *result.mutable_devices(0));
  combineKernels(combination, *result.mutable_devices(0));
  if (cluster::NodeKind &node = *result.mutable_node_kinds(0); node.has_link())
    combineCollectives(combination, *node.mutable_link());
  return result;
}

} // namespace dtc::runtime
