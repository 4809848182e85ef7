//===- OuterRound.h - The time of a round of outer steps ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_OUTERROUND_H
#define DTC_SIMULATOR_OUTERROUND_H

#include "plan/OuterFragments.h"
#include "plan/plan.pb.h"
#include "simulator/cluster/cluster.pb.h"
#include "support/Error.h"

#include <cstdint>
#include <vector>

namespace dtc {

/// Seconds of a step, and of the outer step of all parameters or of each fragment's parts.
struct OuterStepTimes {
  struct Fragment {
    double take = 0, send = 0, apply = 0;
  };
  double step = 0, whole = 0;
  std::vector<Fragment> fragments; ///< empty: the outer step is of all parameters
};

/// The steps from one outer step of a parameter to its next, in the steady state of a run.
struct OuterRound {
  int64_t steps = 0;
  double seconds = 0;      ///< of the steps with all outer steps of the round
  double outerSeconds = 0; ///< of the outer steps, what is sent beside steps included
  double exposed = 0;      ///< of these, those that no step hides

  double hidden() const { return outerSeconds - exposed; }
};

/// Follows a round of `every` steps as a run has it: a fragment is sent beside the steps after it
/// was taken, one at a time, and the steps wait for it before any other part of an outer step.
/// `every` is one that checkOuterEvery() accepts.
OuterRound followOuterRound(const OuterFragments &schedule, const OuterStepTimes &times,
                            int64_t every);

/// Simulates the outer steps of a plan on a cluster and follows a round of them, with steps of
/// `stepSeconds`. An error if the plan has no outer steps, or if `every` does not go with them.
Expected<OuterRound> simulateOuterRound(const plan::Plan &plan, const cluster::Cluster &cluster,
                                        int64_t every, double stepSeconds);

} // namespace dtc

#endif // DTC_SIMULATOR_OUTERROUND_H
