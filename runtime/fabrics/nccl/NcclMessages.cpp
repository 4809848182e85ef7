//===- NcclMessages.cpp - The sizes of messages ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/nccl/NcclMessages.h"

#include <fmt/format.h>

namespace dtc::runtime::nccl {

static MaybeError compare(const std::vector<uint64_t> &sent,
                          const std::vector<uint64_t> &expected) {
  if (sent.size() != expected.size())
    return Error{fmt::format("the message has {} tensors, its receiver expects {}", sent.size(),
                             expected.size())};
  for (size_t i = 0; i < sent.size(); ++i)
    if (sent[i] != expected[i])
      return Error{fmt::format("tensor {} of the message has {} bytes, its receiver expects {}", i,
                               sent[i], expected[i])};
  return std::nullopt;
}

MaybeError NcclMessages::start(int64_t from, int64_t to, bool sends,
                               std::span<const TransferTensor> tensors) {
  std::vector<uint64_t> own;
  for (const TransferTensor &tensor : tensors)
    own.push_back(tensor.bytes);
  std::lock_guard lock(mutex);
  Pair &pair = pairs[{from, to}];
  auto &others = sends ? pair.expected : pair.sent;
  if (others.empty()) {
    (sends ? pair.sent : pair.expected).push_back(std::move(own));
    return std::nullopt;
  }
  std::vector<uint64_t> other = std::move(others.front());
  others.pop_front();
  return sends ? compare(own, other) : compare(other, own);
}

} // namespace dtc::runtime::nccl
