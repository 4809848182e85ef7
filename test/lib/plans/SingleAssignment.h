//===- SingleAssignment.h - One buffer for each value ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_LIB_PLANS_SINGLEASSIGNMENT_H
#define DTC_TEST_LIB_PLANS_SINGLEASSIGNMENT_H

#include "plan/plan.pb.h"

namespace dtc::runtime::testing {

/// Gives each value of a program that was written by hand a buffer of its own, as plans have it:
/// what is written a second time, or over a state or an input, becomes a new buffer that reuses the
/// old one, from the first task that runs to the last, and then in those that do not run. Numbers
/// of buffers stay; new ones come last.
void toSingleAssignment(plan::Program &program);

/// Makes the tasks that run for several microbatches the loop over microbatches, if there is none.
void markLoop(plan::Program &program);

} // namespace dtc::runtime::testing

#endif // DTC_TEST_LIB_PLANS_SINGLEASSIGNMENT_H
