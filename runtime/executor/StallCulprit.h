//===- StallCulprit.h - The device for which the others wait --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_STALLCULPRIT_H
#define DTC_RUNTIME_EXECUTOR_STALLCULPRIT_H

#include "runtime/executor/DeviceExecutor.h"

#include <memory>
#include <string>
#include <vector>

namespace dtc::runtime {

/// Says of devices that stand still for whom they wait: lines such as "device 1 (dp=1) has not come
/// to what device 0 waits for: all_reduce of devices [0, 1], in task "step", instruction 12".
/// Members of a group have the same collectives in the same order, and the ends of a channel the
/// same messages, so one that has come to fewer of them is waited for; of those, the devices that
/// wait for none themselves are named. Where all members have come to a collective, that is named.
/// Devices of other processes are not known. Empty if nothing is found.
std::vector<std::string>
describeCulprits(const PreparedPlan &plan,
                 const std::vector<std::unique_ptr<DeviceExecutor>> &devices);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_STALLCULPRIT_H
