//===- CallGroups.cpp - Kernel calls that are computed together -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/fusion/CallGroups.h"

#include "plan/ClosingInstructions.h"
#include "plan/PlanTypes.h"
#include "plan/PlanVerifier.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

namespace dtc {

namespace {

/// How far apart calls of a group may be, and how many groups are tried for a call.
constexpr int kReach = 24;
constexpr int kMostTries = 6;

/// A range of bytes of the arena that includes all slots.
struct ByteRange {
  uint64_t begin = 0, end = 0;
  bool overlaps(const ByteRange &other) const { return begin < other.end && other.begin < end; }
};

/// The groups of a run of kernel calls without another instruction between them.
class Grouper {
public:
  Grouper(const plan::Program &program, const plan::Task &task, const ValueReaders &readers,
          std::span<const AxisCoordinate> axes, const FusionRules &rules, CallGroups &result)
      : program(program), task(task), readers(readers), axes(axes), rules(rules), result(result),
        places(static_cast<size_t>(task.instructions_size())) {
    for (size_t i = 0; i < places.size(); ++i)
      places[i] = static_cast<int>(i);
  }

  void run(int begin, int end) {
    runBegin = begin;
    size_t first = result.groups.size();
    for (int call = begin; call < end; ++call)
      join(call);
    for (size_t i = first; i < result.groups.size(); ++i)
      result.groups[i].fused = describe(result.groups[i].calls);
    leaveOutCopied(begin, end);
  }

private:
  const plan::KernelCall &kernel(int call) const { return task.instructions(call).kernel(); }

  const ByteRange &rangeOf(uint32_t index) const {
    auto [known, isNew] = ranges.try_emplace(index);
    if (isNew) {
      const plan::Buffer &buffer = program.buffers(static_cast<int>(index));
      uint64_t bytes =
          (typeOf(buffer).numBytes() + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
      known->second = {buffer.offset(),
                       buffer.offset() + bytes * std::max<uint64_t>(buffer.slots(), 1)};
    }
    return known->second;
  }

  const KernelSignature &signature(int call) const {
    auto known = signatures.find(call);
    if (known == signatures.end())
      known = signatures.emplace(call, signatureOf(program, kernel(call), axes)).first;
    return known->second;
  }

  bool anyOverlap(const google::protobuf::RepeatedField<uint32_t> &a,
                  const google::protobuf::RepeatedField<uint32_t> &b) const {
    for (uint32_t x : a)
      for (uint32_t y : b)
        if (rangeOf(x).overlaps(rangeOf(y)))
          return true;
    return false;
  }

  /// Whether two calls may not change places.
  bool haveOrder(int a, int b) const {
    return anyOverlap(kernel(a).outputs(), kernel(b).outputs()) ||
           anyOverlap(kernel(a).outputs(), kernel(b).inputs()) ||
           anyOverlap(kernel(a).inputs(), kernel(b).outputs());
  }

  /// Whether a call may not be moved past another one, with the calls that the group of the other
  /// one has copies of.
  bool isHeldBy(int call, int other) const {
    if (haveOrder(call, other))
      return true;
    std::optional<size_t> group = result.groupOf[static_cast<size_t>(other)];
    return group && std::ranges::any_of(result.groups[*group].calls, [&](int copy) {
             return isCopied(kernel(copy)) &&
                    anyOverlap(kernel(call).outputs(), kernel(copy).inputs());
           });
  }

  /// Calls f(i) for the calls outside of `group` that are computed between two places; ends where
  /// it is true.
  template <typename F> bool anyBetween(int a, int b, const std::vector<int> &group, F f) const {
    auto [low, high] = std::minmax(a, b);
    for (int i = std::max(runBegin, low - 2 * kReach); i <= high; ++i) {
      int place = places[static_cast<size_t>(i)];
      if (place > low && place < high && !std::binary_search(group.begin(), group.end(), i) && f(i))
        return true;
    }
    return false;
  }

  static bool isCopied(const plan::KernelCall &call) {
    return call.kernel() == "slice" || call.kernel() == "broadcast";
  }

  /// The calls of this run that make inputs of the call and may be copied.
  std::vector<int> copiesFor(int call) const {
    std::vector<int> copies;
    for (uint32_t input : kernel(call).inputs())
      if (auto maker = makers.find(readers.valueOf(input));
          maker != makers.end() && isCopied(kernel(maker->second)))
        copies.push_back(maker->second);
    return copies;
  }

  /// Whether the operand of a call that may be copied is the same at another place.
  bool mayCopy(int call, int place, const std::vector<int> &group) const {
    return !anyBetween(call, place, group, [&](int i) {
      return anyOverlap(kernel(call).inputs(), kernel(i).outputs());
    });
  }

  bool isRelated(int a, int b) const {
    for (uint32_t input : kernel(b).inputs()) {
      uint32_t value = readers.valueOf(input);
      auto is = [&](uint32_t other) { return readers.valueOf(other) == value; };
      if (std::ranges::any_of(kernel(a).outputs(), is) ||
          std::ranges::any_of(kernel(a).inputs(), is))
        return true;
    }
    return false;
  }

  /// Makes the call a part of a group before it, or the first of a group with copies.
  void join(int call) {
    std::vector<size_t> tried;
    int tries = 0;
    for (int i = call - 1; i >= std::max(runBegin, call - kReach) && tries < kMostTries; --i) {
      std::optional<size_t> group = result.groupOf[static_cast<size_t>(i)];
      if (isCopied(kernel(i)) || !isRelated(i, call) ||
          (group && std::ranges::find(tried, *group) != tried.end()))
        continue;
      if (group)
        tried.push_back(*group);
      ++tries;
      if (tryJoin(call, i, group))
        break;
    }
    if (!result.groupOf[static_cast<size_t>(call)])
      if (std::vector<int> copies = copiesFor(call); !copies.empty())
        (void)tryMerge({call}, copies, call, std::nullopt);
    for (uint32_t output : kernel(call).outputs())
      makers[readers.valueOf(output)] = call;
  }

  /// Tries to join a call with the group of call `other`, or with that call alone.
  bool tryJoin(int call, int other, std::optional<size_t> group) {
    std::vector<int> calls = group ? result.groups[*group].calls : std::vector<int>{other};
    int place = group ? result.groups[*group].place : other;
    calls.push_back(call);
    for (const std::vector<int> &copies : {copiesFor(call), std::vector<int>{}}) {
      for (int at : {place, call})
        if (tryMerge(calls, copies, at, group))
          return true;
      if (copies.empty())
        break;
    }
    return false;
  }

  /// Makes a group of these calls and of `copies`, instead of `replaced`, if there is a kernel for
  /// it.
  bool tryMerge(std::vector<int> calls, const std::vector<int> &copies, int place,
                std::optional<size_t> replaced) {
    calls.insert(calls.end(), copies.begin(), copies.end());
    std::sort(calls.begin(), calls.end());
    calls.erase(std::unique(calls.begin(), calls.end()), calls.end());
    std::vector<std::string_view> names;
    for (int member : calls)
      names.push_back(kernel(member).kernel());
    if (!rules.mayFuse(names))
      return false;
    for (int member : calls) {
      bool isFixed = isCopied(kernel(member))
                         ? !mayCopy(member, place, calls)
                         : anyBetween(places[static_cast<size_t>(member)], place, calls,
                                      [&](int i) { return isHeldBy(member, i); });
      if (isFixed)
        return false;
    }
    if (!rules.fuses(calls, describe(calls)))
      return false;
    size_t index = replaced.value_or(result.groups.size());
    if (!replaced)
      result.groups.emplace_back();
    for (int member : calls)
      if (!isCopied(kernel(member))) {
        result.groupOf[static_cast<size_t>(member)] = index;
        places[static_cast<size_t>(member)] = place;
      }
    result.groups[index] = {std::move(calls), place, {}};
    return true;
  }

  FusedCalls describe(const std::vector<int> &calls) const {
    FusedCalls fused;
    std::vector<uint32_t> buffers; // by value
    std::map<uint32_t, size_t> numbers, reads;
    auto add = [&](uint32_t buffer) {
      auto [number, isNew] = numbers.try_emplace(readers.valueOf(buffer), buffers.size());
      if (isNew) {
        buffers.push_back(number->first);
        fused.values.emplace_back();
      }
      return number->second;
    };
    for (size_t i = 0; i < calls.size(); ++i) {
      FusedCalls::Call &call = fused.calls.emplace_back();
      call.signature = signature(calls[i]);
      for (uint32_t input : kernel(calls[i]).inputs()) {
        call.inputs.push_back(add(input));
        ++reads[readers.valueOf(input)];
      }
      for (uint32_t output : kernel(calls[i]).outputs()) {
        call.outputs.push_back(add(output));
        fused.values[call.outputs.back()].maker = i;
      }
    }
    for (size_t i = 0; i < buffers.size(); ++i) {
      FusedCalls::Value &value = fused.values[i];
      if (!value.maker)
        continue;
      // Other readers of a copied call have its result from the call itself, or from copies of
      // their own.
      value.isKept =
          !isCopied(kernel(calls[*value.maker])) && readers.count(buffers[i]) > reads[buffers[i]];
      for (size_t j = 0; j < buffers.size(); ++j)
        if (!fused.values[j].maker && rangeOf(buffers[i]).overlaps(rangeOf(buffers[j])))
          fused.overlaps.push_back({j, i, liesAs(buffers[i], buffers[j])});
    }
    return fused;
  }

  /// Whether two values have the same bytes, for each microbatch.
  bool liesAs(uint32_t a, uint32_t b) const {
    const plan::Buffer &first = program.buffers(static_cast<int>(a));
    const plan::Buffer &second = program.buffers(static_cast<int>(b));
    return first.offset() == second.offset() && first.slots() == second.slots() &&
           first.has_slot_map() == second.has_slot_map() && first.slot_map() == second.slot_map() &&
           typeOf(first).numBytes() == typeOf(second).numBytes();
  }

  /// Calls whose readers all have copies of their own are part of the last group with one.
  void leaveOutCopied(int begin, int end) {
    std::map<int, std::pair<size_t, size_t>> copies; // readers that have one, and the last group
    for (size_t index = 0; index < result.groups.size(); ++index)
      for (int call : result.groups[index].calls) {
        if (call < begin || call >= end || !isCopied(kernel(call)))
          continue;
        uint32_t value = readers.valueOf(kernel(call).outputs(0));
        auto &[count, last] = copies[call];
        last = index;
        for (int reader : result.groups[index].calls)
          count += static_cast<size_t>(
              std::ranges::count_if(kernel(reader).inputs(), [&](uint32_t input) {
                return readers.valueOf(input) == value;
              }));
      }
    for (const auto &[call, found] : copies)
      if (found.first == readers.count(kernel(call).outputs(0)))
        result.groupOf[static_cast<size_t>(call)] = found.second;
  }

  const plan::Program &program;
  const plan::Task &task;
  const ValueReaders &readers;
  std::span<const AxisCoordinate> axes;
  const FusionRules &rules;
  CallGroups &result;
  std::vector<int> places;        // by instruction: where it is computed
  std::map<uint32_t, int> makers; // by value: the call of this run that makes it
  int runBegin = 0;
  // Found when they are first asked for: calls are tried with many others.
  mutable std::unordered_map<uint32_t, ByteRange> ranges;      // by buffer
  mutable std::unordered_map<int, KernelSignature> signatures; // by call
};

} // namespace

/// Whether it is a kernel call on memory of the device.
static bool isOfDevice(const plan::Program &program, const plan::Instruction &instruction) {
  return instruction.has_kernel() && laneOf(program, instruction) == Lane::Compute;
}

/// Which instructions of the task run for the last microbatch alone; empty if none does.
static std::vector<bool> closingOf(const plan::Program &program, const plan::Task &task) {
  std::vector<bool> closing;
  ClosingInstructions all(program);
  for (int t = 0; all.any() && t < program.tasks_size(); ++t)
    if (&program.tasks(t) == &task)
      for (int i = 0; i < task.instructions_size(); ++i)
        closing.push_back(all.contains(static_cast<uint32_t>(t), i));
  return closing;
}

CallGroups groupCalls(const plan::Program &program, const plan::Task &task,
                      const ValueReaders &readers, std::span<const AxisCoordinate> axes,
                      const FusionRules &rules) {
  CallGroups result;
  int size = task.instructions_size();
  result.groupOf.resize(static_cast<size_t>(size));
  const std::vector<bool> closing = closingOf(program, task);
  auto runLikeBegin = [&](int begin, int call) {
    return closing.empty() ||
           closing[static_cast<size_t>(begin)] == closing[static_cast<size_t>(call)];
  };
  for (int begin = 0; begin < size;) {
    int end = begin;
    while (end < size && isOfDevice(program, task.instructions(end)) && runLikeBegin(begin, end))
      ++end;
    if (end > begin)
      Grouper(program, task, readers, axes, rules, result).run(begin, end);
    begin = std::max(end, begin + 1);
  }
  return result;
}

} // namespace dtc
