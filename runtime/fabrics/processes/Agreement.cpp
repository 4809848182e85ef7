//===- Agreement.cpp - Small values of all processes -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/processes/Agreement.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace dtc::runtime {

static constexpr int64_t kReduceTag = 0, kBroadcastTag = 1;

namespace {

/// The first message of a text: its number of bytes, and as many of them as fit.
struct Head {
  uint64_t bytes = 0;
  std::array<char, 504> first{};
};

/// A process's place in a binomial tree below `root`: process p, counted from there, is below that
/// without its lowest bit.
struct Tree {
  Tree(const Messages &messages, int64_t root)
      : root(root), count(messages.numProcesses()),
        place((messages.process() - root + count) % count) {
    lowest = place == 0 ? count : place & -place;
  }

  int64_t processAt(int64_t at) const { return (at + root) % count; }
  bool hasParent() const { return place != 0; }
  int64_t parent() const { return processAt(place - lowest); }
  /// Calls child(process) for each, the one with the fewest below it first.
  template <typename Child> MaybeError forEachChild(const Child &child) const {
    for (int64_t bit = 1; bit < lowest && place + bit < count; bit *= 2)
      if (MaybeError error = child(processAt(place + bit)))
        return error;
    return std::nullopt;
  }

  int64_t root, count, place, lowest;
};

int64_t combine(ReductionKind reduction, int64_t a, int64_t b) {
  switch (reduction) {
  case ReductionKind::Sum:
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  case ReductionKind::Max:
    return std::max(a, b);
  case ReductionKind::Min:
    return std::min(a, b);
  }
  return a;
}

} // namespace

Expected<std::string> broadcast(Messages &messages, int64_t from, std::string bytes) {
  messages.beginAgreement();
  if (MaybeError error = messages.failure())
    return *error;
  Tree tree(messages, from);
  std::unique_ptr<MessageBatch> batch = messages.openBatch();
  Head head;
  auto rest = [&]() -> MessagePart {
    size_t first = std::min(bytes.size(), head.first.size());
    return {reinterpret_cast<std::byte *>(bytes.data()) + first, bytes.size() - first};
  };
  MessagePart headPart = MessagePart::of(head);
  if (tree.hasParent()) {
    MaybeError error = batch->receive(tree.parent(), kBroadcastTag, {&headPart, 1});
    if (!error)
      error = batch->wait();
    if (error)
      return *error;
    bytes.assign(head.bytes, '\0');
    std::memcpy(bytes.data(), head.first.data(), std::min(bytes.size(), head.first.size()));
    if (MessagePart part = rest(); part.bytes > 0) {
      error = batch->receive(tree.parent(), kBroadcastTag, {&part, 1});
      if (!error)
        error = batch->wait();
      if (error)
        return *error;
    }
  } else {
    head.bytes = bytes.size();
    std::memcpy(head.first.data(), bytes.data(), std::min(bytes.size(), head.first.size()));
  }
  MaybeError error = tree.forEachChild([&](int64_t child) -> MaybeError {
    if (MaybeError failed = batch->send(child, kBroadcastTag, {&headPart, 1}))
      return failed;
    MessagePart part = rest();
    return part.bytes > 0 ? batch->send(child, kBroadcastTag, {&part, 1}) : std::nullopt;
  });
  if (!error)
    error = batch->wait();
  if (error)
    return *error;
  return bytes;
}

Expected<int64_t> agree(Messages &messages, ReductionKind reduction, int64_t value) {
  messages.beginAgreement();
  if (MaybeError error = messages.failure())
    return *error;
  Tree tree(messages, /*root=*/0);
  std::unique_ptr<MessageBatch> batch = messages.openBatch();
  int64_t other = 0;
  MessagePart otherPart = MessagePart::of(other), part = MessagePart::of(value);
  MaybeError error = tree.forEachChild([&](int64_t child) -> MaybeError {
    if (MaybeError failed = batch->receive(child, kReduceTag, {&otherPart, 1}))
      return failed;
    if (MaybeError failed = batch->wait())
      return failed;
    value = combine(reduction, value, other);
    return std::nullopt;
  });
  if (!error && tree.hasParent()) {
    error = batch->send(tree.parent(), kReduceTag, {&part, 1});
    if (!error)
      error = batch->wait();
  }
  if (error)
    return *error;
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  Expected<std::string> all = broadcast(messages, 0, std::move(bytes));
  if (!all)
    return all.error();
  std::memcpy(&value, all->data(), sizeof(value));
  return value;
}

Expected<std::vector<double>> gather(Messages &messages, double value) {
  messages.beginAgreement();
  if (MaybeError error = messages.failure())
    return *error;
  Tree tree(messages, /*root=*/0);
  std::unique_ptr<MessageBatch> batch = messages.openBatch();
  // The values of this process and of those below it, whose numbers follow its own. A child has as
  // many processes below it as there are between it and this one.
  std::vector<double> values(static_cast<size_t>(std::min(tree.lowest, tree.count - tree.place)));
  values.front() = value;
  auto partFrom = [&](int64_t first, int64_t most) {
    size_t at = static_cast<size_t>(first);
    size_t count = std::min(values.size() - at, static_cast<size_t>(most));
    return MessagePart{reinterpret_cast<std::byte *>(values.data() + at), count * sizeof(double)};
  };
  MaybeError error = tree.forEachChild([&](int64_t child) {
    MessagePart part = partFrom(child - tree.place, child - tree.place);
    return batch->receive(child, kReduceTag, {&part, 1});
  });
  if (!error)
    error = batch->wait();
  if (!error && tree.hasParent()) {
    MessagePart part = partFrom(0, tree.lowest);
    error = batch->send(tree.parent(), kReduceTag, {&part, 1});
    if (!error)
      error = batch->wait();
    values.clear();
  }
  if (error)
    return *error;
  return values;
}

} // namespace dtc::runtime
