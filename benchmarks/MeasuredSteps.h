//===- MeasuredSteps.h - Times of steps, kept in a file -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_BENCHMARKS_MEASUREDSTEPS_H
#define DTC_BENCHMARKS_MEASUREDSTEPS_H

#include "support/Error.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace dtc::benchmarks {

/// The seconds of the steps of a strategy, by model and strategy.
using MeasuredSteps = std::map<std::pair<std::string, std::string>, std::vector<double>>;

/// A table (CsvLine.h) with a line for each step and the columns model, strategy and seconds.
std::string formatMeasuredSteps(const MeasuredSteps &steps);

/// Adds the steps of a table that formatMeasuredSteps() made. Lines that begin with # do not count.
/// An error names the line.
MaybeError addMeasuredSteps(const std::string &text, MeasuredSteps &steps);

} // namespace dtc::benchmarks

#endif // DTC_BENCHMARKS_MEASUREDSTEPS_H
