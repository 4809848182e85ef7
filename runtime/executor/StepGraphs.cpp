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
/// In all graphs of a device: what they take of its memory, some KiB for each, is in no plan.
constexpr size_t kMostInstructions = size_t{1} << 16;

/// Finds the stretches of one task.
class StretchFinder {
public:
  StretchFinder(const PreparedProgram &program, bool withCollectives,
                std::vector<Stretch> &stretches)
      : program(program), withCollectives(withCollectives), stretches(stretches) {}

  void run(size_t begin, size_t end) {
    size_t unfinished = 0; // async collectives that were started outside of stretches
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
    return withCollectives && (std::holds_alternative<PreparedCollective>(instruction) ||
                               std::holds_alternative<PreparedWait>(instruction));
  }

  /// 1 for the start of an async collective, -1 for a wait, as numbers that wrap around.
  size_t asyncBalance(size_t index) const {
    const PreparedInstruction &instruction = program.instructions[index];
    const auto *collective = std::get_if<PreparedCollective>(&instruction);
    return size_t{collective && collective->asyncIndex} -
           size_t{std::holds_alternative<PreparedWait>(instruction)};
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
      if (const auto *kernel = std::get_if<PreparedKernel>(&program.instructions[i]))
        stretch.microbatchUse = std::max(stretch.microbatchUse, kernel->microbatchUse);
      else if (std::holds_alternative<PreparedCollective>(program.instructions[i]))
        stretch.collectives.push_back(i);
    }
    stretches.push_back(std::move(stretch));
  }

  const PreparedProgram &program;
  const bool withCollectives;
  std::vector<Stretch> &stretches;
};

} // namespace

std::vector<Stretch> findStretches(const PreparedProgram &program, bool withCollectives) {
  std::vector<Stretch> stretches;
  StretchFinder finder(program, withCollectives, stretches);
  for (size_t task = 0; task + 1 < program.taskBegin.size(); ++task)
    finder.run(program.taskBegin[task], program.taskBegin[task + 1]);
  return stretches;
}

StepGraphs::StepGraphs(const PreparedProgram &program, bool withCollectives)
    : program(program), stretches(findStretches(program, withCollectives)),
      begins(program.instructions.size()) {
  for (const Stretch &stretch : stretches)
    begins[stretch.begin] = &stretch;
  std::map<std::pair<const Stretch *, std::vector<uint64_t>>, uint32_t> first;
  for (const PreparedProgram::ScheduleEntry &entry : program.schedule)
    for (size_t i = program.taskBegin[entry.task]; i < program.taskBegin[entry.task + 1]; ++i)
      if (const Stretch *stretch = begins[i])
        samePlaces[{stretch, entry.microbatch}] =
            first.try_emplace({stretch, placesOf(*stretch, entry.microbatch)}, entry.microbatch)
                .first->second;
}

Expected<std::unique_ptr<StepGraphs>> StepGraphs::create(const PreparedProgram &program,
                                                         bool withCollectives, Device &device,
                                                         bool hasLane) {
  std::unique_ptr<StepGraphs> graphs(new StepGraphs(program, withCollectives));
  Expected<std::unique_ptr<Queue>> compute = device.openQueue(QueueKind::Compute);
  if (!compute)
    return compute.error();
  graphs->computeQueue = std::move(*compute);
  if (!hasLane)
    return graphs;
  Expected<std::unique_ptr<Queue>> lane = device.openQueue(QueueKind::Communication);
  if (!lane)
    return lane.error();
  graphs->laneQueue = std::move(*lane);
  return graphs;
}

/// Of all operands that have slots.
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
  size_t count = 0;
  for (const Stretch &stretch : stretches)
    count += stretch.end - stretch.begin;
  return count;
}

const Stretch *StepGraphs::at(size_t instruction) const { return begins[instruction]; }

StepGraphs::Run &StepGraphs::find(const Stretch &stretch, uint32_t microbatch, int64_t repetition) {
  uint32_t number = 0;
  int64_t loop = 0;
  if (stretch.microbatchUse == MicrobatchUse::Each) {
    number = microbatch;
    loop = repetition;
  } else if (stretch.microbatchUse == MicrobatchUse::First) {
    number = microbatch == 0 && repetition == 0 ? 0 : 1;
  }
  return runs[{&stretch, samePlaces.at({&stretch, microbatch}), number, loop}];
}

bool StepGraphs::shouldCapture(const Stretch &stretch, const Run &run) const {
  return run.wasEnqueued && captured + (stretch.end - stretch.begin) <= kMostInstructions;
}

void StepGraphs::keep(const Stretch &stretch, Run &run, std::unique_ptr<Graph> graph) {
  run.graph = std::move(graph);
  captured += stretch.end - stretch.begin;
}

} // namespace dtc::runtime
