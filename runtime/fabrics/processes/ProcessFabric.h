//===- ProcessFabric.h - Devices in several processes ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_PROCESSES_PROCESSFABRIC_H
#define DTC_RUNTIME_FABRICS_PROCESSES_PROCESSFABRIC_H

#include "runtime/fabrics/Fabric.h"
#include "runtime/fabrics/processes/Messages.h"

#include <memory>
#include <vector>

namespace dtc::runtime {

/// The process of each device: all have consecutive ones, so that the last axes of the mesh stay in
/// a process, and their numbers differ by at most one. There are at least as many devices.
std::vector<int64_t> placeDevices(int64_t numDevices, int64_t numProcesses);

/// A fabric whose devices are threads of processes that send each other messages, from and to the
/// memory of the host. All processes open it, for the same mesh.
Expected<std::shared_ptr<Fabric>> openProcessFabric(const Mesh &mesh,
                                                    std::shared_ptr<Messages> messages);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_PROCESSES_PROCESSFABRIC_H
