//===- ClosingInstructions.h - What runs for the last microbatch alone ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PLAN_CLOSINGINSTRUCTIONS_H
#define DTC_PLAN_CLOSINGINSTRUCTIONS_H

#include "plan/plan.pb.h"

#include <cstdint>
#include <vector>

namespace dtc {

/// The closing instructions of a program: those in the loop over microbatches that read a sum over
/// microbatches, or what a closing instruction makes, and the waits for these. A sum is whole once
/// the last microbatch has been added to it, so that they run for this one alone, in the last
/// repetition of the loop. So the gradients of one layer are reduced between devices while the
/// backward pass of the last microbatch goes on.
class ClosingInstructions {
public:
  /// Indices of buffers and tasks are valid.
  explicit ClosingInstructions(const plan::Program &program);

  bool contains(uint32_t task, int instruction) const {
    return !byTask[task].empty() && byTask[task][static_cast<size_t>(instruction)];
  }
  bool anyIn(uint32_t task) const { return !byTask[task].empty(); }
  bool any() const { return hasAny; }
  /// Whether the instruction runs in an entry of the schedule, in the last repetition of the loop.
  bool runsIn(const plan::ScheduleEntry &entry, int instruction) const {
    return entry.microbatch() == last || !contains(entry.task(), instruction);
  }
  /// How often the instruction runs in a step whose loop is not repeated, where its task runs
  /// `runs` times.
  uint64_t countRuns(uint32_t task, int instruction, uint64_t runs) const {
    return contains(task, instruction) && runs > 1 ? 1 : runs;
  }
  /// The last microbatch that the loop works on.
  uint32_t lastMicrobatch() const { return last; }

private:
  std::vector<std::vector<bool>> byTask; // of its instructions; empty if none is
  uint32_t last = 0;
  bool hasAny = false;
};

} // namespace dtc

#endif // DTC_PLAN_CLOSINGINSTRUCTIONS_H
