//===- NcclMessages.h - The sizes of messages -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_NCCL_NCCLMESSAGES_H
#define DTC_RUNTIME_FABRICS_NCCL_NCCLMESSAGES_H

#include "runtime/fabrics/Transfers.h"

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace dtc::runtime::nccl {

/// Compares what the ends of each message expect, as NCCL does not. Both are in this process. From
/// any thread.
class NcclMessages {
public:
  /// An end is started. An error, if the other one was started before and expects something else.
  MaybeError start(int64_t from, int64_t to, bool sends, std::span<const TransferTensor> tensors);

private:
  struct Pair {
    std::deque<std::vector<uint64_t>> sent, expected; // one of them is empty
  };
  std::mutex mutex;
  std::map<std::pair<int64_t, int64_t>, Pair> pairs;
};

} // namespace dtc::runtime::nccl

#endif // DTC_RUNTIME_FABRICS_NCCL_NCCLMESSAGES_H
