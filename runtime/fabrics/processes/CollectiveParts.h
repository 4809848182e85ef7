//===- CollectiveParts.h - The part of each process in a collective --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_PROCESSES_COLLECTIVEPARTS_H
#define DTC_RUNTIME_FABRICS_PROCESSES_COLLECTIVEPARTS_H

#include "runtime/fabrics/Communicator.h"
#include "runtime/fabrics/processes/Messages.h"
#include "runtime/fabrics/processes/ProcessGroup.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dtc::runtime {

/// The parts of a collective whose group has members in several processes: the part that each
/// process reduces, the part that it moves to the others, and the part that needs no other process.
/// However the bytes get from process to process, the bits of the results are the same.
class CollectiveParts {
public:
  explicit CollectiveParts(const ProcessGroup &group) : group(group) {}
  virtual ~CollectiveParts() = default;

  /// See ProcessCollective::run().
  MaybeError run(std::span<const CollectiveSpec> specs,
                 std::span<const std::span<const CollectiveOperands>> operands);

protected:
  /// Consecutive elements of a tensor that one process reduces.
  struct Piece {
    size_t tensor = 0;
    size_t offset = 0; // in the input, in bytes
    size_t bytes = 0;
    size_t member = 0;       // ReduceScatter: the place among those of the process that gets it
    size_t outputOffset = 0; // in bytes
  };
  /// Staged pieces lie one after the other, each at a multiple of 64 bytes.
  using Segment = std::vector<Piece>;
  /// The elements that a process reduces, in parts that are on their way one after the other.
  using Segments = std::vector<Segment>;

  /// AllGather, AllToAll and Permute.
  virtual MaybeError move() = 0;
  /// AllReduce and ReduceScatter.
  virtual MaybeError reduce() = 0;

  CollectiveKind kind() const { return specs.front().kind; }
  const std::byte *input(size_t member, size_t tensor) const {
    return static_cast<const std::byte *>(operands[member][tensor].input);
  }
  std::byte *output(size_t member, size_t tensor) const {
    return static_cast<std::byte *>(operands[member][tensor].output);
  }
  /// The bytes of all input tensors of a member.
  size_t inputBytes() const;

  /// Appends what this process sends to another one, or receives from it.
  void sendMoved(size_t process, std::vector<MessagePart> &to) const;
  void receiveMoved(size_t process, std::vector<MessagePart> &to) const;
  /// Between members of this process.
  void moveHere() const;
  /// Gives the other members the data that the first one has gathered from other processes.
  void shareGathered() const;

  /// The part that process `process` reduces, or everything, in segments of `room` bytes, a
  /// multiple of 64, of the inputs' type; the same in all processes.
  Segments segmentsOf(size_t process, bool everything, size_t room) const;
  /// Sums of some members travel as wide as they are, so that a result in 16 bits is rounded once.
  DType sentType(size_t tensor) const;
  /// The bytes of a staged piece, in the type in which it is sent.
  size_t sentBytes(const Piece &piece) const;
  size_t stagedBytes(const Segment &segment) const;
  /// Adds up the members of this process, and stages the sums.
  void addUp(const Segment &segment, std::byte *staging) const;
  /// Adds up the values of all processes, which are staged, or null for those of the only member of
  /// this process. The results go to the outputs of its members, and, if it is not null, to
  /// `results`, in the type of the inputs.
  void addProcesses(const Segment &segment, std::span<const std::byte *const> staged,
                    std::byte *results) const;

  const ProcessGroup &group;
  // State of the running call.
  std::span<const CollectiveSpec> specs;
  std::span<const std::span<const CollectiveOperands>> operands;

private:
  /// Addresses, kept between calls.
  mutable std::vector<const std::byte *> inputs, added;
  mutable std::vector<std::byte *> results;

  bool moves(const CollectiveSpec &spec, size_t from, size_t to) const;
};

/// The bytes of a staged piece, rounded up so that every element is aligned and pieces end between
/// cache lines.
inline size_t alignedBytes(size_t bytes) { return (bytes + 63) / 64 * 64; }

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_PROCESSES_COLLECTIVEPARTS_H
