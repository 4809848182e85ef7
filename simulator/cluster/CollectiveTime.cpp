//===- CollectiveTime.cpp - Cost model of collectives and messages --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/cluster/CollectiveTime.h"

#include "simulator/cluster/TimeTable.h"

#include <algorithm>
#include <cmath>

namespace dtc {

namespace {

/// A group of one kind of connection.
struct Level {
  double members, bandwidth, latency;
};

double ringScatter(double bytes, const Level &level) {
  return (level.members - 1) / level.members * bytes / level.bandwidth +
         (level.members - 1) * level.latency;
}

double reduceAll(double bytes, const Level &level) {
  double ring = 2 * ringScatter(bytes, level);
  double tree =
      2 * bytes / level.bandwidth + 2 * std::ceil(std::log2(level.members)) * level.latency;
  return level.members > 1 ? std::min(ring, tree) : 0;
}

} // namespace

/// The measurement with the fewest members that are enough, or else with the most members. Null if
/// there is none, or none that `isAsked` takes.
template <typename List, typename IsAsked>
static auto findNearest(const List &measured, int64_t members, const IsAsked &isAsked) {
  decltype(&measured[0]) best = nullptr;
  for (const auto &each : measured) {
    if (!isAsked(each))
      continue;
    bool isEnough = each.members() >= members, bestIsEnough = best && best->members() >= members;
    if (!best || (isEnough && (!bestIsEnough || each.members() < best->members())) ||
        (!isEnough && !bestIsEnough && each.members() > best->members()))
      best = &each;
  }
  return best;
}

/// The measured time of a kind of collective inside of a node.
static std::optional<double> measuredTime(const char *kind, double bytes, const GroupShape &group) {
  if (!group.link || group.nodes > 1)
    return std::nullopt;
  auto *table = findNearest(group.link->collectives(), group.members,
                            [&](const auto &each) { return each.kind() == kind; });
  if (!table)
    return std::nullopt;
  return interpolateTime(table->points(), bytes);
}

double waitForLast(double work, const GroupShape &group) {
  if (!group.link || group.nodes > 1 || group.members <= 1)
    return 0;
  auto *skew =
      findNearest(group.link->arrival_skews(), group.members, [](const auto &) { return true; });
  return skew ? skew->wait_seconds() * std::sqrt(work / skew->work_seconds()) : 0;
}

static void take(MovingTime &time, double seconds, CollectiveAlgorithm algorithm) {
  if (time.algorithm == CollectiveAlgorithm::None || seconds < time.seconds) {
    time.seconds = seconds;
    time.algorithm = algorithm;
  }
}

double sentBytes(CollectiveKind kind, double bytes, int64_t members) {
  auto n = static_cast<double>(members);
  if (members == 1)
    return 0;
  switch (kind) {
  case CollectiveKind::AllReduce:
    return 2 * bytes * (n - 1) / n;
  case CollectiveKind::AllGather:
    return bytes * (n - 1);
  case CollectiveKind::ReduceScatter:
  case CollectiveKind::AllToAll:
    return bytes * (n - 1) / n;
  case CollectiveKind::Permute:
    return bytes;
  }
  return 0;
}

MovingTime collectiveTime(CollectiveKind kind, double bytes, const GroupShape &group) {
  MovingTime time;
  if (group.members <= 1)
    return time;
  time.usesLink = group.perNode > 1;
  time.usesNetwork = group.nodes > 1;
  if (auto seconds = measuredTime(name(kind), bytes, group)) {
    take(time, *seconds, CollectiveAlgorithm::Measured);
    return time;
  }
  auto n = static_cast<double>(group.members), k = static_cast<double>(group.nodes);
  double m = n / k; // nodes may have different numbers of members
  double link = group.linkBandwidth, network = group.networkBandwidth;
  // A group that has one member in each node uses no link.
  double through = group.nodes == 1 ? link : group.perNode == 1 ? network : std::min(link, network);
  double inNode = group.torusLatency.value_or((m - 1) * group.linkLatency);
  double delay =
      group.nodes == 1 ? inNode : (n - k) * group.linkLatency + (k - 1) * group.networkLatency;
  double ring = sentBytes(kind, bytes, group.members) / through;
  Level inside{m, link, group.linkLatency}, between{k, network / m, group.networkLatency};
  bool isHierarchical = group.nodes > 1 && m > 1;
  switch (kind) {
  case CollectiveKind::AllReduce:
    take(time, ring + 2 * delay, CollectiveAlgorithm::Ring);
    if (!group.torusLatency)
      take(time,
           2 * bytes / through + 2 * (std::ceil(std::log2(std::max(m, 1.0))) * group.linkLatency +
                                      std::ceil(std::log2(k)) * group.networkLatency),
           CollectiveAlgorithm::Tree);
    if (isHierarchical)
      take(time, 2 * ringScatter(bytes, inside) + reduceAll(bytes / m, between),
           CollectiveAlgorithm::Hierarchical);
    break;
  case CollectiveKind::AllGather:
    take(time, ring + delay, CollectiveAlgorithm::Ring);
    if (isHierarchical)
      take(time, ringScatter(k * bytes, between) + ringScatter(n * bytes, inside),
           CollectiveAlgorithm::Hierarchical);
    break;
  case CollectiveKind::ReduceScatter:
    take(time, ring + delay, CollectiveAlgorithm::Ring);
    if (isHierarchical)
      take(time, ringScatter(bytes, inside) + ringScatter(bytes / m, between),
           CollectiveAlgorithm::Hierarchical);
    break;
  case CollectiveKind::AllToAll: {
    double toInside = m > 1 ? bytes * (m - 1) / n / link : 0;
    double toOthers = group.nodes > 1 ? bytes * (n - m) / n * m / network : 0;
    // Both ways are used at the same time.
    take(time, std::max(toInside, toOthers) + inNode + (group.nodes > 1 ? group.networkLatency : 0),
         CollectiveAlgorithm::Ring);
    break;
  }
  case CollectiveKind::Permute:
    return messageTime(bytes, group);
  }
  return time;
}

MovingTime messageTime(double bytes, const GroupShape &pair) {
  MovingTime time;
  time.usesNetwork = pair.nodes > 1;
  time.usesLink = !time.usesNetwork;
  time.algorithm = CollectiveAlgorithm::Ring;
  if (auto seconds = measuredTime(kTransferTable, bytes, pair)) {
    time.seconds = *seconds;
    time.algorithm = CollectiveAlgorithm::Measured;
  } else if (time.usesNetwork) {
    time.seconds =
        bytes * static_cast<double>(pair.perNode) / pair.networkBandwidth + pair.networkLatency;
  } else {
    time.seconds = bytes / pair.linkBandwidth + pair.linkLatency;
  }
  return time;
}

} // namespace dtc
