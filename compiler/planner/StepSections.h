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

/// Cuts the task of a program without a pipeline that computes the loss into three in its place:
/// the forward pass, up to the loss; the backward pass; and the update, which is all that writes
/// parameters and optimizer states or reads the latter. What waits for an async instruction of
/// another of the three waits no longer: each task waits for all that it starts. The program is one
/// to measure, and may not run, as the update may come later than it did.
void splitStep(plan::Program &program);

} // namespace dtc

#endif // DTC_COMPILER_PLANNER_STEPSECTIONS_H
