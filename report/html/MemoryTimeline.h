//===- MemoryTimeline.h - Memory of a device over a step ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_REPORT_HTML_MEMORYTIMELINE_H
#define DTC_REPORT_HTML_MEMORYTIMELINE_H

#include "plan/plan.pb.h"
#include "simulator/Timeline.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace dtc {

/// What bytes of an arena are for.
enum class MemoryKind : size_t { Parameter, Master, Optimizer, Gradient, Activation, Other };
inline constexpr size_t kNumMemoryKinds = 6;
/// "parameters", "master weights", ...
const char *name(MemoryKind kind);

/// Bytes by kind.
struct MemoryUse : std::array<uint64_t, kNumMemoryKinds> {
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

/// Follows a program's schedule. The times of instructions are those of their tasks in `timeline`,
/// in which they are taken to be equally long; `parts` is more than 0. The plan is one that
/// findPlanError() accepts. Takes memory and time in proportion to the executed instructions.
MemoryTimeline followMemory(const plan::Plan &plan, size_t program, const Timeline &timeline,
                            double stepSeconds, size_t parts);

} // namespace dtc

#endif // DTC_REPORT_HTML_MEMORYTIMELINE_H
