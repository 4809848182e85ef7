//===- StepGraphs.cpp - The graphs of a device's steps --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/StepGraphs.h"

#include <algorithm>

namespace dtc::runtime {

namespace {

/// Fewer instructions are enqueued as fast as a graph of them is launched.
constexpr size_t kFewestInstructions = 3;

/// Finds the stretches of one task.
class StretchFinder {
public:
  StretchFinder(const PreparedProgram &program, const CapturesGroup &captures,
                std::vector<Stretch> &stretches)
      : program(program), captures(captures), stretches(stretches) {}

  void run(size_t begin, size_t end) {
    size_t unfinished = 0; // async instructions that were started outside of stretches
    while (begin < end) {
      size_t last = unfinished == 0 ? endOfStretch(begin, end) : begin;
      if (last - begin >= kFewestInstructions)
        add(begin, last);
      last = std::max(last, begin + 1);
      for (; begin < last; ++begin)
        unfinished += asyncBalance(begin);
    }
  }

private:
  bool canBeCaptured(size_t index) const {
    const PreparedInstruction &instruction = program.instructions[index];
    if (std::holds_alternative<PreparedKernel>(instruction))
      return true;
    if (const auto *wait = std::get_if<PreparedWait>(&instruction))
      return canBeCaptured(wait->started);
    const auto *collective = std::get_if<PreparedCollective>(&instruction);
    return collective && collective->after.empty() && captures(collective->group);
  }

  /// 1 for the start of an async instruction, -1 for a wait, as numbers that wrap around.
  size_t asyncBalance(size_t index) const {
    const PreparedInstruction &instruction = program.instructions[index];
    const auto *collective = std::get_if<PreparedCollective>(&instruction);
    const auto *call = std::get_if<PreparedHostCall>(&instruction);
    bool starts = collective ? collective->asyncIndex.has_value() : call && call->asyncIndex;
    return size_t{starts} - size_t{std::holds_alternative<PreparedWait>(instruction)};
  }

  /// The longest stretch from `begin` on; empty if there is none.
  size_t endOfStretch(size_t begin, size_t end) const {
    size_t last = begin, unfinished = 0;
    for (size_t i = begin; i < end && canBeCaptured(i); ++i) {
      unfinished += asyncBalance(i);
      if (unfinished == 0)
        last = i + 1;
    }
    return last;
  }

  void add(size_t begin, size_t end) {
    Stretch stretch{begin, end, {}, MicrobatchUse::None};
    for (size_t i = begin; i < end; ++i) {
      stretch.closes |= !program.isClosing.empty() && program.isClosing[i];
      if (const auto *kernel = std::get_if<PreparedKernel>(&program.instructions[i]))
        stretch.microbatchUse = std::max(stretch.microbatchUse, kernel->microbatchUse);
      else if (std::holds_alternative<PreparedCollective>(program.instructions[i]))
        stretch.collectives.push_back(i);
    }
    stretches.push_back(std::move(stretch));
  }

  const PreparedProgram &program;
  const CapturesGroup &captures;
  std::vector<Stretch> &stretches;
};

} // namespace

std::vector<Stretch> findStretches(const PreparedProgram &program, const CapturesGroup &captures) {
  std::vector<Stretch> stretches;
  StretchFinder finder(program, captures, stretches);
  for (size_t task = 0; task + 1 < program.taskBegin.size(); ++task)
    finder.run(program.taskBegin[task], program.taskBegin[task + 1]);
  return stretches;
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

StepGraphs::StepGraphs(const PreparedProgram &program, const CapturesGroup &captures,
                       int64_t batches, size_t most)
    : program(program), batches(batches), stretches(findStretches(program, captures)),
      begins(program.instructions.size()), held(program.instructions.size()) {
  for (const Stretch &stretch : stretches)
    begins[stretch.begin] = &stretch;
  std::map<std::pair<const Stretch *, std::vector<uint64_t>>, uint32_t> first;
  for (const PreparedProgram::ScheduleEntry &entry : program.schedule)
    for (size_t i = program.taskBegin[entry.task]; i < program.taskBegin[entry.task + 1]; ++i)
      if (const Stretch *stretch = begins[i])
        samePlaces[{stretch, entry.microbatch}] =
            first.try_emplace({stretch, placesOf(*stretch, entry.microbatch)}, entry.microbatch)
                .first->second;
  size_t begin = 0, end = program.program->loop_end();
  for (int64_t batch = 0; batch < batches; ++batch) {
    addRuns(begin, end, batch);
    begin = program.program->loop_begin();
  }
  addRuns(end, program.schedule.size(), batches - 1);
  dropBeyond(most);
}

void StepGraphs::addRuns(size_t begin, size_t end, int64_t repetition) {
  for (size_t at = begin; at < end; ++at) {
    const PreparedProgram::ScheduleEntry &entry = program.schedule[at];
    for (size_t i = program.taskBegin[entry.task]; i < program.taskBegin[entry.task + 1]; ++i)
      if (const Stretch *stretch = begins[i])
        if (runOf.try_emplace(keyOf(*stretch, entry.microbatch, repetition), runs.size()).second)
          runs.push_back({stretch, at, entry.microbatch, repetition});
  }
}

/// Only whole stretches: all runs of a collective are in graphs, or none.
void StepGraphs::dropBeyond(size_t most) {
  std::map<const Stretch *, size_t> instructionsOf;
  for (const Run &run : runs)
    instructionsOf[run.stretch] += run.stretch->end - run.stretch->begin;
  size_t sum = 0;
  for (const Stretch &stretch : stretches) {
    size_t own = instructionsOf[&stretch];
    if (own > most - sum)
      begins[stretch.begin] = nullptr;
    else
      sum += own;
  }
  for (const Stretch *stretch : begins)
    if (stretch)
      std::fill(held.begin() + static_cast<std::ptrdiff_t>(stretch->begin),
                held.begin() + static_cast<std::ptrdiff_t>(stretch->end), true);
  std::erase_if(runs, [&](const Run &run) { return !begins[run.stretch->begin]; });
  runOf.clear();
  for (size_t i = 0; i < runs.size(); ++i)
    runOf.emplace(keyOf(*runs[i].stretch, runs[i].microbatch, runs[i].repetition), i);
}

/// The places of all operands that have slots.
std::vector<uint64_t> StepGraphs::placesOf(const Stretch &stretch, uint32_t microbatch) const {
  std::vector<uint64_t> places;
  auto add = [&](const ArenaRange &range) {
    if (range.slots > 0)
      places.push_back(range.offsetFor(microbatch));
  };
  for (size_t i = stretch.begin; i < stretch.end; ++i) {
    if (const auto *kernel = std::get_if<PreparedKernel>(&program.instructions[i])) {
      std::for_each(kernel->inputs.begin(), kernel->inputs.end(), add);
      std::for_each(kernel->outputs.begin(), kernel->outputs.end(), add);
    } else if (const auto *collective = std::get_if<PreparedCollective>(&program.instructions[i])) {
      for (size_t tensor = 0; tensor < collective->specs.size(); ++tensor) {
        add(program.operands[collective->firstOperand + tensor].input);
        add(program.operands[collective->firstOperand + tensor].output);
      }
    }
  }
  return places;
}

size_t StepGraphs::instructions() const {
  return static_cast<size_t>(std::count(held.begin(), held.end(), true));
}

StepGraphs::Key StepGraphs::keyOf(const Stretch &stretch, uint32_t microbatch,
                                  int64_t repetition) const {
  uint32_t number = 0;
  int64_t loop = 0;
  if (stretch.microbatchUse == MicrobatchUse::Each) {
    number = microbatch;
    loop = repetition;
  } else if (stretch.microbatchUse == MicrobatchUse::First) {
    number = microbatch == 0 && repetition == 0 ? 0 : 1;
  }
  bool closes = stretch.closes && microbatch == program.lastMicrobatch && repetition + 1 == batches;
  return {&stretch, samePlaces.at({&stretch, microbatch}), number, loop, closes};
}

const StepGraphs::Run &StepGraphs::find(const Stretch &stretch, uint32_t microbatch,
                                        int64_t repetition) const {
  return runs[runOf.at(keyOf(stretch, microbatch, repetition))];
}

} // namespace dtc::runtime
