//===- Parallel.h - Work shared by the threads of a device ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Work is cut into at most as many parts as there are threads, by sizes alone: which part an
// element belongs to does not depend on timing or on which thread of the team takes the part. A
// kernel that keeps one partial result a part is therefore bitwise repeatable. forUnits() is for
// units with results of their own: there the timing decides.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_PARALLEL_H
#define DTC_RUNTIME_BACKENDS_CPU_PARALLEL_H

#include "runtime/backends/cpu/ThreadTeam.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace dtc::runtime::cpu {

/// Elements of cheap work (a few reads and operations each) that are worth a thread of their own.
inline constexpr int64_t kElementGrain = 16384;

/// How many units of `elements` elements each are worth a thread. `weight` compares the work of an
/// element with a cheap one.
inline int64_t grainFor(int64_t elements, int64_t weight = 1) {
  return std::max<int64_t>(1, kElementGrain / weight / std::max<int64_t>(1, elements));
}

/// The number of parts that parallelFor cuts `count` units into.
inline int numParts(int threads, int64_t count, int64_t grain) {
  return static_cast<int>(std::clamp<int64_t>(count / grain, 1, std::max(threads, 1)));
}

/// Where part `part` of `parts` begins.
inline int64_t partBegin(int64_t count, int parts, int part) {
  return count / parts * part + std::min<int64_t>(part, count % parts);
}

/// Runs body(part) for every part. Parts run at the same time if there are several.
template <typename Body> void forParts(int parts, const Body &body) {
  if (parts <= 1) {
    body(0);
    return;
  }
  ThreadTeam::ofThisThread().run(
      parts, [](const void *context, int part) { (*static_cast<const Body *>(context))(part); },
      &body);
}

/// Runs body(begin, end, part) on consecutive ranges that cover [0, count). A range has at least
/// `grain` units if there are several.
template <typename Body>
void parallelFor(int threads, int64_t count, int64_t grain, const Body &body) {
  if (count <= 0)
    return;
  int parts = numParts(threads, count, grain);
  forParts(parts, [&](int part) {
    body(partBegin(count, parts, part), partBegin(count, parts, part + 1), part);
  });
}

/// Runs body(unit, part) for every unit of [0, count) in order, each in the part that is free next:
/// so units of unequal work, known only when they run, keep all parts busy.
template <typename Body> void forUnits(int parts, int64_t count, const Body &body) {
  std::atomic<int64_t> next = 0;
  forParts(parts, [&](int part) {
    for (int64_t unit = next++; unit < count; unit = next++)
      body(unit, part);
  });
}

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_PARALLEL_H
