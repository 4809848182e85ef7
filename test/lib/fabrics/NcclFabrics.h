//===- NcclFabrics.h - NCCL between processes that are threads -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_LIB_FABRICS_NCCLFABRICS_H
#define DTC_TEST_LIB_FABRICS_NCCLFABRICS_H

#include "runtime/fabrics/nccl/NcclFabric.h"
#include "test/lib/fabrics/ThreadMessages.h"

namespace dtc::runtime::testing {

/// NCCL between the GPUs of `processes` processes, at most one for each device.
inline OpenFabric ncclFabric(int64_t processes = 1, ThreadMessagesOptions options = {},
                             NcclOptions nccl = {}) {
  if (processes == 1)
    return [=](const Mesh &mesh) { return openNcclFabric(mesh, nullptr, nccl); };
  return processesFabric(
      processes, [=](int64_t count) { return openThreadMessages(count, options); },
      [=](const Mesh &mesh, const std::shared_ptr<Messages> &messages) {
        return openNcclFabric(mesh, messages, nccl);
      });
}

} // namespace dtc::runtime::testing

#endif // DTC_TEST_LIB_FABRICS_NCCLFABRICS_H
