//===- CommunicatorUse.h - Communicators that a plan needs ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PLAN_COMMUNICATORUSE_H
#define DTC_PLAN_COMMUNICATORUSE_H

#include "plan/plan.pb.h"
#include "support/GpuMemory.h"

namespace dtc {

/// The groups and the messages of a device that runs program `program` of a valid plan, of all its
/// entry points together: they share communicators, but for those that run beside the others, which
/// have groups of their own. Groups of one device are none.
CommunicatorNeeds communicatorNeeds(const plan::Plan &plan, int program);

} // namespace dtc

#endif // DTC_PLAN_COMMUNICATORUSE_H
