//===- ArenaValues.cpp - Values in the bytes of an arena ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/ArenaValues.h"

#include <algorithm>

namespace dtc {

void ArenaValues::write(const ArenaValue &value) {
  const ByteRange &range = value.range;
  if (range.empty())
    return;
  auto it = intervals.lower_bound(range.begin);
  if (it != intervals.end() && it->first == range.begin && it->second.end == range.end) {
    it->second.value = value;
    return;
  }
  if (it != intervals.begin()) {
    // An interval that begins before the range loses its end, or its middle.
    auto before = std::prev(it);
    Interval rest = before->second;
    if (rest.end > range.begin) {
      before->second.end = range.begin;
      if (rest.end > range.end)
        intervals.emplace_hint(it, range.end, rest);
    }
  }
  it = intervals.lower_bound(range.begin);
  while (it != intervals.end() && it->first < range.end) {
    if (it->second.end > range.end)
      intervals.emplace(range.end, it->second);
    it = intervals.erase(it);
  }
  intervals.emplace_hint(it, range.begin, Interval{range.end, value});
}

bool ArenaValues::find(const ByteRange &range, std::vector<ArenaValue *> &found) {
  found.clear();
  auto it = intervals.upper_bound(range.begin);
  if (it != intervals.begin())
    --it;
  for (uint64_t position = range.begin; position < range.end; ++it) {
    if (it == intervals.end() || it->first > position || it->second.end <= position)
      return false;
    found.push_back(&it->second.value);
    position = it->second.end;
  }
  return true;
}

void ArenaValues::moveTo(uint32_t microbatch, int entry) {
  for (auto &[begin, interval] : intervals)
    if (interval.value.entry == entry)
      interval.value.microbatch = microbatch;
}

bool ArenaValues::holdsLike(const ArenaValues &other) const {
  return std::equal(intervals.begin(), intervals.end(), other.intervals.begin(),
                    other.intervals.end(), [](const auto &a, const auto &b) {
                      const ArenaValue &left = a.second.value, &right = b.second.value;
                      return a.first == b.first && a.second.end == b.second.end &&
                             left.range == right.range && left.buffer == right.buffer &&
                             left.inLoop == right.inLoop;
                    });
}

} // namespace dtc
