//===- ArenaValues.cpp - Values in the bytes of an arena ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/ArenaValues.h"

#include <algorithm>

namespace dtc {

ArenaValue *ArenaValues::findExactly(const ByteRange &range) {
  auto it = pieces.find(range.begin);
  bool found = it != pieces.end() && it->second.end == range.end && isWhole(it->first, it->second);
  return found ? &it->second.value : nullptr;
}

void ArenaValues::write(const ArenaValue &value) {
  const ByteRange &range = value.range;
  if (range.empty())
    return;
  auto it = pieces.lower_bound(range.begin);
  if (it != pieces.end() && it->first == range.begin && it->second.end == range.end) {
    it->second.value = value;
    return;
  }
  if (it != pieces.begin()) {
    // A piece that begins before the range loses its end, or its middle.
    auto before = std::prev(it);
    Piece rest = before->second;
    if (rest.end > range.begin) {
      before->second.end = range.begin;
      if (rest.end > range.end)
        pieces.emplace_hint(it, range.end, rest);
    }
  }
  it = pieces.lower_bound(range.begin);
  while (it != pieces.end() && it->first < range.end) {
    if (it->second.end > range.end)
      pieces.emplace(range.end, it->second);
    it = pieces.erase(it);
  }
  pieces.emplace_hint(it, range.begin, Piece{range.end, value});
}

bool ArenaValues::find(const ByteRange &range, std::vector<ArenaValue *> &found) {
  found.clear();
  auto it = pieces.upper_bound(range.begin);
  if (it != pieces.begin())
    --it;
  for (uint64_t position = range.begin; position < range.end; ++it) {
    if (it == pieces.end() || it->first > position || it->second.end <= position)
      return false;
    found.push_back(&it->second.value);
    position = it->second.end;
  }
  return true;
}

void ArenaValues::moveTo(uint32_t microbatch, int entry) {
  for (auto &[begin, piece] : pieces)
    if (piece.value.entry == entry)
      piece.value.microbatch = microbatch;
}

bool ArenaValues::holdsLike(const ArenaValues &other) const {
  return std::equal(pieces.begin(), pieces.end(), other.pieces.begin(), other.pieces.end(),
                    [](const auto &a, const auto &b) {
                      const ArenaValue &left = a.second.value, &right = b.second.value;
                      return a.first == b.first && a.second.end == b.second.end &&
                             left.range == right.range && left.buffer == right.buffer &&
                             left.inLoop == right.inLoop;
                    });
}

} // namespace dtc
