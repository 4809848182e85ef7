//===- ProcessFabric.h - Devices in several processes ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_PROCESSES_PROCESSFABRIC_H
#define DTC_RUNTIME_FABRICS_PROCESSES_PROCESSFABRIC_H

#include "runtime/fabrics/Fabric.h"
#include "runtime/fabrics/processes/Messages.h"
#include "runtime/fabrics/processes/ProcessGroup.h"

#include <memory>

namespace dtc::runtime {

/// A fabric whose devices are threads of processes that send each other messages, from and to the
/// memory of the host. All processes open it, for the same mesh, with the same `sharing`.
Expected<std::shared_ptr<Fabric>> openProcessFabric(const Mesh &mesh,
                                                    std::shared_ptr<Messages> messages,
                                                    HostSharing sharing = HostSharing::Messages);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_PROCESSES_PROCESSFABRIC_H
