//===- Collective.h - Collectives and the bytes of their messages ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_COLLECTIVE_H
#define DTC_SUPPORT_COLLECTIVE_H

#include "support/Kinds.h"
#include "support/Tensor.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace dtc {

/// A collective of one tensor over one group.
struct CollectiveSpec {
  CollectiveKind kind = CollectiveKind::AllReduce;
  ReductionKind reduction = ReductionKind::Sum; // of AllReduce and ReduceScatter
  TensorType input;
  int64_t members = 1; // of the group
  int64_t dim = 0;
  int64_t splitDim = 0; // of AllToAll; equal to `dim` for the others
  /// Permute: the rank that each rank receives from, a permutation.
  std::shared_ptr<const std::vector<int64_t>> sources;

  /// The type of the output, if the sizes divide as they must.
  TensorType output() const;
  /// Bytes that one member sends with a ring algorithm: 2(n-1)/n of the tensor for AllReduce,
  /// (n-1)/n of the whole (output of AllGather, input of ReduceScatter and AllToAll). Of Permute,
  /// the input: all members count one send, also members that keep their own tensor.
  uint64_t ringBytes() const;
};

/// Bytes that a device sent, by kind of collective, and in transfers.
struct CommunicatorBytes {
  std::array<uint64_t, kAllCollectiveKinds.size()> byKind{}; // index: indexOf(kind)
  uint64_t transfers = 0; // messages to single devices; see runtime/fabrics/Transfers.h

  uint64_t of(CollectiveKind kind) const { return byKind[indexOf(kind)]; }
  /// The bytes of collectives and transfers together.
  uint64_t total() const;
  CommunicatorBytes &operator+=(const CommunicatorBytes &other);
  bool operator==(const CommunicatorBytes &) const = default;
};

} // namespace dtc

#endif // DTC_SUPPORT_COLLECTIVE_H
