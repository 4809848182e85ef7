//===- ClusterChecks.cpp - Consistency checks of clusters -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/cluster/ClusterFields.h"
#include "simulator/cluster/ClusterReader.h"
#include "support/CheckedMath.h"
#include "support/NearestName.h"

#include <fmt/format.h>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace dtc {

/// No two elements of a list have the same key. `key` gives the words of an element that must
/// differ, as the message has them.
template <typename List, typename Key>
static MaybeError checkUnique(const List &list, const std::string &path, const Key &key) {
  std::map<std::string, int> first;
  for (int i = 0; i < list.size(); ++i) {
    auto [found, added] = first.emplace(key(list[i]), i);
    if (!added)
      return Error{fmt::format("{0}[{1}] has {2}, expected another than that of {0}[{3}]", path, i,
                               found->first, found->second)};
  }
  return std::nullopt;
}

template <typename Named> static std::string quotedName(const Named &named) {
  return fmt::format("the name \"{}\"", named.name());
}

template <typename Rate> static std::string quotedDtype(const Rate &rate) {
  return fmt::format("the dtype \"{}\"", rate.dtype());
}

/// All elements of `list` refer to an element of `targets`, which the message calls `targetsName`,
/// by the name that `reference` gives. An optional reference may be empty.
template <typename List, typename Reference, typename Targets>
static MaybeError checkReferences(const List &list, const std::string &path,
                                  const std::string &field, const Reference &reference,
                                  const Targets &targets, const char *targetsName,
                                  bool isOptional = false) {
  std::set<std::string_view> known;
  for (const auto &target : targets)
    known.insert(target.name());
  for (int i = 0; i < list.size(); ++i) {
    const std::string &name = reference(list[i]);
    if (known.count(name) || (isOptional && name.empty()))
      continue;
    std::vector<std::string> names;
    for (const auto &target : targets)
      names.push_back(target.name());
    return Error{fmt::format("{}[{}].{} is \"{}\", expected the name of one of {}: {}{}", path, i,
                             field, name, targetsName, quoteNames(names), didYouMean(name, names))};
  }
  return std::nullopt;
}

static MaybeError checkTable(const cluster::MatrixTable &table, const std::string &path) {
  std::optional<int64_t> points = checkedElements(
      std::vector<int64_t>{table.rows_size(), table.columns_size(), table.depths_size()});
  if (points && table.flops_size() == *points)
    return std::nullopt;
  return Error{fmt::format("{}.flops has {} numbers, expected one for each of {} rows, {} columns "
                           "and {} depths",
                           path, table.flops_size(), table.rows_size(), table.columns_size(),
                           table.depths_size())};
}

static MaybeError checkDevice(const cluster::DeviceKind &device, const std::string &path) {
  if (device.fuses_pointwise() && device.fuses_calls())
    return Error{fmt::format("{0}.fuses_pointwise and {0}.fuses_calls are true, expected one of "
                             "them: a kernel is fused in one way",
                             path)};
  if (MaybeError error =
          checkUnique(device.matrix(), path + ".matrix", quotedDtype<cluster::MatrixRate>))
    return error;
  for (int i = 0; i < device.matrix_size(); ++i) {
    const cluster::MatrixRate &rate = device.matrix(i);
    std::string ratePath = fmt::format("{}.matrix[{}]", path, i);
    if (rate.has_transposed_table())
      if (MaybeError error = checkTable(rate.transposed_table(), ratePath + ".transposed_table"))
        return error;
    if (rate.has_table()) {
      if (MaybeError error = checkTable(rate.table(), ratePath + ".table"))
        return error;
    } else if (rate.flops() == 0) {
      return Error{fmt::format("{}.flops is 0, expected more than 0, or a table of measured rates",
                               ratePath)};
    }
    if (rate.tiles_size() > 0 && device.compute_units() == 0)
      return Error{fmt::format("{}.compute_units is 0, expected more than 0 because {} has tiles",
                               path, ratePath)};
  }
  return checkUnique(device.kernels(), path + ".kernels", [](const cluster::KernelRate &rate) {
    return fmt::format("the kernel \"{}\" and {}", rate.kernel(), quotedDtype(rate));
  });
}

static MaybeError checkNode(const cluster::NodeKind &node, const std::string &path) {
  if (node.devices() > 1 && node.link().bandwidth() == 0)
    return Error{fmt::format("{}.link.bandwidth is 0, expected more than 0 because the node has {} "
                             "devices",
                             path, node.devices())};
  if (node.host().empty() != !node.has_host_link())
    return Error{node.host().empty()
                     ? fmt::format("{}.host is empty, expected the name of a device because the "
                                   "node has a host_link",
                                   path)
                     : fmt::format("{}.host_link is missing, expected it because the node has the "
                                   "host \"{}\"",
                                   path, node.host())};
  if (MaybeError error = checkUnique(node.link().arrival_skews(), path + ".link.arrival_skews",
                                     [](const cluster::ArrivalSkew &skew) {
                                       return fmt::format("{} members", skew.members());
                                     }))
    return error;
  return checkUnique(node.link().collectives(), path + ".link.collectives",
                     [](const cluster::CollectiveTable &table) {
                       return fmt::format("the kind \"{}\" and {} members", table.kind(),
                                          table.members());
                     });
}

/// Checks the node groups together. They have the names of node kinds.
static MaybeError checkGroups(const cluster::Cluster &cluster) {
  // Each number is at most 2^31, so no product overflows; the sums are checked as they grow.
  int64_t nodes = 0, devices = 0;
  std::map<std::string, int> kinds;
  for (int i = 0; i < cluster.node_kinds_size(); ++i)
    kinds[cluster.node_kinds(i).name()] = i;
  for (int i = 0; i < cluster.nodes_size(); ++i) {
    const cluster::NodeGroup &group = cluster.nodes(i);
    nodes += group.count();
    devices += group.count() * cluster.node_kinds(kinds[group.node()]).devices();
    if (devices > kLargestCount)
      return Error{fmt::format("nodes[{}].count is {}, with which the cluster has {} devices; "
                               "expected at most {}",
                               i, group.count(), devices, kLargestCount)};
  }
  if (nodes < 2)
    return std::nullopt;
  for (const cluster::NodeGroup &group : cluster.nodes()) {
    int kind = kinds[group.node()];
    const cluster::NodeKind &node = cluster.node_kinds(kind);
    if (node.device_network_bandwidth() == 0 && node.network_bandwidth() == 0)
      return Error{fmt::format("node_kinds[{0}].device_network_bandwidth and node_kinds[{0}]."
                               "network_bandwidth are 0, expected one of them to be more than 0 "
                               "because the cluster has {1} nodes",
                               kind, nodes)};
  }
  return std::nullopt;
}

MaybeError checkCluster(const cluster::Cluster &cluster) {
  if (MaybeError error = checkFields(cluster))
    return error;
  if (MaybeError error = checkUnique(cluster.devices(), "devices", quotedName<cluster::DeviceKind>))
    return error;
  if (MaybeError error =
          checkUnique(cluster.node_kinds(), "node_kinds", quotedName<cluster::NodeKind>))
    return error;
  for (int i = 0; i < cluster.devices_size(); ++i)
    if (MaybeError error = checkDevice(cluster.devices(i), fmt::format("devices[{}]", i)))
      return error;
  if (MaybeError error = checkReferences(
          cluster.node_kinds(), "node_kinds", "device",
          [](const cluster::NodeKind &node) -> auto & { return node.device(); }, cluster.devices(),
          "devices"))
    return error;
  if (MaybeError error = checkReferences(
          cluster.node_kinds(), "node_kinds", "host",
          [](const cluster::NodeKind &node) -> auto & { return node.host(); }, cluster.devices(),
          "devices", /*isOptional=*/true))
    return error;
  for (int i = 0; i < cluster.node_kinds_size(); ++i)
    if (MaybeError error = checkNode(cluster.node_kinds(i), fmt::format("node_kinds[{}]", i)))
      return error;
  if (MaybeError error = checkReferences(
          cluster.nodes(), "nodes", "node",
          [](const cluster::NodeGroup &group) -> auto & { return group.node(); },
          cluster.node_kinds(), "node_kinds"))
    return error;
  return checkGroups(cluster);
}

} // namespace dtc
