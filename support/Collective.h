//===- Collective.h - Kinds of collectives and what they send -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_COLLECTIVE_H
#define DTC_SUPPORT_COLLECTIVE_H

#include "support/Tensor.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace dtc {

/// The kinds of collectives, with the numbers of plan.proto's Collective.Kind.
enum class CollectiveKind : int {
  AllReduce = 1,
  AllGather = 2,
  ReduceScatter = 3,
  AllToAll = 4,
  Permute = 5
};

inline constexpr std::array kAllCollectiveKinds = {
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

/// Bytes that a device sent, by kind of collective, and in transfers.
struct CommunicatorBytes {
  std::array<uint64_t, kAllCollectiveKinds.size()> byKind{}; // index: CollectiveKind - 1
  uint64_t transfers = 0; // messages to single devices; see runtime/fabrics/Transfers.h

  uint64_t of(CollectiveKind kind) const { return byKind[static_cast<size_t>(kind) - 1]; }
  /// Of collectives and transfers.
  uint64_t total() const;
  CommunicatorBytes &operator+=(const CommunicatorBytes &other);
  bool operator==(const CommunicatorBytes &) const = default;
};

/// The name that plans and reports use: "all_reduce".
const char *name(CollectiveKind kind);

} // namespace dtc

#endif // DTC_SUPPORT_COLLECTIVE_H
