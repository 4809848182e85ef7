//===- ScheduleOrder.h - Order of the fragments of a loop -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_EXEC_SCHEDULEORDER_H
#define DTC_COMPILER_PASSES_EXEC_SCHEDULEORDER_H

#include "dialects/dist/Dist.h"

namespace dtc {

/// Puts the fragments of a pipeline's loop, each with its receives and sends, in the order in which
/// the schedule first runs them, so that the order of the text is that of execution. Leaves loops
/// without a schedule as they are.
void orderAsScheduled(dist::MicrobatchLoopOp loop);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_EXEC_SCHEDULEORDER_H
