//===- Memory.cpp - Memory of the devices and pinned memory --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/Memory.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(DTC_STANDIN_ADDRESS)
#include <sanitizer/asan_interface.h>
#endif

namespace dtc::standin {

namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kGuardBytes = 64 * 1024;
constexpr size_t kMaxFreed = 64;

size_t roundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

/// Calls function(first, bytes) for what an allocation's pages have around its data.
template <typename Function> void forRedZones(const Allocation &allocation, Function function) {
  std::byte *end = allocation.data + allocation.bytes;
  function(allocation.pages, static_cast<size_t>(allocation.data - allocation.pages));
  function(end, static_cast<size_t>(allocation.pages + allocation.pageBytes - end));
}

#if !defined(DTC_STANDIN_ADDRESS)
/// A NaN in every floating-point type, and another one than fresh memory has.
constexpr std::byte kPattern[2] = {std::byte(0xFE), std::byte(0xFF)};

bool hasPattern(const std::byte *first, size_t bytes) {
  auto begins = [&](size_t i) {
    return first[i] == kPattern[reinterpret_cast<uintptr_t>(first + i) % 2];
  };
  if (bytes < 2)
    return bytes == 0 || begins(0);
  // The first two bytes have the pattern, and all others are equal to the byte two before.
  return begins(0) && begins(1) && std::memcmp(first, first + 2, bytes - 2) == 0;
}
#endif

} // namespace

std::byte *Memory::allocate(size_t bytes, int device, bool fills) {
  size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  Allocation made = {};
  made.bytes = bytes;
  made.device = device;
  made.pageBytes = roundUp(bytes, page);
  made.mappingBytes = made.pageBytes + 2 * kGuardBytes;
  void *mapping = mmap(nullptr, made.mappingBytes, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    return nullptr;
  made.mapping = static_cast<std::byte *>(mapping);
  made.pages = made.mapping + kGuardBytes;
  // As near to the end of the last page as the alignment allows.
  made.data = made.pages + (made.pageBytes - roundUp(bytes, kAlignment));
  if (mprotect(made.pages, made.pageBytes, PROT_READ | PROT_WRITE)) {
    munmap(mapping, made.mappingBytes);
    return nullptr;
  }
  if (fills)
    std::memset(made.data, 0xFF, bytes);
  forRedZones(made, [](std::byte *first, size_t count) {
#if defined(DTC_STANDIN_ADDRESS)
    __asan_poison_memory_region(first, count);
#else
    for (size_t i = 0; i < count; ++i)
      first[i] = kPattern[reinterpret_cast<uintptr_t>(first + i) % 2];
#endif
  });
  live.push_back(made);
  protect(made, device == kPinned || device == openDevices[0] || device == openDevices[1]);
  return made.data;
}

void Memory::protect(const Allocation &allocation, bool open) {
  mprotect(allocation.pages, allocation.pageBytes, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void Memory::unmap(const Allocation &allocation) {
#if defined(DTC_STANDIN_ADDRESS)
  __asan_unpoison_memory_region(allocation.pages, allocation.pageBytes);
#endif
  munmap(allocation.mapping, allocation.mappingBytes);
}

bool Memory::free(void *data, bool pinned) {
  auto found = std::find_if(live.begin(), live.end(), [&](const Allocation &allocation) {
    return allocation.data == data && (allocation.device == kPinned) == pinned;
  });
  if (found == live.end())
    return false;
  madvise(found->pages, found->pageBytes, MADV_DONTNEED);
  protect(*found, false);
  found->freed = true;
  freed.push_back(*found);
  live.erase(found);
  if (freed.size() > kMaxFreed) {
    unmap(freed.front());
    freed.pop_front();
  }
  return true;
}

void Memory::freeAll() {
  for (const Allocation &allocation : live)
    unmap(allocation);
  for (const Allocation &allocation : freed)
    unmap(allocation);
  live.clear();
  freed.clear();
  taken.clear();
}

const Allocation *Memory::find(const void *address) const {
  auto has = [&](const Allocation &allocation) {
    return address >= allocation.mapping && address < allocation.mapping + allocation.mappingBytes;
  };
  for (const Allocation &allocation : live)
    if (has(allocation))
      return &allocation;
  for (const Allocation &allocation : freed)
    if (has(allocation))
      return &allocation;
  return nullptr;
}

size_t Memory::bytesOf(int device) const {
  auto found = taken.find(device);
  size_t bytes = found == taken.end() ? 0 : static_cast<size_t>(found->second);
  for (const Allocation &allocation : live)
    if (allocation.device == device)
      bytes += roundUp(allocation.bytes, kAlignment);
  return bytes;
}

size_t Memory::count() const { return live.size(); }

void Memory::open(int device, int other) {
  if (openDevices[0] == device && openDevices[1] == other)
    return;
  for (const Allocation &allocation : live) {
    if (allocation.device == kPinned)
      continue;
    bool was = allocation.device == openDevices[0] || allocation.device == openDevices[1];
    bool is = allocation.device == device || allocation.device == other;
    if (was != is)
      protect(allocation, is);
  }
  openDevices[0] = device;
  openDevices[1] = other;
}

std::optional<std::string> Memory::findDamage() {
#if !defined(DTC_STANDIN_ADDRESS)
  for (const Allocation &allocation : live) {
    if (allocation.device != kPinned && allocation.device != openDevices[0] &&
        allocation.device != openDevices[1])
      continue;
    std::optional<std::string> damage;
    forRedZones(allocation, [&](std::byte *first, size_t count) {
      if (damage || hasPattern(first, count))
        return;
      for (size_t i = 0; i < count && !damage; ++i)
        if (!hasPattern(first + i, 1))
          damage = describe(first + i);
      // Once reported is enough.
      for (size_t i = 0; i < count; ++i)
        first[i] = kPattern[reinterpret_cast<uintptr_t>(first + i) % 2];
    });
    if (damage)
      return damage;
  }
#endif
  return std::nullopt;
}

std::optional<std::string> Memory::describe(const void *address) const {
  const Allocation *at = find(address);
  if (!at)
    return std::nullopt;
  std::string where;
  auto *byte = static_cast<const std::byte *>(address);
  if (byte < at->data)
    where = fmt::format("{} bytes before the start of", at->data - byte);
  else if (byte < at->data + at->bytes)
    where = fmt::format("byte {} of", byte - at->data);
  else
    where = fmt::format("{} bytes after the end of", byte - (at->data + at->bytes));
  return fmt::format(
      "{} {} of {} bytes of {}", where, at->freed ? "a freed allocation" : "an allocation",
      at->bytes, at->device == kPinned ? "pinned memory" : "device " + std::to_string(at->device));
}

} // namespace dtc::standin
