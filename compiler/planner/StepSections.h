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
/// reads the latter. With one microbatch nothing but its sum counts, and what the passes keep is
/// among what they hold. An instruction waits no longer for those of the other part: each task
/// waits for all that it starts. The program is one to measure, and may not run, as its order has
/// changed.
void splitStep(plan::Program &program);

} // namespace dtc

#endif // DTC_COMPILER_PLANNER_STEPSECTIONS_H
