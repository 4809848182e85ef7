//===- Windows.cpp - The windows of convolutions and poolings -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/Windows.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dtc {

/// Says which numbers are not in [least, kMaxWindowNumber]; none if all are.
static std::optional<std::string>
findRangeProblem(const char *name, std::span<const int64_t> numbers, int64_t least) {
  auto isInRange = [&](int64_t each) { return each >= least && each <= kMaxWindowNumber; };
  if (std::all_of(numbers.begin(), numbers.end(), isInRange))
    return std::nullopt;
  return fmt::format("{} is [{}], expected numbers from {} to {}", name, fmt::join(numbers, ", "),
                     least, kMaxWindowNumber);
}

std::optional<std::string> findWindowProblem(std::span<const int64_t> strides,
                                             std::span<const int64_t> padding,
                                             std::span<const int64_t> dilations,
                                             std::optional<std::span<const int64_t>> sizes) {
  struct {
    const char *name;
    std::span<const int64_t> numbers;
    int64_t least;
  } const lists[] = {{"strides", strides, 1},
                     {"padding", padding, 0},
                     {"dilations", dilations, 1},
                     {"window", sizes.value_or(strides), 1}};
  size_t rank = strides.size();
  if (rank < 1 || rank > kMaxSpatialDims)
    return fmt::format("strides has {} entries, expected 1 to {}, one for each spatial dimension",
                       rank, kMaxSpatialDims);
  for (const auto &list : lists) {
    if (list.numbers.size() != rank)
      return fmt::format("{} has {} entries, expected {} as strides has", list.name,
                         list.numbers.size(), rank);
    if (std::optional<std::string> problem = findRangeProblem(list.name, list.numbers, list.least))
      return problem;
  }
  return std::nullopt;
}

} // namespace dtc
