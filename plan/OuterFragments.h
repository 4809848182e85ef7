//===- OuterFragments.h - Outer steps of parts of the parameters ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The parameters of a plan whose replicas differ may be divided into fragments, whose outer steps
// take turns (Douillard et al. 2025, "Streaming DiLoCo with overlapping communication"). Fragment k
// of P has its outer step H * (k + 1) / P steps after that of the last one, and each H steps again.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PLAN_OUTERFRAGMENTS_H
#define DTC_PLAN_OUTERFRAGMENTS_H

#include "plan/plan.pb.h"
#include "support/Error.h"

#include <cstdint>
#include <vector>

namespace dtc {

/// The outer steps of fragments of a plan.
struct OuterFragments {
  struct Entries {
    const plan::Plan *take = nullptr, *send = nullptr, *apply = nullptr;
  };
  std::vector<Entries> entries; ///< of each fragment; empty: the plan has no fragments
  int64_t delay = 0;            ///< steps from what a fragment sends to its outer step

  bool isSentAfter(int64_t fragment, int64_t step, int64_t every) const;
  bool isAppliedAfter(int64_t fragment, int64_t step, int64_t every) const;
};

/// The fragments of a plan, from the names of its entry points. The error is of names that do not
/// go together.
Expected<OuterFragments> outerFragmentsOf(const plan::Plan &plan);

/// Checks that what sends fragments may run beside all other entry points: it has no transfers, its
/// operands lie behind their arenas, but for the states that it updates, and of the others none but
/// what takes its fragment updates these, and none but what applies it reads them.
MaybeError checkSentBeside(const plan::Plan &plan, const OuterFragments &fragments);

/// The entry points that reduce over the outer axis: "outer", or those that send fragments. Empty:
/// replicas do not differ.
std::vector<const plan::Plan *> outerReductionsOf(const plan::Plan &plan);

/// Checks that `every`, the steps from one outer step of a fragment to its next, goes with the
/// fragments: a multiple of their number that is larger than the delay.
MaybeError checkOuterEvery(const OuterFragments &fragments, int64_t every);

} // namespace dtc

#endif // DTC_PLAN_OUTERFRAGMENTS_H
