//===- GpuMemoryReport.h - What a run takes of a GPU, as text -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_REPORT_GPUMEMORYREPORT_H
#define DTC_REPORT_GPUMEMORYREPORT_H

#include "plan/plan.pb.h"
#include "support/GpuMemory.h"

#include <string>

namespace dtc {

/// A row for each kind of memory of the GPU that needs most, where each device of a valid plan has
/// one: the arena of the plan, libraries, and what NCCL takes by kind.
std::string formatGpuMemory(const plan::Plan &plan, const NcclChannels &channels);

} // namespace dtc

#endif // DTC_REPORT_GPUMEMORYREPORT_H
