//===- LocalFabric.h - Devices that are threads ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_LOCAL_LOCALFABRIC_H
#define DTC_RUNTIME_FABRICS_LOCAL_LOCALFABRIC_H

#include "runtime/fabrics/Fabric.h"

#include <memory>

namespace dtc::runtime {

/// Most devices that run as threads of one process.
inline constexpr int64_t kMaxLocalDevices = 1024;

/// A fabric whose devices are all in this process, each a thread. They exchange tensors in the
/// memory of the host; tensors in another memory are copied there and back (Staged.h).
Expected<std::shared_ptr<Fabric>> openLocalFabric(const Mesh &mesh);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_LOCAL_LOCALFABRIC_H
