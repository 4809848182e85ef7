//===- Communicator.h - How devices exchange tensors ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_COMMUNICATORS_COMMUNICATOR_H
#define DTC_RUNTIME_COMMUNICATORS_COMMUNICATOR_H

#include "runtime/support/Error.h"
#include "runtime/support/Tensor.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dtc::runtime {

/// The kinds of collectives, with the numbers of plan.proto's Collective.Kind.
enum class CollectiveKind : int {
  AllReduce = 1,
  AllGather = 2,
  ReduceScatter = 3,
  AllToAll = 4,
  Permute = 5
};

inline constexpr std::array allCollectiveKinds = {
    CollectiveKind::AllReduce, CollectiveKind::AllGather, CollectiveKind::ReduceScatter,
    CollectiveKind::AllToAll, CollectiveKind::Permute};

/// What a reduction does, with the numbers of plan.proto's Collective.Reduction. Of floats, maximum
/// and minimum with a NaN are NaN.
enum class Reduction : int { Sum = 1, Max = 2, Min = 3 };

/// What a collective over one group does with one tensor.
struct CollectiveSpec {
  CollectiveKind kind = CollectiveKind::AllReduce;
  Reduction reduction = Reduction::Sum; // of AllReduce and ReduceScatter
  TensorType input;
  int64_t members = 1; // of the group
  int64_t dim = 0;
  int64_t splitDim = 0; // of AllToAll; equal to `dim` for the others
  /// Of Permute: the rank that each rank receives from, a permutation.
  std::shared_ptr<const std::vector<int64_t>> sources;

  /// The type of the output, if the sizes divide as they must.
  TensorType output() const;
  /// Bytes that one member sends with a ring algorithm: 2(n-1)/n of the tensor for AllReduce,
  /// (n-1)/n of the whole (output of AllGather, input of ReduceScatter and AllToAll). Of Permute,
  /// the input: all members count one send, also those that keep what they have.
  uint64_t ringBytes() const;
};

/// Where a member's side of one tensor of a collective lies.
struct CollectiveOperands {
  const void *input = nullptr;
  void *output = nullptr;
};

/// Bytes that a device sent, by kind of collective, and in transfers.
struct CommunicatorBytes {
  std::array<uint64_t, allCollectiveKinds.size()> byKind{}; // index: CollectiveKind - 1
  uint64_t transfers = 0; // messages to single devices; see Transfers.h

  uint64_t of(CollectiveKind kind) const { return byKind[static_cast<size_t>(kind) - 1]; }
  /// Of collectives and transfers.
  uint64_t total() const;
  CommunicatorBytes &operator+=(const CommunicatorBytes &other);
  bool operator==(const CommunicatorBytes &) const = default;
};

/// One device's end of the network. All members of a group call run() for the same collectives in
/// the same order. Not thread-safe, except abort(): it is used by one thread at a time, which need
/// not be the same one.
class Communicator {
public:
  /// A group of devices, valid for the communicator that opened it.
  using Group = size_t;

  virtual ~Communicator() = default;

  /// Opens the group of the devices that differ from this one only on `axes` (spatial axes of the
  /// mesh); ranks are row-major over `axes` in the order given. All devices open the same groups in
  /// the same order.
  virtual Expected<Group> openGroup(const std::vector<std::string> &axes) = 0;

  /// Runs one collective on a bucket of tensors and waits for its end. `specs` differ only in what
  /// they say of their tensors: kind, reduction, members and sources are the same in all.
  /// operands[i] belongs to specs[i]. An output may equal its own input for AllReduce, and must not
  /// overlap any other operand. The bits of a result do not depend on what else is in the bucket.
  /// An error means that another member failed or that the members disagree; the communicator
  /// cannot be used any more.
  MaybeError run(Group group, std::span<const CollectiveSpec> specs,
                 std::span<const CollectiveOperands> operands);
  /// Runs a collective on one tensor.
  MaybeError run(Group group, const CollectiveSpec &spec, const void *input, void *output);

  /// Makes every collective that runs or will run on any device fail, so that nobody waits for a
  /// device that is gone. May be called from any thread.
  virtual void abort() = 0;

  /// What this device has sent since it was made.
  const CommunicatorBytes &sent() const { return bytesSent; }

protected:
  /// Neither span is empty, and both have the same size.
  virtual MaybeError doRun(Group group, std::span<const CollectiveSpec> specs,
                           std::span<const CollectiveOperands> operands) = 0;

private:
  CommunicatorBytes bytesSent;
};

/// The name that plans and reports use: "all_reduce".
const char *name(CollectiveKind kind);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_COMMUNICATORS_COMMUNICATOR_H
