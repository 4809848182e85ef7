//===- HostMemory.h - Memory that processes of a host share ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_PROCESSES_HOSTMEMORY_H
#define DTC_RUNTIME_FABRICS_PROCESSES_HOSTMEMORY_H

#include "runtime/fabrics/processes/Messages.h"
#include "runtime/fabrics/processes/ProcessGroup.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace dtc::runtime {

/// Memory that all processes of a group see, which are on one host. It has no name in a file
/// system, so that nothing is left of it however the processes end.
class HostMemory {
public:
  /// All processes of the group open it together, by messages with `tag`. Null, in all of them, if
  /// they cannot share memory: they are on several hosts, or in containers that hide them from each
  /// other.
  static Expected<std::unique_ptr<HostMemory>> open(Messages &messages, const ProcessGroup &group,
                                                    int64_t tag, size_t bytes);
  ~HostMemory();
  HostMemory(const HostMemory &) = delete;
  HostMemory &operator=(const HostMemory &) = delete;

  /// Zero at first; at a multiple of the size of a page.
  std::byte *data() const;

private:
  HostMemory(std::byte *file, size_t bytes) : file(file), bytes(bytes) {}

  std::byte *file;
  size_t bytes;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_PROCESSES_HOSTMEMORY_H
