//===- Memory.h - Large aligned memory ------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_SUPPORT_MEMORY_H
#define DTC_RUNTIME_SUPPORT_MEMORY_H

#include "runtime/support/Error.h"

#include <cstddef>
#include <cstdint>

namespace dtc::runtime {

/// Bytes of memory that this machine has.
uint64_t physicalMemoryBytes();

/// Zeroed memory, aligned to at least 64 bytes. Pages take physical memory from the first time that
/// they are touched.
class PageMemory {
public:
  PageMemory() = default;
  PageMemory(PageMemory &&other) noexcept;
  PageMemory &operator=(PageMemory &&other) noexcept;
  PageMemory(const PageMemory &) = delete;
  PageMemory &operator=(const PageMemory &) = delete;
  ~PageMemory();

  /// Maps `bytes` bytes (none for 0). The error says how much was asked for.
  static Expected<PageMemory> allocate(size_t bytes);

  std::byte *data() const { return begin; }
  size_t size() const { return length; }

private:
  std::byte *begin = nullptr;
  size_t length = 0;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_SUPPORT_MEMORY_H
