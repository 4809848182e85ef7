//===- RangeCounts.cpp - Counts of uses of byte ranges --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/RangeCounts.h"

#include <algorithm>
#include <bit>

namespace dtc {

RangeCounts::RangeCounts(const std::vector<ByteRange> &known) {
  for (const ByteRange &range : known) {
    points.push_back(range.begin);
    points.push_back(range.end);
  }
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  nodes.resize(2 * std::bit_ceil(points.size() + 1));
}

RangeCounts::Span RangeCounts::spanOf(const ByteRange &range) const {
  auto indexOf = [&](uint64_t point) {
    return static_cast<size_t>(std::lower_bound(points.begin(), points.end(), point) -
                               points.begin());
  };
  return {indexOf(range.begin), indexOf(range.end)};
}

void RangeCounts::add(const ByteRange &range, int change) {
  if (!range.empty())
    add(1, {0, nodes.size() / 2}, spanOf(range), change);
}

bool RangeCounts::anyIn(const ByteRange &range) const {
  return !range.empty() && anyIn(1, {0, nodes.size() / 2}, spanOf(range));
}

void RangeCounts::add(size_t node, Span span, Span target, int change) {
  if (target.end <= span.begin || span.end <= target.begin)
    return;
  if (target.begin <= span.begin && span.end <= target.end) {
    nodes[node].own += change;
    nodes[node].max += change;
    return;
  }
  size_t middle = (span.begin + span.end) / 2;
  add(2 * node, {span.begin, middle}, target, change);
  add(2 * node + 1, {middle, span.end}, target, change);
  nodes[node].max = nodes[node].own + std::max(nodes[2 * node].max, nodes[2 * node + 1].max);
}

bool RangeCounts::anyIn(size_t node, Span span, Span target) const {
  if (target.end <= span.begin || span.end <= target.begin || nodes[node].max == 0)
    return false;
  if (nodes[node].own > 0 || (target.begin <= span.begin && span.end <= target.end))
    return true; // used as a whole, or used somewhere and all of it asked for
  size_t middle = (span.begin + span.end) / 2;
  return anyIn(2 * node, {span.begin, middle}, target) ||
         anyIn(2 * node + 1, {middle, span.end}, target);
}

} // namespace dtc
