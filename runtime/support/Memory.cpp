//===- Memory.cpp - Large aligned memory ----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/support/Memory.h"

#include "runtime/support/Format.h"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace dtc::runtime {

uint64_t physicalMemoryBytes() {
  long pages = sysconf(_SC_PHYS_PAGES);
  long pageBytes = sysconf(_SC_PAGE_SIZE);
  if (pages <= 0 || pageBytes <= 0)
    return UINT64_MAX;
  return static_cast<uint64_t>(pages) * static_cast<uint64_t>(pageBytes);
}

PageMemory::PageMemory(PageMemory &&other) noexcept
    : begin(std::exchange(other.begin, nullptr)), length(std::exchange(other.length, 0)) {}

PageMemory &PageMemory::operator=(PageMemory &&other) noexcept {
  std::swap(begin, other.begin);
  std::swap(length, other.length);
  return *this;
}

PageMemory::~PageMemory() {
  if (begin)
    munmap(begin, length);
}

Expected<PageMemory> PageMemory::allocate(size_t bytes) {
  PageMemory memory;
  if (bytes == 0)
    return memory;
  void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    return Error{fmt::format("cannot allocate {} ({} bytes): {}", formatBytes(bytes), bytes,
                             std::strerror(errno))};
  memory.begin = static_cast<std::byte *>(mapped);
  memory.length = bytes;
  // Matrices span many small pages; large ones spare the address translation. Advice may be
  // refused.
  if (bytes >= (size_t{4} << 20))
    madvise(mapped, bytes, MADV_HUGEPAGE);
  return memory;
}

} // namespace dtc::runtime
