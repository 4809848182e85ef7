//===- VisibleKeys.h - Visible keys of a query ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A query sees a contiguous range of keys, and where places in the sequence follow each other, the
// ranges of later queries begin and end no earlier than its own. So a block of queries sees one
// range too, and a block of keys is seen by all of them, by some or by none, which the ranges of
// the first and the last query tell. All that hides keys is stated here; the kernels know nothing
// else of it.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_VISIBLEKEYS_H
#define DTC_RUNTIME_BACKENDS_CPU_VISIBLEKEYS_H

#include "calls/AttentionCalls.h"

#include <algorithm>
#include <cstdint>

namespace dtc::runtime::cpu {

/// The keys [begin, end).
struct KeyRange {
  int64_t begin = 0, end = 0;

  int64_t count() const { return end - begin; }
  /// The part of this range in `block`, counted from the block's first key.
  KeyRange within(KeyRange block) const {
    int64_t last = std::clamp<int64_t>(end - block.begin, 0, block.count());
    return {std::clamp<int64_t>(begin - block.begin, 0, last), last};
  }
};

/// How much of a block of keys the queries of a block see.
enum class Visibility { None, Part, Full };

/// The keys that the queries of one batch element see.
class VisibleKeys {
public:
  explicit VisibleKeys(const AttentionShape &shape) : shape(shape) {}

  /// Empty if the query sees none.
  KeyRange of(int64_t query) const {
    int64_t end = shape.visible(query);
    return {std::min(end, shape.firstVisible(query)), end};
  }

  /// The end of the keys that any query sees.
  int64_t end() const {
    int64_t last = 0;
    for (int64_t i = 0; i < shape.queries;) {
      i = shape.order.endOfRun(i, shape.queries);
      last = std::max(last, of(i - 1).end);
    }
    return last;
  }

  /// From the first key that a query of [begin, begin + rows) sees to the last. Their places in the
  /// sequence follow each other.
  KeyRange ofRows(int64_t begin, int64_t rows) const {
    int64_t end = of(begin + rows - 1).end;
    return {std::min(end, of(begin).begin), end};
  }

  /// The keys of a block that the queries [begin, begin + rows) see.
  Visibility ofBlock(int64_t begin, int64_t rows, KeyRange block) const {
    KeyRange first = of(begin), last = of(begin + rows - 1);
    if (last.end <= block.begin || first.begin >= block.end)
      return Visibility::None;
    return first.end >= block.end && last.begin <= block.begin ? Visibility::Full
                                                               : Visibility::Part;
  }

private:
  AttentionShape shape;
};

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_VISIBLEKEYS_H
