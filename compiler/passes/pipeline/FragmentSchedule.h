//===- FragmentSchedule.h - The order of a pipeline's fragments -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_PIPELINE_FRAGMENTSCHEDULE_H
#define DTC_COMPILER_PASSES_PIPELINE_FRAGMENTSCHEDULE_H

#include "compiler/analysis/Layout.h"
#include "compiler/analysis/PipelineSchedule.h"
#include "compiler/passes/pipeline/PipelineProgram.h"

namespace dtc {

/// For each device pairs of an op of its body (see bodyOf) and a microbatch: when fragments run,
/// when receives start and when sends must be over. Times are estimated (localSeconds); see
/// postReceives for why the order cannot deadlock whatever they are.
std::vector<std::vector<int64_t>> scheduleFragments(const LinkedMesh &mesh,
                                                    const PipelineProgram &program,
                                                    const PipelineSchedule &schedule);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_PIPELINE_FRAGMENTSCHEDULE_H
