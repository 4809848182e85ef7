//===- NcclFabric.h - GPUs that are connected by NCCL ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_NCCL_NCCLFABRIC_H
#define DTC_RUNTIME_FABRICS_NCCL_NCCLFABRIC_H

#include "runtime/fabrics/Fabric.h"

#include <memory>

namespace dtc::runtime {

/// A fabric whose devices are all in this process, each with a GPU of its own: device i of the mesh
/// has GPU i. They exchange tensors from the memory of one GPU to that of the other. An error says
/// that there are too few GPUs, or no NCCL.
Expected<std::shared_ptr<Fabric>> openNcclFabric(const Mesh &mesh);

/// For people: the version of NCCL, or what was looked for and where.
std::string describeNccl();

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_NCCL_NCCLFABRIC_H
