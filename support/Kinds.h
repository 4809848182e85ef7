//===- Kinds.h - Enums that the IR, plans and the runtime share -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The enums that the IR, the plan and the runtime share. Those that plan.proto has too have its
// numbers, which plan/PlanTypes.cpp checks.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_KINDS_H
#define DTC_SUPPORT_KINDS_H

#include "support/EnumNames.h"

#include <array>
#include <cstddef>

namespace dtc {

/// The kind of a collective.
enum class CollectiveKind : int {
  AllReduce = 1,
  AllGather = 2,
  ReduceScatter = 3,
  AllToAll = 4,
  Permute = 5
};
template <> struct EnumNames<CollectiveKind> {
  static constexpr std::array list = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                      "permute"};
};

inline constexpr std::array kAllCollectiveKinds = {
    CollectiveKind::AllReduce, CollectiveKind::AllGather, CollectiveKind::ReduceScatter,
    CollectiveKind::AllToAll, CollectiveKind::Permute};

/// The reduction of values. Of floats, maximum and minimum with a NaN are NaN.
enum class ReductionKind : int { Sum = 1, Max = 2, Min = 3 };
template <> struct EnumNames<ReductionKind> {
  static constexpr std::array list = {"sum", "max", "min"};
};

/// The work of a pipeline stage for a microbatch. Backward is all of the backward pass, or the part
/// that earlier stages wait for; Weight the gradients of parameters that Backward leaves for later.
enum class StagePass : int { Forward = 1, Backward = 2, Weight = 3 };
template <> struct EnumNames<StagePass> {
  static constexpr std::array list = {"forward", "backward", "weight"};
};

/// The lanes of a device: its compute queue, and the work that overlaps with it: collectives,
/// copies to the memory of its host, kernels there, and copies back. The instructions of a lane run
/// in their order.
enum class Lane { Compute, Communication, ToHost, Host, ToDevice };
inline constexpr size_t kNumLanes = 5;

/// The lane of a kernel, by the memory of its operands: whether it reads, and whether it writes,
/// the memory of the host.
constexpr Lane laneOfKernel(bool readsHost, bool writesHost) {
  if (readsHost != writesHost)
    return writesHost ? Lane::ToHost : Lane::ToDevice;
  return writesHost ? Lane::Host : Lane::Compute;
}

/// The content of a buffer.
enum class BufferKind : int {
  Parameter = 1,
  Gradient = 2,
  OptimizerState = 3,
  Activation = 4,
  Input = 5,
  Constant = 6,
  Output = 7,
  MasterWeight = 8,
  Cache = 9
};
template <> struct EnumNames<BufferKind> {
  static constexpr std::array list = {"parameter",  "gradient",      "optimizer_state",
                                      "activation", "input",         "constant",
                                      "output",     "master_weight", "cache"};
};

/// An end of a transfer, by the word before the other device's coordinate.
enum class TransferKind : int { Send = 1, Receive = 2 };
template <> struct EnumNames<TransferKind> {
  static constexpr std::array list = {"send_to", "receive_from"};
};

/// The value of padding: the neutral element of a sum, a maximum or a minimum.
enum class PaddingValue : int { Zero = 1, Lowest = 2, Highest = 3 };
template <> struct EnumNames<PaddingValue> {
  static constexpr std::array list = {"zero", "lowest", "highest"};
};

} // namespace dtc

#endif // DTC_SUPPORT_KINDS_H
