//===- HeldLaunches.h - Calls that share a launch -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A model has hundreds of parameters, and a launch for each takes longer than the update of most of
// them. So a queue holds back calls of kernels that can take the tensors of many calls in one
// launch (multi-tensor launches), until it gets work of another kind or has to run the calls: for
// an event, a copy, a wait. The launches then have the effect of the calls in their order.
//
// Which calls may share a launch follows from the addresses that they read and write: a call moves
// before those that it has nothing to do with, and no other. So the update of a parameter and the
// conversion of the result to 16 bits, for all parameters in turn, are two launches.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_HELDLAUNCHES_H
#define DTC_RUNTIME_BACKENDS_CUDA_HELDLAUNCHES_H

#include "support/Error.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace dtc::runtime::cuda {

class CudaQueue;

/// The arrays of one call, with `count` elements each.
struct TensorGroup {
  static constexpr size_t kMaxArrays = 8;
  std::array<void *, kMaxArrays> arrays{};
  int64_t count = 0;
};

/// A call that may share a launch.
struct HeldCall {
  struct Range {
    const void *begin;
    size_t bytes;
  };
  /// Launches calls that agree in `shared`; at most kMaxGroups of them.
  using Launch = MaybeError (*)(CudaQueue &queue, const void *shared,
                                std::span<const TensorGroup> groups);

  Launch launch = nullptr;
  /// The bytes of the arguments that all calls of a launch have in common, apart from their
  /// tensors.
  std::vector<std::byte> shared;
  TensorGroup tensors;
  /// All memory that the call reads and writes.
  std::vector<Range> reads, writes;

  /// `value` has no padding, as its bytes are compared.
  template <typename T> void setShared(const T &value) {
    static_assert(std::is_trivially_copyable_v<T>);
    shared.resize(sizeof(T));
    std::memcpy(shared.data(), &value, sizeof(T));
  }
};

/// The calls of a queue that are held back, as the launches that they will be.
class HeldLaunches {
public:
  static constexpr size_t kMaxGroups = 256;

  /// `kernel` is the name for messages.
  void add(const std::string &kernel, HeldCall call);
  bool empty() const { return launches.empty(); }
  /// Launches everything. The first error ends it and names the kernel; nothing is held then.
  MaybeError enqueue(CudaQueue &queue);

private:
  /// A set of addresses.
  class Addresses {
  public:
    void add(HeldCall::Range range);
    bool overlaps(HeldCall::Range range) const;

  private:
    std::map<uintptr_t, uintptr_t> ends; // by the begin of disjoint ranges
  };

  struct Together {
    std::string kernel;
    HeldCall::Launch launch;
    std::vector<std::byte> shared;
    std::vector<TensorGroup> groups;
    Addresses reads, writes;

    bool mustPrecede(const HeldCall &call) const;
    bool takes(const HeldCall &call) const;
    void add(const HeldCall &call);
  };

  std::vector<Together> launches; // in the order in which they will be enqueued
};

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_HELDLAUNCHES_H
