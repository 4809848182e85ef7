//===- StepSections.h - The passes of a step without a pipeline -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PLANNER_STEPSECTIONS_H
#define DTC_COMPILER_PLANNER_STEPSECTIONS_H

namespace dtc {

namespace plan {
class Program;
} // namespace plan

/// Cuts each task of a program without a pipeline into two in its place: the passes, all of them
/// one backward pass, and the update, which is all that writes parameters and optimizer states or
/// reads the latter. Only the sum of the forward and the backward pass counts where there is one
/// microbatch; values that are kept are among the transient bytes. An instruction waits no longer
/// for those of the other part: each task waits for all that it starts. The program is one to
/// measure, and may not run, as its order has changed.
void splitStep(plan::Program &program);

} // namespace dtc

#endif // DTC_COMPILER_PLANNER_STEPSECTIONS_H
