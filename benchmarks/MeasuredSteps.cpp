//===- MeasuredSteps.cpp - Times of steps, kept in a file -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/MeasuredSteps.h"

#include "benchmarks/CsvLine.h"

#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <sstream>

using namespace dtc;
using namespace dtc::benchmarks;

static constexpr const char *kHeader = "model,strategy,seconds";

std::string benchmarks::formatMeasuredSteps(const MeasuredSteps &steps) {
  std::string text = fmt::format("{}\n", kHeader);
  for (const auto &[key, all] : steps)
    for (double seconds : all)
      fmt::format_to(std::back_inserter(text), "{},{},{:.6g}\n", csvValue(key.first),
                     csvValue(key.second), seconds);
  return text;
}

/// Whether the text is a finite number of more than 0.
static bool parseSeconds(const std::string &text, double &value) {
  const char *end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && rest == end && std::isfinite(value) && value > 0;
}

MaybeError benchmarks::addMeasuredSteps(const std::string &text, MeasuredSteps &steps) {
  std::istringstream lines(text);
  std::string line;
  bool hasHeader = false;
  for (int64_t number = 1; std::getline(lines, line); ++number) {
    auto error = [&](const std::string &expected) {
      return Error{fmt::format("line {}: found \"{}\", expected {}; measure again with "
                               "--save",
                               number, line, expected)};
    };
    if (line.empty() || line.front() == '#')
      continue;
    if (!hasHeader) {
      if (line != kHeader)
        return error(fmt::format("\"{}\"", kHeader));
      hasHeader = true;
      continue;
    }
    auto values = splitCsvLine(line);
    double seconds = 0;
    if (!values || values->size() != 3 || !parseSeconds((*values)[2], seconds))
      return error("a model, a strategy, and seconds of more than 0");
    steps[{(*values)[0], (*values)[1]}].push_back(seconds);
  }
  if (!hasHeader)
    return Error{fmt::format("found no line \"{}\"; measure again with --save", kHeader)};
  return std::nullopt;
}
