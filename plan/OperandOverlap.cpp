//===- OperandOverlap.cpp - Operands that share bytes ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/OperandOverlap.h"

#include "plan/KernelTable.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace dtc {

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

namespace {

/// The outputs of a kernel call, to look for those that may share bytes with a buffer as
/// PlanContext::mayShareBytes() says: buffers of one class, whose copies advance together, if their
/// first copies do, others if any copies do.
class OutputRanges {
public:
  OutputRanges(const PlanContext &context, const plan::KernelCall &call) : context(context) {
    for (int o = 0; o < call.outputs_size(); ++o) {
      uint32_t buffer = call.outputs(o);
      if (context.ranges[buffer].empty())
        continue;
      all.push_back({context.ranges[buffer], classOf(buffer), o});
      byClass[classOf(buffer)].push_back({context.copies[buffer].first, classOf(buffer), o});
    }
    sort(all);
    for (auto &[kind, outputs] : byClass)
      sort(outputs);
    reaches.emplace_back();
    for (const Output &output : all)
      reaches.push_back(reachWith(reaches.back(), output));
  }

  /// Two outputs that may share bytes, or none.
  std::optional<std::pair<int, int>> sharing() const {
    for (const auto &[kind, outputs] : byClass)
      for (size_t i = 1; i < outputs.size(); ++i)
        if (outputs[i - 1].range.overlaps(outputs[i].range))
          return std::minmax(outputs[i - 1].number, outputs[i].number);
    for (size_t i = 1; i < all.size(); ++i)
      if (const Output *other = ofOtherClass(i, all[i].kind, all[i].range.begin))
        return std::minmax(other->number, all[i].number);
    return std::nullopt;
  }

  /// An output that may share bytes with the buffer, or none. Expects that no two outputs share
  /// any, so that one that has all bytes of the buffer is the only one.
  std::optional<int> sharingWith(uint32_t buffer) const {
    const ByteRange &range = context.ranges[buffer];
    if (range.empty())
      return std::nullopt;
    if (auto it = byClass.find(classOf(buffer)); it != byClass.end()) {
      const ByteRange &first = context.copies[buffer].first;
      // Apart from each other, they end in the order in which they begin.
      auto output =
          std::partition_point(it->second.begin(), it->second.end(),
                               [&](const Output &o) { return o.range.end <= first.begin; });
      if (output != it->second.end() && output->range.overlaps(first))
        return output->number;
    }
    auto behind = std::partition_point(all.begin(), all.end(),
                                       [&](const Output &o) { return o.range.begin < range.end; });
    const Output *other =
        ofOtherClass(static_cast<size_t>(behind - all.begin()), classOf(buffer), range.begin);
    return other ? std::optional(other->number) : std::nullopt;
  }

private:
  // See BufferSlots::advancesLike().
  using Class = std::tuple<uint32_t, uint64_t, std::optional<uint32_t>>;
  struct Output {
    ByteRange range;
    Class kind;
    int number;
  };
  /// Among some outputs the one with the last end, and the one with the last end whose class is
  /// another.
  struct Reach {
    const Output *last = nullptr;
    const Output *lastOfOther = nullptr;
  };

  Class classOf(uint32_t buffer) const {
    const BufferSlots &copies = context.copies[buffer];
    if (copies.count() == 1)
      return {1, 0, std::nullopt};
    if (!copies.map)
      return {copies.count(), copies.stride, std::nullopt};
    return {copies.count(), copies.stride,
            context.program.buffers(static_cast<int>(buffer)).slot_map()};
  }
  static void sort(std::vector<Output> &outputs) {
    std::sort(outputs.begin(), outputs.end(), [](const Output &a, const Output &b) {
      return std::pair(a.range.begin, a.number) < std::pair(b.range.begin, b.number);
    });
  }
  static Reach reachWith(Reach reach, const Output &output) {
    auto later = [&](const Output *other) {
      return !other || output.range.end > other->range.end ? &output : other;
    };
    if (!reach.last || reach.last->kind == output.kind)
      return {later(reach.last), reach.lastOfOther};
    if (later(reach.last) == &output)
      return {&output, reach.last};
    return {reach.last, later(reach.lastOfOther)};
  }
  /// One of the first `count` outputs that is of another class and ends after `begin`, or null.
  const Output *ofOtherClass(size_t count, const Class &kind, uint64_t begin) const {
    const Reach &reach = reaches[count];
    const Output *other = reach.last && reach.last->kind != kind ? reach.last : reach.lastOfOther;
    return other && other->range.end > begin ? other : nullptr;
  }

  const PlanContext &context;
  std::vector<Output> all;                      // with all copies, by their first bytes
  std::map<Class, std::vector<Output>> byClass; // with their first copies, by their first bytes
  std::vector<Reach> reaches;                   // of the first n of `all`
};

} // namespace

MaybeError checkKernelOverlap(const PlanContext &context, const plan::KernelCall &call) {
  OutputRanges outputs(context, call);
  if (auto pair = outputs.sharing())
    return Error{fmt::format("outputs {} and {} share bytes of the arena (buffers {} and {})",
                             pair->first, pair->second, call.outputs(pair->first),
                             call.outputs(pair->second))};
  for (int i = 0; i < call.inputs_size(); ++i) {
    uint32_t input = call.inputs(i);
    std::optional<int> o = outputs.sharingWith(input);
    if (!o)
      continue;
    uint32_t output = call.outputs(*o);
    bool sameBytes =
        context.areSameBytes(output, input) && context.types[output] == context.types[input];
    if (!sameBytes || !mayRunInPlace(call.kernel(), i, *o))
      return Error{fmt::format("output {} (buffer {}, {}) shares bytes of the arena with input "
                               "{} (buffer {}, {}), which this kernel does not allow",
                               *o, output, context.types[output].str(), i, input,
                               context.types[input].str())};
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Collectives and transfers
//===----------------------------------------------------------------------===//

MaybeError checkBucketOverlap(const PlanContext &context, const plan::Collective &collective) {
  std::vector<int> order; // of the tensors, by the first byte of their outputs
  auto outputOf = [&](int tensor) -> const ByteRange & {
    return context.ranges[collective.tensors(tensor).output()];
  };
  auto share = [](const char *what, int other, int tensor) {
    return Error{fmt::format("{} of tensor {} and the output of tensor {} share bytes of the arena",
                             what, other, tensor)};
  };
  for (int i = 0; i < collective.tensors_size(); ++i)
    if (!outputOf(i).empty())
      order.push_back(i);
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return outputOf(a).begin < outputOf(b).begin; });
  for (size_t i = 1; i < order.size(); ++i)
    if (outputOf(order[i - 1]).overlaps(outputOf(order[i])))
      return share("the output", order[i - 1], order[i]);
  for (int i = 0; i < collective.tensors_size(); ++i) {
    const ByteRange &input = context.ranges[collective.tensors(i).input()];
    // The first output that ends after the input's begin. It is the tensor's own only if that is
    // in place, and then no other one overlaps the input.
    auto it = std::partition_point(order.begin(), order.end(),
                                   [&](int tensor) { return outputOf(tensor).end <= input.begin; });
    if (it != order.end() && *it != i && outputOf(*it).overlaps(input))
      return share("the input", i, *it);
  }
  return std::nullopt;
}

MaybeError checkReceivedApart(const PlanContext &context, const plan::Transfer &transfer) {
  std::vector<uint32_t> order;
  for (uint32_t buffer : transfer.buffers())
    if (!context.ranges[buffer].empty())
      order.push_back(buffer);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return context.ranges[a].begin < context.ranges[b].begin;
  });
  for (size_t i = 1; i < order.size(); ++i)
    if (context.ranges[order[i - 1]].overlaps(context.ranges[order[i]]))
      return Error{fmt::format("receives buffers {} and {}, which share bytes of the arena",
                               order[i - 1], order[i])};
  return std::nullopt;
}

} // namespace dtc
