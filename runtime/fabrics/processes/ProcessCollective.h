//===- ProcessCollective.h - Collectives between processes -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_PROCESSES_PROCESSCOLLECTIVE_H
#define DTC_RUNTIME_FABRICS_PROCESSES_PROCESSCOLLECTIVE_H

#include "runtime/fabrics/Communicator.h"
#include "runtime/fabrics/processes/CollectiveParts.h"
#include "runtime/fabrics/processes/Messages.h"
#include "runtime/fabrics/processes/ProcessGroup.h"

#include <cstdint>
#include <memory>
#include <span>

namespace dtc::runtime {

/// The collectives of a group whose members live in several processes, one at a time. A call does
/// the part of all members of this process.
///
/// Data that only moves goes from process to process once. Data that is reduced is divided among
/// the processes: each gets the others' values of its part, adds them up, and for AllReduce gives
/// the result to all (Rabenseifner 2004, "Optimization of Collective Reduction Operations", section
/// 4.1, with direct exchanges). The members of a process are added first, in the order of their
/// ranks; then the processes, in theirs. So an element's bits depend neither on the sizes nor on
/// the other tensors of a bucket, nor on how the processes exchange it, and where each process has
/// one member they are those of the local fabric.
class ProcessCollective {
public:
  /// The messages of the group have `tag`, which no other group has.
  ProcessCollective(Messages &messages, ProcessGroup group, int64_t tag,
                    HostSharing sharing = HostSharing::Messages);

  const ProcessGroup &getGroup() const { return group; }
  /// Whether the processes share memory; known after the first call of run().
  bool sharesMemory() const { return isShared; }

  /// `operands` of the members of this process, each with one for each spec, which are those of
  /// Communicator::enqueue. Blocks. An error is that of the network.
  MaybeError run(std::span<const CollectiveSpec> specs,
                 std::span<const std::span<const CollectiveOperands>> operands);

private:
  MaybeError open();

  Messages &messages;
  ProcessGroup group;
  int64_t tag;
  HostSharing sharing;
  bool isShared = false;
  std::unique_ptr<CollectiveParts> parts; // once it has been opened
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_PROCESSES_PROCESSCOLLECTIVE_H
