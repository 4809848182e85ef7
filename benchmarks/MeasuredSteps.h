//===- MeasuredSteps.h - Times of steps, kept in a file -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_BENCHMARKS_MEASUREDSTEPS_H
#define DTC_BENCHMARKS_MEASUREDSTEPS_H

#include "runtime/support/Error.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace dtc::benchmarks {

/// The median of the steps of a layout that count, how many those are, and how many ran.
struct MeasuredStep {
  double seconds = 0;
  int64_t counted = 0, all = 0;
};

/// A step: how long it took, the time of processors that it took on all threads together, and what
/// other programs took meanwhile.
struct StepSample {
  double seconds = 0, processorSeconds = 0, otherSeconds = 0;
};

/// The steps that nothing else slowed down. What the cores do for a step is the same each time:
/// where that took more of their time, something else had them too, such as another guest of the
/// host. Steps count that took at most a tenth more of it than the one that took least, and during
/// which other programs had at most a quarter of a core. If there are none, the fastest of all
/// steps stands for them.
MeasuredStep summarizeSteps(const std::vector<StepSample> &samples);

/// By model and layout.
using MeasuredSteps = std::map<std::pair<std::string, std::string>, MeasuredStep>;

/// A table with the columns model, layout, seconds, counted and all, between commas.
std::string formatMeasuredSteps(const MeasuredSteps &steps);

/// Adds those of a table that formatMeasuredSteps() made. Lines that begin with # do not count. An
/// error names the line; a layout that is there already is one too.
runtime::MaybeError addMeasuredSteps(const std::string &text, MeasuredSteps &steps);

} // namespace dtc::benchmarks

#endif // DTC_BENCHMARKS_MEASUREDSTEPS_H
