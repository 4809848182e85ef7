//===- RangeCounts.h - Counts of uses of byte ranges ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PLAN_RANGECOUNTS_H
#define DTC_PLAN_RANGECOUNTS_H

#include "plan/PlanChecks.h"

#include <cstdint>
#include <vector>

namespace dtc {

/// Counts the uses of each byte of the arena. A segment tree over the begins and ends of buffers,
/// because ranges may overlap in any way: all functions take logarithmic time.
class RangeCounts {
public:
  /// Takes ranges that begin and end where those of `known` do.
  explicit RangeCounts(const std::vector<ByteRange> &known);

  /// Adds `change` to the uses of all bytes of the range.
  void add(const ByteRange &range, int change);
  /// Whether any byte of the range is in use.
  bool anyIn(const ByteRange &range) const;

private:
  struct Node {
    int own = 0; // uses that cover all of the node
    int max = 0; // of any byte below the node, without the counts of nodes above it
  };
  struct Span {
    size_t begin, end; // intervals between neighbouring points
  };

  Span spanOf(const ByteRange &range) const;
  void add(size_t node, Span span, Span target, int change);
  bool anyIn(size_t node, Span span, Span target) const;

  std::vector<uint64_t> points; // sorted, distinct
  std::vector<Node> nodes;      // node n has the children 2n and 2n + 1; the root is 1
};

} // namespace dtc

#endif // DTC_PLAN_RANGECOUNTS_H
