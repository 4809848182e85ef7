//===- StepTimes.cpp - Measured times of a step ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/StepTimes.h"

#include "plan/PlanTypes.h"

#include <algorithm>

namespace dtc::runtime {

static double secondsOf(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

TransferTime TransferTime::of(const TransferResult &moved, Event::TimePoint waitBegin,
                              Event::TimePoint waitEnd) {
  double exposed = secondsOf(std::min(waitEnd, moved.end) - std::max(waitBegin, moved.begin));
  return {1, moved.seconds(), std::max(exposed, 0.0), secondsOf(waitEnd - waitBegin)};
}

TransferTime &TransferTime::operator+=(const TransferTime &other) {
  calls += other.calls;
  seconds += other.seconds;
  exposedSeconds += other.exposedSeconds;
  waitedSeconds += other.waitedSeconds;
  return *this;
}

double TransferTime::hiddenShare() const { return seconds > 0 ? 1 - exposedSeconds / seconds : 0; }

//===----------------------------------------------------------------------===//
// While a step is enqueued
//===----------------------------------------------------------------------===//

void StepMarks::begin() {
  used = usedResults = 0;
  spans.clear();
}

Expected<StepMarks::Mark> StepMarks::mark(Queue &queue) {
  if (used == events.size()) {
    Expected<std::unique_ptr<Event>> event = device.createEvent(/*timed=*/true);
    if (!event)
      return event.error();
    events.push_back(std::move(*event));
  }
  if (MaybeError error = queue.record(*events[used]))
    return *error;
  return used++;
}

TransferResult &StepMarks::newResult() {
  if (usedResults == results.size())
    results.emplace_back();
  return results[usedResults++];
}

//===----------------------------------------------------------------------===//
// When the step is over
//===----------------------------------------------------------------------===//

StepTimes::StepTimes(const PreparedProgram &program, bool profile, size_t traceSteps,
                     int64_t batches, bool waits)
    : program(program), waits(waits) {
  if (profile) {
    instructionTimes.resize(program.instructions.size());
    timesOfTransfers.resize(program.transfers.size());
  }
  if (traceSteps > 0)
    trace = std::make_unique<DeviceTrace>(program, traceSteps, batches);
}

MaybeError StepTimes::collect(const StepMarks &marks) {
  using What = StepMarks::What;
  if (trace)
    trace->beginStep();
  taskWait = waited = 0;
  pipeline.reset();
  for (const Span &span : marks.spans) {
    Expected<TimePoint> begin = marks.events[span.begin]->time();
    Expected<TimePoint> end = marks.events[span.end]->time();
    if (!begin)
      return begin.error();
    if (!end)
      return end.error();
    InstructionTime unused;
    InstructionTime &time = instructionTimes.empty() ? unused : instructionTimes[span.instruction];
    switch (span.what) {
    case What::Kernel:
    case What::Collective:
      time.seconds += secondsOf(*end - *begin);
      ++time.calls;
      addToTrace(span.what == What::Kernel ? TraceRow::Compute : TraceRow::Collectives,
                 TraceEvent::Work, span, *begin, *end);
      break;
    case What::HostCall:
      time.seconds += secondsOf(*end - *begin);
      ++time.calls;
      addToTrace(rowOf(std::get<PreparedHostCall>(program.instructions[span.instruction]).lane),
                 TraceEvent::Work, span, *begin, *end);
      break;
    case What::CollectiveWait:
      time.exposedSeconds += secondsOf(*end - *begin);
      waited += secondsOf(*end - *begin);
      addToTrace(TraceRow::Compute, TraceEvent::Waiting, span, *begin, *end);
      break;
    case What::TransferWait:
      collectTransfer(span, *begin, *end);
      break;
    case What::Task:
      collectTask(span, *begin, *end);
      break;
    }
  }
  return std::nullopt;
}

void StepTimes::collectTransfer(const Span &span, TimePoint begin, TimePoint end) {
  taskWait += secondsOf(end - begin);
  waited += secondsOf(end - begin);
  const TransferResult &result = *span.result;
  if (!timesOfTransfers.empty()) {
    size_t transfer =
        std::get<PreparedFinishTransfer>(program.instructions[span.instruction]).transfer;
    timesOfTransfers[transfer] += TransferTime::of(result, begin, end);
  }
  addToTrace(TraceRow::Transfers, TraceEvent::Work, span, result.begin, result.end);
  addToTrace(TraceRow::Compute, TraceEvent::Waiting, span, begin, end);
}

/// The spans of a task's instructions come before its own.
void StepTimes::collectTask(const Span &span, TimePoint begin, TimePoint end) {
  addToTrace(TraceRow::Compute, TraceEvent::Task, span, begin, end);
  double waited = std::exchange(taskWait, 0);
  auto task = static_cast<int>(program.schedule[span.entry].task);
  if (!passOf(program.program->tasks(task)))
    return;
  if (!pipeline)
    pipeline = PipelineSpan{begin, end, 0};
  pipeline->end = end;
  pipeline->busySeconds += secondsOf(end - begin) - waited;
}

void StepTimes::addToTrace(TraceRow row, TraceEvent::Kind kind, const Span &span, TimePoint begin,
                           TimePoint end) {
  if (trace)
    trace->add(row, {kind, span.entry, span.instruction, begin, end});
}

} // namespace dtc::runtime
