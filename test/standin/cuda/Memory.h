//===- Memory.h - Memory of the devices and pinned memory -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// An allocation is between pages that cannot be accessed; the rest of its own first and last page
// is a red zone with a pattern. Memory of a device can be accessed only while work of that
// device is executed: the host, and kernels of other devices, end the process with a report. Fresh
// memory is full of bytes 0xFF, which are a NaN in every floating-point type and -1 as an integer.
// The addresses of freed memory are not used again for a while.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_MEMORY_H
#define DTC_TEST_STANDIN_CUDA_MEMORY_H

#include <algorithm>
#include <cstddef>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string>

namespace dtc::standin {

/// The device of pinned memory.
constexpr int kPinned = -1;

struct Allocation {
  std::byte *data;
  size_t bytes;
  int device;
  bool freed = false;

  // Pages with the data, and the mapping, which has others around them.
  std::byte *pages, *mapping;
  size_t pageBytes, mappingBytes;
};

/// The caller holds the lock of the engine, but for describe().
class Memory {
public:
  /// Aligned to 256 bytes. None if the system has no memory.
  std::byte *allocate(size_t bytes, int device, bool fills = true);
  /// Whether an allocation of the device, or of pinned memory, begins there.
  bool free(void *data, bool pinned);
  void freeAll();

  /// The allocation that has `address`, its end, or its surroundings; a freed one too.
  const Allocation *find(const void *address) const;
  /// The bytes that are allocated on the device, and those that libraries have taken.
  size_t bytesOf(int device) const;
  /// Memory that a library takes for itself, which nobody accesses; negative: gives back.
  void take(int device, ptrdiff_t bytes) {
    ptrdiff_t &all = taken[device];
    all = std::max<ptrdiff_t>(0, all + bytes); // forgotten bytes are not given back
  }
  size_t count() const;

  /// Lets work of the devices access their memory; kPinned for none.
  void open(int device, int other);
  /// The first allocation whose red zones have changed.
  std::optional<std::string> findDamage();
  /// "16 bytes after the end of an allocation of 4096 bytes of device 0"; none for an address that
  /// has nothing to do with devices.
  std::optional<std::string> describe(const void *address) const;

private:
  void protect(const Allocation &allocation, bool open);
  void unmap(const Allocation &allocation);

  std::list<Allocation> live;
  std::deque<Allocation> freed;
  std::map<int, ptrdiff_t> taken; // by device
  int openDevices[2] = {kPinned, kPinned};
};

} // namespace dtc::standin

#endif // DTC_TEST_STANDIN_CUDA_MEMORY_H
