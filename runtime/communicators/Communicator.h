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
#include <string>
#include <vector>

namespace dtc::runtime {

/// The kinds of collectives, with the numbers of plan.proto's Collective.Kind.
enum class CollectiveKind : int { AllReduce = 1, AllGather = 2, ReduceScatter = 3, AllToAll = 4 };

/// What a reduction does, with the numbers of plan.proto's Collective.Reduction. Of floats, maximum
/// and minimum with a NaN are NaN.
enum class Reduction : int { Sum = 1, Max = 2, Min = 3 };

/// A collective over one group, ready to run. Build it with the functions below.
struct CollectiveSpec {
  CollectiveKind kind = CollectiveKind::AllReduce;
  Reduction reduction = Reduction::Sum; // of AllReduce and ReduceScatter
  TensorType input;
  int64_t members = 1; // of the group
  int64_t dim = 0;
  int64_t splitDim = 0; // of AllToAll; equal to `dim` for the others

  /// The type of the output, if the sizes divide as they must.
  TensorType output() const;
  /// Bytes that one member sends with a ring algorithm: 2(n-1)/n of the tensor for AllReduce,
  /// (n-1)/n of the whole (output of AllGather, input of the others) else.
  uint64_t ringBytes() const;
};

/// Bytes that a device sent, by kind of collective.
struct CommunicatorBytes {
  std::array<uint64_t, 4> byKind{}; // index: CollectiveKind - 1

  uint64_t of(CollectiveKind kind) const { return byKind[static_cast<size_t>(kind) - 1]; }
  uint64_t total() const { return byKind[0] + byKind[1] + byKind[2] + byKind[3]; }
  CommunicatorBytes &operator+=(const CommunicatorBytes &other);
  bool operator==(const CommunicatorBytes &) const = default;
};

/// One device's end of the network. All members of a group call run() for the same collectives in
/// the same order. Not thread-safe, except abort().
class Communicator {
public:
  /// A group of devices, valid for the communicator that opened it.
  using Group = size_t;

  virtual ~Communicator() = default;

  /// Opens the group of the devices that differ from this one only on `axes` (spatial axes of the
  /// mesh); ranks are row-major over `axes` in the order given. All devices open the same groups in
  /// the same order.
  virtual Expected<Group> openGroup(const std::vector<std::string> &axes) = 0;
  virtual int64_t groupSize(Group group) const = 0;
  virtual int64_t rankIn(Group group) const = 0;

  /// Runs a collective and waits for its end. `output` may equal `input` for AllReduce and must not
  /// overlap it otherwise. An error means that another member failed or that the members disagree;
  /// the communicator cannot be used any more.
  MaybeError run(Group group, const CollectiveSpec &spec, const void *input, void *output);

  /// Makes every collective that runs or will run on any device fail, so that nobody waits for a
  /// device that is gone. May be called from any thread.
  virtual void abort() = 0;

  /// What this device has sent since it was made.
  const CommunicatorBytes &sent() const { return bytesSent; }

protected:
  virtual MaybeError doRun(Group group, const CollectiveSpec &spec, const void *input,
                           void *output) = 0;

private:
  CommunicatorBytes bytesSent;
};

/// The name that plans and reports use: "all_reduce".
const char *name(CollectiveKind kind);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_COMMUNICATORS_COMMUNICATOR_H
