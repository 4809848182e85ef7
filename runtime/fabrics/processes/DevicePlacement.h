//===- DevicePlacement.h - Placement of devices on processes --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_PROCESSES_DEVICEPLACEMENT_H
#define DTC_RUNTIME_FABRICS_PROCESSES_DEVICEPLACEMENT_H

#include "support/Error.h"
#include "support/Mesh.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dtc::runtime {

/// The process of each device: all have consecutive ones, so that the last axes of the mesh stay in
/// a process, and their numbers differ by at most one. There are at least as many devices.
std::vector<int64_t> placeDevices(int64_t numDevices, int64_t numProcesses);

/// The devices of one process, in rising order.
std::vector<int64_t> devicesOfProcess(int64_t numDevices, int64_t numProcesses, int64_t process);

/// Whether a mesh can have `numProcesses` processes. The error says how many it can.
MaybeError checkProcesses(const Mesh &mesh, int64_t numProcesses);

/// How many processes a mesh has with `devicesPerProcess` devices each. The error says which
/// numbers fit.
Expected<int64_t> processesFor(const Mesh &mesh, int64_t devicesPerProcess);

/// Lines that say which process has which devices, and where each axis of the mesh lies: in a
/// process, in a host, or between hosts. `hosts` are those of the processes, in their order; those
/// of a host have to be consecutive. The error says how many devices of a host fit, where hosts
/// would cut an axis into parts of different sizes.
Expected<std::string> describePlacement(const Mesh &mesh, const std::vector<std::string> &hosts);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_PROCESSES_DEVICEPLACEMENT_H
