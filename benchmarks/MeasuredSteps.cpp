//===- MeasuredSteps.cpp - Times of steps, kept in a file -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/MeasuredSteps.h"

#include "benchmarks/Median.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <limits>
#include <sstream>
#include <vector>

using namespace dtc;
using namespace dtc::benchmarks;

MeasuredStep benchmarks::summarizeSteps(const std::vector<StepSample> &samples) {
  double least = std::numeric_limits<double>::infinity(), fastest = least;
  for (const StepSample &sample : samples) {
    least = std::min(least, sample.processorSeconds);
    fastest = std::min(fastest, sample.seconds);
  }
  std::vector<double> counted;
  for (const StepSample &sample : samples)
    if (sample.processorSeconds <= 1.1 * least && sample.otherSeconds <= 0.25 * sample.seconds)
      counted.push_back(sample.seconds);
  return {counted.empty() && !samples.empty() ? fastest : median(counted),
          static_cast<int64_t>(counted.size()), static_cast<int64_t>(samples.size())};
}

static constexpr const char *header = "model,layout,seconds,counted,all";

std::string benchmarks::formatMeasuredSteps(const MeasuredSteps &steps) {
  std::string text = fmt::format("{}\n", header);
  for (const auto &[key, step] : steps)
    fmt::format_to(std::back_inserter(text), "{},{},{:.6g},{},{}\n", key.first, key.second,
                   step.seconds, step.counted, step.all);
  return text;
}

template <typename T> static bool parseNumber(const std::string &text, T &value) {
  const char *end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && rest == end;
}

runtime::MaybeError benchmarks::addMeasuredSteps(const std::string &text, MeasuredSteps &steps) {
  std::istringstream lines(text);
  std::string line;
  bool hasHeader = false;
  for (int64_t number = 1; std::getline(lines, line); ++number) {
    auto error = [&](const std::string &what) {
      return runtime::Error{fmt::format("line {}: {}; measure again with --save", number, what)};
    };
    if (line.empty() || line.front() == '#')
      continue;
    if (!hasHeader) {
      if (line != header)
        return error(fmt::format("found \"{}\", expected \"{}\"", line, header));
      hasHeader = true;
      continue;
    }
    std::vector<std::string> values(1);
    for (char c : line)
      if (c == ',')
        values.emplace_back();
      else
        values.back() += c;
    MeasuredStep step;
    if (values.size() != 5 || !parseNumber(values[2], step.seconds) ||
        !std::isfinite(step.seconds) || step.seconds <= 0 ||
        !parseNumber(values[3], step.counted) || !parseNumber(values[4], step.all))
      return error(fmt::format("found \"{}\", expected a model, a layout, seconds of more than 0 "
                               "and two whole numbers between commas",
                               line));
    if (!steps.try_emplace({values[0], values[1]}, step).second)
      return error(fmt::format("{} of {} is there twice", values[1], values[0]));
  }
  if (!hasHeader)
    return runtime::Error{fmt::format("found no line \"{}\"; measure again with --save", header)};
  return std::nullopt;
}
