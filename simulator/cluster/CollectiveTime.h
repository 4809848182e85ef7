//===- CollectiveTime.h - Cost model of collectives and messages ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_CLUSTER_COLLECTIVETIME_H
#define DTC_SIMULATOR_CLUSTER_COLLECTIVETIME_H

#include "simulator/cluster/GroupShape.h"
#include "support/Collective.h"

namespace dtc {

/// The kind of the tables of messages from one device to another among those of collectives, which
/// have the name of their CollectiveKind.
inline constexpr const char *kTransferTable = "transfer";

/// How the bytes of a collective go.
enum class CollectiveAlgorithm { None, Ring, Tree, Hierarchical, Measured };

/// The time of moving bytes.
struct MovingTime {
  double seconds = 0; ///< without contention by others than groups of the same axes
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::None;
  bool usesLink = false, usesNetwork = false; ///< the ports of a member that are busy meanwhile
};

/// The bytes that a member sends in a ring, or directly to the others in an all_to_all, where each
/// of n members has an input of `bytes` bytes: twice (n-1)/n of them in an all_reduce, n-1 times
/// them in an all_gather, (n-1)/n of them in a reduce_scatter or an all_to_all, them in a permute.
/// One device sends nothing.
double sentBytes(CollectiveKind kind, double bytes, int64_t members);

/// The time of a collective over a group, where each member has an input of `bytes` bytes. With n
/// members, k nodes, m = n / k members a node, link (b, l) and network (B, L: bytes a second of the
/// m members of a node together, seconds), and the bytes s = sentBytes(...):
///
///   ring          s / min(b, B) + d, for an all_reduce 2 d, where d = (n-k) l + (k-1) L, or that
///   of
///                 a torus
///   tree          all_reduce 2 bytes / min(b, B) + 2 log2(m) l + 2 log2(k) L; not on a torus
///   hierarchical  all_reduce: reduce_scatter inside of nodes, all_reduce between them (a ring or a
///                 tree) of a part each, all_gather inside; all_gather and reduce_scatter alike
///   all_to_all    every member sends a part to each other directly, to other nodes through B / m;
///                 both ways at once: max((m-1)/n bytes / b, (n-m)/n bytes / (B/m)) + (m-1) l + L
///   permute       a message, as all members of a node send one: bytes / (B/m) + L between nodes,
///                 bytes / b + l inside of one
///
/// The algorithm with the least time is taken, as NCCL tunes itself. Inside of a node measured
/// times (Link.collectives) come first: those with the fewest members that are enough, or else with
/// the most members. A permute that was not measured is a transfer. Neither the arithmetic of
/// reductions nor other traffic on the same links is counted. Ring and tree: Thakur, Rabenseifner
/// and Gropp, "Optimization of Collective Communication Operations in MPICH", International Journal
/// of High Performance Computing Applications 19(1), 2005, sections 3 and 4; Sanders, Speck and
/// Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009 (both trees
/// together use the whole bandwidth).
MovingTime collectiveTime(CollectiveKind kind, double bytes, const GroupShape &group);

/// How many seconds later than the mean member of a group the last one comes to a collective after
/// `work` seconds without one, inside of a node: measured (`Link.arrival_skews`, chosen by members
/// like measured times), or 0. Delays of members are independent of each other and of earlier
/// delays, so the wait grows as the square root of the work.
double waitForLast(double work, const GroupShape &group);

/// The time of a message of `bytes` bytes between members of a group, where all those of a node
/// send at the same time.
MovingTime messageTime(double bytes, const GroupShape &pair);

} // namespace dtc

#endif // DTC_SIMULATOR_CLUSTER_COLLECTIVETIME_H
