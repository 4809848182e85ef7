//===- ProcessGroup.h - The members of a group by their processes ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_PROCESSES_PROCESSGROUP_H
#define DTC_RUNTIME_FABRICS_PROCESSES_PROCESSGROUP_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace dtc::runtime {

/// How processes of one host exchange the tensors of collectives: through memory that they share,
/// where they can, or by messages, as processes of several hosts do.
enum class HostSharing { Memory, Messages };

/// Where the members of a group live. Its processes are those that have a member, in the order of
/// their first ones, and are numbered by their place among them.
struct ProcessGroup {
  /// `members` are devices in the order of their ranks; `process` is the one that asks, which has
  /// at least one of them.
  ProcessGroup(const std::vector<int64_t> &members,
               const std::function<int64_t(int64_t device)> &processOf, int64_t process);

  size_t numMembers() const { return members.size(); }
  size_t numProcesses() const { return processes.size(); }
  const std::vector<size_t> &ownRanks() const { return ranks[own]; }
  /// Whether some process has several members, so that it adds up what is its own first.
  bool hasShared() const { return members.size() > processes.size(); }

  std::vector<int64_t> members;
  std::vector<int64_t> processes;         // their numbers in the fabric
  std::vector<std::vector<size_t>> ranks; // of the members in each process, in rising order
  std::vector<size_t> processOfRank;      // the place of its process
  size_t own = 0;                         // the place of this process
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_PROCESSES_PROCESSGROUP_H
