//===- OuterFragments.cpp - Outer steps of parts of the parameters -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/OuterFragments.h"

#include "plan/PlanTypes.h"
#include "support/OuterEntries.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace dtc {

bool OuterFragments::isSentAfter(int64_t fragment, int64_t step, int64_t every) const {
  auto count = static_cast<int64_t>(entries.size());
  return step > 0 && (step - every / count * (fragment + 1)) % every == 0;
}

bool OuterFragments::isAppliedAfter(int64_t fragment, int64_t step, int64_t every) const {
  return isSentAfter(fragment, step - delay, every);
}

/// The whole text as a number that is not negative.
static std::optional<int64_t> readCount(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    return std::nullopt;
  return value;
}

namespace {
struct EntryName {
  const plan::Plan *OuterFragments::Entries::*part;
  int64_t fragment = 0;
  std::optional<int64_t> delay; ///< of what applies
};
} // namespace

static bool isOfFragment(std::string_view name) {
  return name.starts_with(kOuterTakeEntry) || name.starts_with(kOuterSendEntry) ||
         name.starts_with(kOuterApplyEntry);
}

/// The parts of the name of an entry point that isOfFragment(); none if they are not as expected.
static std::optional<EntryName> parseName(std::string_view name) {
  using Entries = OuterFragments::Entries;
  std::string_view prefix = kOuterApplyEntry, after = kOuterDelay;
  EntryName result{&Entries::apply, 0, std::nullopt};
  if (name.starts_with(prefix)) {
    size_t place = std::min(name.find(after), name.size());
    result.delay = readCount(name.substr(std::min(place + after.size(), name.size())));
    if (!result.delay)
      return std::nullopt;
    name = name.substr(0, place);
  } else {
    bool takes = name.starts_with(kOuterTakeEntry);
    result.part = takes ? &Entries::take : &Entries::send;
    prefix = takes ? kOuterTakeEntry : kOuterSendEntry;
  }
  std::optional<int64_t> fragment = readCount(name.substr(prefix.size()));
  if (!fragment || *fragment >= kMaxOuterFragments)
    return std::nullopt;
  result.fragment = *fragment;
  return result;
}

Expected<OuterFragments> outerFragmentsOf(const plan::Plan &plan) {
  OuterFragments result;
  std::optional<int64_t> delay;
  for (const plan::Plan &entry : plan.entry_points()) {
    if (!isOfFragment(entry.entry()))
      continue;
    std::optional<EntryName> name = parseName(entry.entry());
    if (!name)
      return Error{fmt::format("the entry point \"{}\" is of no fragment; expected \"{}K\", "
                               "\"{}K\" or \"{}K{}D\" with a K from 0 to {} and a number of "
                               "steps D",
                               entry.entry(), kOuterTakeEntry, kOuterSendEntry, kOuterApplyEntry,
                               kOuterDelay, kMaxOuterFragments - 1)};
    if (name->delay && delay.value_or(*name->delay) != *name->delay)
      return Error{fmt::format("the entry point \"{}\" applies a fragment after {} steps, another "
                               "one after {}; expected one delay for all fragments",
                               entry.entry(), *name->delay, *delay)};
    delay = name->delay ? name->delay : delay;
    auto number = static_cast<size_t>(name->fragment);
    result.entries.resize(std::max(result.entries.size(), number + 1));
    result.entries[number].*name->part = &entry;
  }
  for (size_t number = 0; number < result.entries.size(); ++number)
    if (const OuterFragments::Entries &each = result.entries[number];
        !each.take || !each.send || !each.apply)
      return Error{fmt::format("fragment {} of {} has no entry point that {} it; expected one that "
                               "takes, one that sends and one that applies for each",
                               number, result.entries.size(),
                               !each.take   ? "takes"
                               : !each.send ? "sends"
                                            : "applies")};
  if (!result.entries.empty() && findEntryPoint(plan, kOuterStepEntry))
    return Error{fmt::format("the plan has the entry points \"{}\" and \"{}\"; expected outer "
                             "steps of all parameters or of fragments, not both",
                             kOuterStepEntry, result.entries.front().send->entry())};
  result.delay = delay.value_or(0);
  return result;
}

/// The end of the largest arena that program `number` has in an entry point that sends no fragment.
static uint64_t endOfOthers(const plan::Plan &plan, int number) {
  uint64_t end = plan.programs(number).arena_bytes();
  for (const plan::Plan &entry : plan.entry_points())
    if (!entry.entry().starts_with(kOuterSendEntry))
      end = std::max(end, entry.programs(number).arena_bytes());
  return end;
}

/// The names of the states that any program of the entry point updates.
static std::set<std::string> updatedStates(const plan::Plan &entry) {
  std::set<std::string> names;
  for (const plan::Program &program : entry.programs())
    for (const plan::State &state : program.states())
      if (state.has_update())
        names.insert(state.name());
  return names;
}

/// The buffers that the instructions and outputs of a program have as operands; a view is its
/// buffer.
static std::set<uint32_t> operandsOf(const plan::Program &program) {
  std::set<uint32_t> operands;
  auto add = [&](uint32_t index) {
    const plan::Buffer &buffer = program.buffers(static_cast<int>(index));
    operands.insert(buffer.has_view_of() ? buffer.view_of() : index);
  };
  for (const plan::Task &task : program.tasks())
    for (const plan::Instruction &instruction : task.instructions()) {
      std::ranges::for_each(instruction.kernel().inputs(), add);
      std::ranges::for_each(instruction.kernel().outputs(), add);
      for (const plan::CollectiveTensor &tensor : instruction.collective().tensors()) {
        add(tensor.input());
        add(tensor.output());
      }
    }
  for (const plan::Transfer &transfer : program.transfers())
    std::ranges::for_each(transfer.buffers(), add);
  for (const plan::Output &output : program.outputs())
    add(output.buffer());
  return operands;
}

/// The names of the states that any program of the entry point reads.
static std::set<std::string> readStates(const plan::Plan &entry) {
  std::set<std::string> names;
  for (const plan::Program &program : entry.programs()) {
    std::set<uint32_t> operands = operandsOf(program);
    for (const plan::State &state : program.states())
      if (operands.count(state.buffer()))
        names.insert(state.name());
  }
  return names;
}

/// Checks the operands of a program that sends the states `pending`, while others use their arenas
/// up to `end`.
static MaybeError checkSendingProgram(const plan::Program &program,
                                      const std::set<std::string> &pending, uint64_t end) {
  if (program.transfers_size() > 0)
    return Error{"it has transfers; expected collectives alone, as other entry points run beside "
                 "and may send over the same channels"};
  std::map<uint32_t, std::string> states; // by buffer
  std::map<uint64_t, uint64_t> places;    // of those that are pending, with their bytes
  for (const plan::State &state : program.states()) {
    states.emplace(state.buffer(), state.name());
    const plan::Buffer &buffer = program.buffers(static_cast<int>(state.buffer()));
    if (pending.count(state.name()))
      places.emplace(buffer.offset(), typeOf(buffer).numBytes());
  }
  for (uint32_t index : operandsOf(program)) {
    const plan::Buffer &buffer = program.buffers(static_cast<int>(index));
    if (buffer.memory() != plan::Buffer::DEVICE)
      return Error{fmt::format(
          "buffer {} is in the memory of the host, expected that of the device", index)};
    auto place = places.find(buffer.offset());
    if (buffer.offset() >= end ||
        (place != places.end() && typeOf(buffer).numBytes() <= place->second))
      continue;
    if (auto state = states.find(index); state != states.end())
      return Error{fmt::format("it uses the state \"{}\", which it does not update; other entry "
                               "points run beside, which may",
                               state->second)};
    return Error{fmt::format("buffer {} is at byte {}; expected it at {} or behind, as other entry "
                             "points run beside",
                             index, buffer.offset(), end)};
  }
  return std::nullopt;
}

MaybeError checkSentBeside(const plan::Plan &plan, const OuterFragments &fragments) {
  if (fragments.entries.empty())
    return std::nullopt;
  struct Use {
    const plan::Plan *entry;
    std::set<std::string> updated, read;
  };
  std::vector<Use> uses = {{&plan, updatedStates(plan), readStates(plan)}};
  for (const plan::Plan &entry : plan.entry_points())
    uses.push_back({&entry, updatedStates(entry), readStates(entry)});
  for (const OuterFragments::Entries &fragment : fragments.entries) {
    const plan::Plan &send = *fragment.send;
    std::set<std::string> pending = updatedStates(send);
    for (int number = 0; number < send.programs_size(); ++number)
      if (MaybeError error =
              checkSendingProgram(send.programs(number), pending, endOfOthers(plan, number)))
        return error->inContext(
            fmt::format("entry point \"{}\", program {}", send.entry(), number));
    for (const Use &use : uses) {
      if (use.entry == &send || use.entry == fragment.take)
        continue;
      for (const std::string &name : pending)
        if (use.updated.count(name))
          return Error{fmt::format("entry point \"{}\" updates the state \"{}\", which \"{}\" "
                                   "sends; expected that of \"{}\" alone",
                                   use.entry->entry(), name, send.entry(), fragment.take->entry())};
        else if (use.entry != fragment.apply && use.read.count(name))
          return Error{fmt::format("entry point \"{}\" reads the state \"{}\" while \"{}\" may "
                                   "send it; expected that of \"{}\" alone",
                                   use.entry->entry(), name, send.entry(),
                                   fragment.apply->entry())};
    }
  }
  return std::nullopt;
}

std::vector<const plan::Plan *> outerReductionsOf(const plan::Plan &plan) {
  std::vector<const plan::Plan *> reductions;
  for (const plan::Plan &entry : plan.entry_points())
    if (entry.entry() == kOuterStepEntry || entry.entry().starts_with(kOuterSendEntry))
      reductions.push_back(&entry);
  return reductions;
}

MaybeError checkOuterEvery(const OuterFragments &fragments, int64_t every) {
  auto count = static_cast<int64_t>(fragments.entries.size());
  if (count > 0 && every % count != 0)
    return Error{
        fmt::format("is {}, expected a multiple of {}, the number of fragments, which have "
                    "their outer steps in turn",
                    every, count)};
  if (count > 0 && fragments.delay >= every)
    return Error{fmt::format("is {}, expected more than {}, the steps after which a fragment is "
                             "applied (--outer-delay): it is sent again only after that",
                             every, fragments.delay)};
  return std::nullopt;
}

} // namespace dtc
