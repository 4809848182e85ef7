//===- MemoryTimeline.h - Memory of a device over a step ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_REPORT_HTML_MEMORYTIMELINE_H
#define DTC_REPORT_HTML_MEMORYTIMELINE_H

#include "plan/plan.pb.h"
#include "simulator/Timeline.h"
#include "support/Kinds.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace dtc {

/// The kinds of buffers that have a band of their own in figures, from the lowest up. All others
/// share one above them.
inline constexpr std::array kMemoryBands = {BufferKind::Parameter, BufferKind::MasterWeight,
                                            BufferKind::OptimizerState, BufferKind::Gradient,
                                            BufferKind::Activation};
inline constexpr size_t kNumMemoryBands = kMemoryBands.size() + 1;
size_t memoryBandOf(BufferKind kind);
/// "parameters", "master weights", ..., "other".
const char *memoryBandName(size_t band);

/// Bytes by band.
struct MemoryUse : std::array<uint64_t, kNumMemoryBands> {
  uint64_t total() const { return std::accumulate(begin(), end(), uint64_t{0}); }
};

/// The bytes of a device that hold values which are still needed, over a step. A value lives from
/// the instruction that writes it to the last that reads it; that of a buffer with slots in one
/// copy. States live throughout, an input from the start of the step, an output to its end; what
/// is there before the loop over microbatches and read in it, to the loop's end, because that may
/// run again. Transfers and asynchronous collectives use their tensors until they are waited for.
struct MemoryTimeline {
  /// By part of the step, of equal length: the fullest moment of each.
  std::vector<MemoryUse> parts;
  MemoryUse peak{};
  double peakSeconds = 0; ///< when it begins, from the start of the step
  std::string peakTask;   ///< the task and the instruction's layer where it is
  std::string peakLocation;
  uint32_t peakMicrobatch = 0;
};

/// Follows a program's schedule. The times of instructions come from their tasks in `timeline`: all
/// instructions of a task are taken to be equally long; `parts` is more than 0. The plan is one
/// that findPlanError() accepts. Takes memory and time in proportion to the executed instructions.
MemoryTimeline followMemory(const plan::Plan &plan, size_t program, const Timeline &timeline,
                            double stepSeconds, size_t parts);

} // namespace dtc

#endif // DTC_REPORT_HTML_MEMORYTIMELINE_H
