//===- DataflowTracker.cpp - Arena contents while a schedule is followed --===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/DataflowTracker.h"

#include "plan/KernelTable.h"
#include "plan/PlanTypes.h"

#include <fmt/format.h>

namespace dtc {

std::string OperandName::str() const {
  return number < 0 ? std::string(kind) : fmt::format("{} {}", kind, number);
}

DataflowTracker::DataflowTracker(const PlanContext &context, const ClosingInstructions &closing,
                                 std::set<uint32_t> &channelsOfData, WorkLimit &budget)
    : context(context), channelsOfData(channelsOfData), budget(budget), lives(context),
      microbatches(microbatchesOf(context.mesh)), sums(context.types.size(), false),
      madeOfSums(context.types.size(), false), isWritten(context.types.size(), false) {
  markSums(closing);
}

void DataflowTracker::markSums(const ClosingInstructions &closing) {
  const plan::Program &program = context.program;
  for (int t = 0; t < program.tasks_size(); ++t)
    for (int i = 0; i < program.tasks(t).instructions_size(); ++i) {
      const plan::Instruction &instruction = program.tasks(t).instructions(i);
      if (readsOwnOutput(instruction.kernel().kernel()))
        for (uint32_t output : instruction.kernel().outputs())
          sums[context.roots[output]] = true;
      if (!closing.contains(static_cast<uint32_t>(t), i))
        continue;
      for (uint32_t output : instruction.kernel().outputs())
        madeOfSums[context.roots[output]] = true;
      for (const plan::CollectiveTensor &tensor : instruction.collective().tensors())
        madeOfSums[context.roots[tensor.output()]] = true;
    }
}

//===----------------------------------------------------------------------===//
// Reads and writes
//===----------------------------------------------------------------------===//

bool DataflowTracker::isUnwritten(uint32_t buffer) {
  const ByteRange &range = context.ranges[buffer];
  return !range.empty() && !values.find(range, found);
}

MaybeError DataflowTracker::checkReceives(uint32_t buffer) const {
  ByteRange range = rangeNow(buffer);
  for (const InFlight &other : inFlight)
    if (other.isReceive && other.range.overlaps(range))
      return conflict("reads", buffer, other);
  return std::nullopt;
}

Expected<ArenaValue *> DataflowTracker::findOwn(OperandName what, uint32_t buffer) {
  if (MaybeError error = budget.spend(stepsOfAccess()))
    return *error;
  ByteRange range = rangeNow(buffer);
  if (range.empty())
    return nullptr;
  if (MaybeError error = checkReceives(buffer))
    return *error;
  bool isWhole = values.find(range, found) && isWritten[context.roots[buffer]];
  if (MaybeError error = budget.spend(static_cast<int64_t>(found.size())))
    return *error;
  if (!isWhole)
    return Error{fmt::format("{} ({}) is read before it is written", what.str(),
                             describe(buffer, point.microbatch))};
  bool isOwn = found.size() == 1 && found[0]->range == range &&
               context.roots[found[0]->buffer] == context.roots[buffer];
  if (!isOwn)
    return overwritten(what, buffer);
  return found[0];
}

MaybeError DataflowTracker::read(OperandName what, uint32_t buffer) {
  lastIsOfData = false;
  Expected<ArenaValue *> value = findOwn(what, buffer);
  if (!value)
    return value.error();
  if (!*value)
    return std::nullopt;
  if (MaybeError error = checkMoment(what, buffer, **value))
    return error;
  lives.read((*value)->buffer, (*value)->life, point.now);
  lastIsOfData = (*value)->ofData;
  return std::nullopt;
}

/// Whether the buffer's own value, which is there, belongs to the expected microbatch and the
/// expected repetition of the loop.
MaybeError DataflowTracker::checkMoment(OperandName what, uint32_t buffer,
                                        const ArenaValue &value) const {
  auto operand = [&] {
    return fmt::format("{} ({})", what.str(), describe(buffer, point.microbatch));
  };
  if (value.ofData && (point.inLoop ? value.repetition != point.repetition : point.repetition > 0))
    return Error{fmt::format(
        "{} is made from the data of one repetition of the loop over microbatches, "
        "written by {}, and read {}",
        operand(), describeWriter(value), point.inLoop ? "in another one" : "outside of the loop")};
  if (!value.inLoop)
    return std::nullopt;
  if (value.repetition != point.repetition)
    return Error{
        fmt::format("{} is a value of an earlier repetition of the loop over microbatches, "
                    "written by {}",
                    operand(), describeWriter(value))};
  // The value of one of several microbatches or repetitions is no sum of them.
  bool isOnlyOne = microbatches == 1 && point.repetition == 0;
  if (point.closes && !isSum(buffer) && !isMadeOfSums(buffer) && !isOnlyOne)
    return Error{fmt::format("{} is read by an instruction that runs for the last microbatch alone "
                             "and holds the value of microbatch {}, written by {}; expected a sum, "
                             "or what is made outside of the loop",
                             operand(), value.microbatch, describeWriter(value))};
  if (point.inLoop && value.microbatch == point.microbatch)
    return std::nullopt;
  if (!point.inLoop && int64_t{value.microbatch} + 1 == microbatches &&
      (isSum(buffer) || isMadeOfSums(buffer) || isOnlyOne))
    return std::nullopt;
  if (!point.inLoop)
    return Error{fmt::format(
        "{} is read after the loop over microbatches and holds {} microbatch "
        "{}{}, written by {}; expected {}",
        operand(), isSum(buffer) ? "the sum up to" : "the value of", value.microbatch,
        point.repetition > 0 ? " of the last repetition of the loop" : "", describeWriter(value),
        isSum(buffer) ? fmt::format("the sum of all {}", microbatches)
                      : "a sum, or what is made outside of the loop")};
  const BufferSlots &copies = context.copies[buffer];
  std::string why =
      copies.map ? fmt::format("its slot map gives slot {} to both, which need it at once in this "
                               "schedule",
                               copies.indexFor(point.microbatch))
      : copies.slots > 0
          ? fmt::format("a buffer of {} slots holds {} microbatches at once, which is too few for "
                        "this schedule",
                        copies.slots, copies.slots)
          : "a buffer without slots holds one microbatch at a time";
  return Error{fmt::format("{} should hold the value of microbatch {}, but holds that of "
                           "microbatch {}, written by {}; {}",
                           operand(), point.microbatch, value.microbatch, describeWriter(value),
                           why)};
}

MaybeError DataflowTracker::readSum(uint32_t buffer) {
  constexpr OperandName what{"the output that it adds to"};
  bool isFirst = point.microbatch == 0;
  if (isFirst && point.repetition == 0)
    return std::nullopt;
  Expected<ArenaValue *> value = findOwn(what, buffer);
  if (!value)
    return value.error();
  if (!*value)
    return std::nullopt;
  int64_t expected = isFirst ? microbatches - 1 : int64_t{point.microbatch} - 1;
  int repetition = isFirst ? point.repetition - 1 : point.repetition;
  if (int64_t{(*value)->microbatch} == expected && (*value)->repetition == repetition)
    return std::nullopt;
  return Error{fmt::format("{} ({}) holds the sum up to microbatch {}, written by {}; expected the "
                           "sum up to microbatch {}: sums take microbatches in their order, each "
                           "once",
                           what.str(), describe(buffer, point.microbatch), (*value)->microbatch,
                           describeWriter(**value), expected)};
}

/// The bytes of the copy that is read were overwritten. `found` describes their content.
Error DataflowTracker::overwritten(OperandName what, uint32_t buffer) const {
  const ArenaValue *last = nullptr; // the latest writer but the buffer itself
  for (const ArenaValue *value : found)
    if (value->buffer != buffer && (!last || value->time > last->time))
      last = value;
  if (!last)
    last = found.front();
  return Error{fmt::format("{} ({}) does not hold its value any more: {}, which shares bytes of "
                           "the arena with it, was written since by {}",
                           what.str(), describe(buffer, point.microbatch),
                           describe(last->buffer, last->microbatch), describeWriter(*last))};
}

MaybeError DataflowTracker::checkWrite(uint32_t buffer) {
  if (MaybeError error = budget.spend(stepsOfAccess()))
    return error;
  ByteRange range = rangeNow(buffer);
  for (const InFlight &other : inFlight)
    if (other.range.overlaps(range))
      return conflict("writes", buffer, other);
  return std::nullopt;
}

Error DataflowTracker::conflict(const char *does, uint32_t buffer, const InFlight &other) const {
  return Error{fmt::format("{} {}, which shares bytes of the arena with {}; {} has not finished",
                           does, describe(buffer, point.microbatch),
                           describe(other.buffer, other.microbatch),
                           describeTransfer(other.transfer, other.microbatch))};
}

MaybeError DataflowTracker::write(uint32_t buffer, bool ofData) {
  if (MaybeError error = checkWrite(buffer))
    return error;
  put(buffer, point.now, ofData && !point.inLoop);
  return std::nullopt;
}

void DataflowTracker::put(uint32_t buffer, int64_t since, bool ofData) {
  ArenaValue value;
  value.range = rangeNow(buffer);
  value.buffer = buffer;
  isWritten[context.roots[buffer]] = true;
  value.microbatch = point.microbatch;
  value.repetition = point.repetition;
  value.inLoop = point.inLoop;
  value.ofData = ofData;
  value.entry = point.entry;
  value.instruction = point.instruction;
  value.time = point.now;
  if (hasSlots(buffer))
    value.life = lives.begin(buffer, since);
  values.write(value);
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

/// The memory for a transfer that was started, and for a tensor in flight, counted in operands: it
/// bounds the memory that a plan can ask for.
static constexpr int64_t kStepsOfStart = 16, kStepsOfTensor = 4;

MaybeError DataflowTracker::startTransfer(uint32_t number) {
  const plan::Transfer &started = transfer(number);
  if (MaybeError error = budget.spend(kStepsOfStart + kStepsOfTensor * started.buffers_size()))
    return error;
  auto [it, isNew] = starts.try_emplace(startKey(number, point.microbatch),
                                        Start{point.entry, point.instruction, point.now, false});
  if (!isNew)
    return Error{fmt::format("starts {} a second time; it was started in {}",
                             describeTransfer(number, point.microbatch),
                             describeExecution(context, it->second.entry, it->second.instruction))};
  bool sends = kindOf(started) == TransferKind::Send;
  ++(sends ? startedSends : startedReceives);
  for (uint32_t buffer : started.buffers()) {
    if (MaybeError error = sends ? read({"what is sent"}, buffer) : checkWrite(buffer))
      return error;
    if (sends && lastIsOfData && !point.inLoop)
      channelsOfData.insert(started.channel());
  }
  for (uint32_t buffer : started.buffers())
    if (ByteRange range = rangeNow(buffer); !range.empty())
      inFlight.push_back({range, buffer, number, point.microbatch, !sends});
  return std::nullopt;
}

MaybeError DataflowTracker::finishTransfer(uint32_t number) {
  if (MaybeError error = budget.spend(static_cast<int64_t>(inFlight.size())))
    return error;
  auto it = starts.find(startKey(number, point.microbatch));
  if (it == starts.end())
    return Error{fmt::format("finishes {}, which has not been started",
                             describeTransfer(number, point.microbatch))};
  if (it->second.finished)
    return Error{
        fmt::format("finishes {} a second time", describeTransfer(number, point.microbatch))};
  LoopPlace started = loopPlaceOf(context.program, it->second.entry);
  LoopPlace finished = loopPlaceOf(context.program, point.entry);
  if (started != finished)
    return Error{fmt::format("finishes {} {}, but it was started {} ({}); expected both in the "
                             "loop, or both on the same side of it",
                             describeTransfer(number, point.microbatch), dtc::describe(finished),
                             dtc::describe(started),
                             describeExecution(context, it->second.entry, it->second.instruction))};
  it->second.finished = true;
  std::erase_if(inFlight, [&](const InFlight &tensor) {
    return tensor.transfer == number && tensor.microbatch == point.microbatch;
  });
  bool sends = kindOf(transfer(number)) == TransferKind::Send;
  for (uint32_t buffer : transfer(number).buffers()) {
    if (sends) {
      if (MaybeError error = read({"what is sent"}, buffer)) // it was needed until now
        return error;
      continue;
    }
    if (MaybeError error = budget.spend(1))
      return error;
    put(buffer, it->second.since,
        !point.inLoop && channelsOfData.contains(transfer(number).channel()));
  }
  return std::nullopt;
}

MaybeError DataflowTracker::checkAllFinished() const {
  std::optional<uint64_t> first;
  for (const auto &[key, start] : starts)
    if (!start.finished && (!first || key < *first))
      first = key;
  if (!first)
    return std::nullopt;
  const Start &start = starts.at(*first);
  return Error{fmt::format("starts {}, which is never finished",
                           describeTransfer(static_cast<uint32_t>(*first >> 32),
                                            static_cast<uint32_t>(*first)))}
      .inContext(describeExecution(context, start.entry, start.instruction));
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

std::string DataflowTracker::describe(uint32_t buffer, uint32_t ofMicrobatch) const {
  const BufferSlots &copies = context.copies[buffer];
  std::string text = fmt::format("buffer {}, {}", buffer, context.types[buffer].str());
  if (copies.slots > 0)
    text += fmt::format(", copy {} of {} for microbatch {}", copies.indexFor(ofMicrobatch),
                        copies.slots, ofMicrobatch);
  return text;
}

std::string DataflowTracker::describeWriter(const ArenaValue &value) const {
  return value.entry < 0 ? "the step's states and inputs"
                         : describeExecution(context, value.entry, value.instruction);
}

std::string DataflowTracker::describeTransfer(uint32_t number, uint32_t ofMicrobatch) const {
  const plan::Transfer &transfer = this->transfer(number);
  bool sends = kindOf(transfer) == TransferKind::Send;
  std::string text = fmt::format("transfer {} ({} program {}, channel {})", number,
                                 sends ? "to" : "from", transfer.peer(), transfer.channel());
  if (microbatchesOf(context.mesh) > 1)
    text += fmt::format(" for microbatch {}", ofMicrobatch);
  return text;
}

} // namespace dtc
