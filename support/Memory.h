//===- Memory.h - Large aligned memory ------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_MEMORY_H
#define DTC_SUPPORT_MEMORY_H

#include "support/Error.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace dtc {

/// An amount of memory, and the holder of the limit.
struct MemoryLimit {
  uint64_t bytes = 0;
  std::string holder; // the owner of the limit: "this machine"
};

/// The memory that this process may use: the machine's, or less if its control group or one around
/// it has a limit (of containers, for example). Files of the system are looked for below `root`.
MemoryLimit memoryLimit(const std::string &root = "");

/// Zeroed memory, aligned to a page. Pages take physical memory from the first time that
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

  /// Backs `bytes` bytes from `offset` on with memory now, rather than when each page is first
  /// written to. Their content does not change. Both are multiples of the size of a page, but for
  /// the end. Other threads may use the memory meanwhile.
  MaybeError populate(size_t offset, size_t bytes);

  std::byte *data() const { return begin; }
  size_t size() const { return length; }

private:
  std::byte *begin = nullptr;
  size_t length = 0;
};

} // namespace dtc

#endif // DTC_SUPPORT_MEMORY_H
