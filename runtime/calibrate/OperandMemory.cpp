//===- OperandMemory.cpp - Memory for operands, used again ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/OperandMemory.h"

#include <algorithm>
#include <cstring>

namespace dtc::runtime {

Expected<std::byte *> OperandMemory::take(size_t bytes) {
  if (chunks.empty() || chunks.back().bytes - used < bytes) {
    Expected<Chunk> chunk = allocate(std::max(bytes, chunkBytes));
    if (!chunk)
      return chunk.error();
    chunks.push_back(std::move(*chunk));
    used = 0;
  }
  std::byte *begin = chunks.back().begin + used;
  used = std::min(chunks.back().bytes, used + aligned(bytes));
  return begin;
}

void OperandMemory::reset() {
  // Operands that do not fit one chunk are rare, and not kept.
  if (chunks.size() > 1)
    chunks.resize(1);
  used = 0;
}

//===----------------------------------------------------------------------===//
// Memory of the host
//===----------------------------------------------------------------------===//

/// Only pages that are touched take memory.
HostOperandMemory::HostOperandMemory() : OperandMemory(64, size_t{256} << 20) {}

Expected<OperandMemory::Chunk> HostOperandMemory::allocate(size_t bytes) {
  Expected<PageMemory> pages = PageMemory::allocate(bytes);
  if (!pages)
    return pages.error();
  auto owner = std::make_shared<PageMemory>(std::move(*pages));
  return Chunk{owner->data(), owner->size(), owner};
}

MaybeError HostOperandMemory::fill(std::byte *to, size_t bytes, const HostTensor &pattern) {
  for (size_t offset = 0; offset < bytes; offset += pattern.bytes.size())
    std::memcpy(to + offset, pattern.bytes.data(), std::min(bytes - offset, pattern.bytes.size()));
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Memory of a device
//===----------------------------------------------------------------------===//

DeviceOperandMemory::DeviceOperandMemory(Device &device, Queue &queue, size_t chunkBytes)
    : OperandMemory(device.alignment(), chunkBytes), device(device), queue(queue) {}

Expected<OperandMemory::Chunk> DeviceOperandMemory::allocate(size_t bytes) {
  Expected<std::unique_ptr<DeviceMemory>> memory = device.allocate(bytes);
  if (!memory)
    return memory.error();
  std::shared_ptr<DeviceMemory> owner = std::move(*memory);
  return Chunk{owner->data(), owner->bytes(), owner};
}

Expected<DeviceMemory *> DeviceOperandMemory::repeated(const HostTensor &pattern) {
  size_t bytes = pattern.bytes.size();
  std::unique_ptr<DeviceMemory> &kept =
      patterns[std::string(reinterpret_cast<const char *>(pattern.bytes.data()), bytes)];
  if (kept)
    return kept.get();
  // Small operands are filled by one copy.
  const size_t repetitions = std::max<size_t>(1, (size_t{1} << 20) / bytes);
  Expected<std::unique_ptr<DeviceMemory>> staging = device.allocateStaging(repetitions * bytes);
  if (!staging)
    return staging.error();
  for (size_t i = 0; i < repetitions; ++i)
    std::memcpy((*staging)->data() + i * bytes, pattern.bytes.data(), bytes);
  Expected<std::unique_ptr<DeviceMemory>> memory = device.allocate(repetitions * bytes);
  if (!memory)
    return memory.error();
  MaybeError error = queue.copy((*memory)->data(), (*staging)->data(), repetitions * bytes);
  if (!error)
    error = queue.finish();
  if (error)
    return *error;
  kept = std::move(*memory);
  return kept.get();
}

MaybeError DeviceOperandMemory::fill(std::byte *to, size_t bytes, const HostTensor &pattern) {
  Expected<DeviceMemory *> first = repeated(pattern);
  if (!first)
    return first.error();
  size_t filled = std::min(bytes, (*first)->bytes());
  if (MaybeError error = queue.copy(to, (*first)->data(), filled))
    return error;
  // The filled part holds whole patterns, as long as more is to be filled.
  while (filled < bytes) {
    size_t more = std::min(filled, bytes - filled);
    if (MaybeError error = queue.copy(to + filled, to, more))
      return error;
    filled += more;
  }
  return std::nullopt;
}

} // namespace dtc::runtime
