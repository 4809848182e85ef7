//===- NcclFabric.h - GPUs that are connected by NCCL ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_NCCL_NCCLFABRIC_H
#define DTC_RUNTIME_FABRICS_NCCL_NCCLFABRIC_H

#include "runtime/fabrics/Fabric.h"
#include "runtime/fabrics/processes/Messages.h"

#include <memory>

namespace dtc::runtime {

struct NcclOptions {
  /// Devices may share a GPU, where NCCL is 2.30 or newer: for tests of plans on few GPUs. They
  /// take turns, and the data that they exchange stays on the GPU, so times say nothing.
  bool sharesGpus = false;
  /// The most channels of a communicator, 1 to 64; each takes memory of the GPU and a
  /// multiprocessor. 0: as many as NCCL chooses, and few where devices share a GPU.
  int mostChannels = 0;
};

/// A fabric whose devices each have a GPU of its own and exchange tensors from the memory of one
/// GPU to that of the other. Of G GPUs that a process sees, device i of the mesh has number i
/// modulo G: processes of a host that see all its GPUs share them out, and each of those that see
/// GPUs of their own has these.
///
/// `messages` connect the processes that have the devices together, null: one has all. All of them
/// call it, and get the same error: that a process has too few GPUs, the same GPU as another one,
/// no NCCL, or another version of it.
Expected<std::shared_ptr<Fabric>> openNcclFabric(const Mesh &mesh,
                                                 const std::shared_ptr<Messages> &messages,
                                                 const NcclOptions &options = {});

/// For people: the version of NCCL, or what was looked for and where.
std::string describeNccl();

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_NCCL_NCCLFABRIC_H
