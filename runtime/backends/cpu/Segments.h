//===- Segments.h - The segments that attention keeps to ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_SEGMENTS_H
#define DTC_RUNTIME_BACKENDS_CPU_SEGMENTS_H

#include "calls/AttentionCalls.h"
#include "runtime/backends/cpu/KernelSupport.h"

#include <cstddef>
#include <cstdint>

namespace dtc::runtime::cpu {

/// The ranges of the segments of a call that runs, for each key of each batch element. They lie at
/// the beginning of the workspace.
class SegmentRanges {
public:
  static size_t bytes(const AttentionCall &call) {
    return call.segments ? arrayBytes<SegmentRange>(call.shape.batch * call.shape.allKeys()) : 0;
  }
  /// Finds them; none if the call has no segments.
  SegmentRanges(const AttentionCall &call, const CpuArguments &args)
      : shape(call.shapeAt(args.position)),
        after(static_cast<std::byte *>(args.workspace) + bytes(call)) {
    if (!call.segments)
      return;
    auto *found = static_cast<SegmentRange *>(args.workspace);
    for (int64_t b = 0; b < shape.batch; ++b)
      findSegments(input<int32_t>(args, *call.segments) + b * shape.allKeys(), shape.allKeys(),
                   found + b * shape.allKeys());
    ranges = found;
  }
  /// The workspace after them.
  void *workspace() const { return after; }
  /// The shape for a task: with the segments of its batch element.
  AttentionShape of(int64_t task) const {
    AttentionShape own = shape;
    if (ranges)
      own.segments = ranges + task / shape.kvHeads * shape.allKeys();
    return own;
  }

private:
  AttentionShape shape;
  const SegmentRange *ranges = nullptr;
  std::byte *after;
};

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_SEGMENTS_H
