//===- ProcessCollective.h - Collectives by messages -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_PROCESSES_PROCESSCOLLECTIVE_H
#define DTC_RUNTIME_FABRICS_PROCESSES_PROCESSCOLLECTIVE_H

#include "runtime/fabrics/Communicator.h"
#include "runtime/fabrics/processes/Messages.h"
#include "runtime/fabrics/processes/ProcessGroup.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace dtc::runtime {

/// The collectives of a group whose members live in several processes, one at a time. A call does
/// the part of all members of this process.
///
/// What is moved goes from process to process once. What is reduced is divided among the processes:
/// each gets the others' values of its part, adds them up, and for AllReduce sends the result to
/// all (Rabenseifner 2004, "Optimization of Collective Reduction Operations", section 4.1, with
/// direct exchanges). The members of a process are added first, in the order of their ranks; then
/// the processes, in theirs. So an element's bits depend neither on the sizes nor on the other
/// tensors of a bucket, and where each process has one member they are those of the local fabric.
class ProcessCollective {
public:
  /// The messages of the group have `tag`, which no other group has.
  ProcessCollective(Messages &messages, ProcessGroup group, int64_t tag);

  const ProcessGroup &getGroup() const { return group; }

  /// `operands` of the members of this process, each with one for each spec, which are those of
  /// Communicator::enqueue. Blocks. An error is that of the network.
  MaybeError run(std::span<const CollectiveSpec> specs,
                 std::span<const std::span<const CollectiveOperands>> operands);

private:
  /// Consecutive elements of a tensor that one process reduces.
  struct Piece {
    size_t tensor = 0;
    size_t offset = 0; // in the input, in bytes
    size_t bytes = 0;
    size_t member = 0;       // ReduceScatter: the place among those of the process that gets it
    size_t outputOffset = 0; // in bytes
  };
  using Segment = std::vector<Piece>;
  /// What a process reduces, in parts that are on their way one after the other.
  using Segments = std::vector<Segment>;

  /// Memory for messages of the processes, with room for each piece at a multiple of 64 bytes.
  struct Staging {
    std::vector<std::byte> bytes;
    size_t stride = 0; // from one process to the next
  };
  /// A segment on its way.
  struct Exchange {
    Staging partial, received;
    std::unique_ptr<MessageBatch> batch; // last: its end cancels messages in their memory
  };

  const std::byte *input(size_t member, size_t tensor) const {
    return static_cast<const std::byte *>(operands[member][tensor].input);
  }
  std::byte *output(size_t member, size_t tensor) const {
    return static_cast<std::byte *>(operands[member][tensor].output);
  }
  MaybeError move();
  void sendMoved(size_t process, std::vector<MessagePart> &parts) const;
  void receiveMoved(size_t process, std::vector<MessagePart> &parts) const;
  void moveHere() const;
  void shareGathered() const;
  bool moves(const CollectiveSpec &spec, size_t from, size_t to) const;

  MaybeError reduce();
  Segments segmentsOf(size_t process) const;
  MaybeError startExchange(size_t segment);
  void addUp(const Segment &segment, std::byte *partial) const;
  MaybeError finishExchange(size_t segment);
  MaybeError spreadResults(size_t segment);
  DType sentType(size_t tensor) const;
  size_t stagedBytes(const Segment &segment) const;
  void stagedParts(const Segment &segment, std::byte *staging,
                   std::vector<MessagePart> &parts) const;
  void shareReduced() const;

  Messages &messages;
  ProcessGroup group;
  int64_t tag;

  // Of the running call.
  std::span<const CollectiveSpec> specs;
  std::span<const std::span<const CollectiveOperands>> operands;
  bool everywhere = false;        // each process reduces everything
  bool direct = false;            // inputs are sent from where they are
  std::vector<Segments> segments; // of each process
  std::array<Exchange, 2> exchanges;
  std::unique_ptr<MessageBatch> batch;
  std::vector<MessagePart> parts;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_PROCESSES_PROCESSCOLLECTIVE_H
