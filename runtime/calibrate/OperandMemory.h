//===- OperandMemory.h - Memory for operands, used again ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CALIBRATE_OPERANDMEMORY_H
#define DTC_RUNTIME_CALIBRATE_OPERANDMEMORY_H

#include "runtime/backends/Device.h"
#include "support/Memory.h"
#include "support/Tensor.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace dtc::runtime {

/// Memory that is taken from its front to its end, and again from its front after reset(): pages
/// that were touched once need not be mapped again, which can take longer than what is measured.
class OperandMemory {
public:
  virtual ~OperandMemory() = default;

  /// At least `bytes` bytes, aligned to alignment(). They hold anything, until reset().
  Expected<std::byte *> take(size_t bytes);
  /// Gives all back that was taken.
  void reset();
  /// `bytes`, with the gap behind them that aligns the next ones.
  size_t aligned(size_t bytes) const { return (bytes + alignment - 1) / alignment * alignment; }

  /// Repeats a pattern over bytes that were taken.
  virtual MaybeError fill(std::byte *to, size_t bytes, const HostTensor &pattern) = 0;

protected:
  struct Chunk {
    std::byte *begin = nullptr;
    size_t bytes = 0;
    std::shared_ptr<void> owner;
  };

  /// Chunks have `chunkBytes`, or more where more are taken at once.
  OperandMemory(size_t alignment, size_t chunkBytes)
      : alignment(alignment), chunkBytes(chunkBytes) {}
  virtual Expected<Chunk> allocate(size_t bytes) = 0;

private:
  const size_t alignment, chunkBytes;
  std::vector<Chunk> chunks; // taken from the last one
  size_t used = 0;           // of the last one
};

/// Memory of the host.
class HostOperandMemory final : public OperandMemory {
public:
  HostOperandMemory();
  MaybeError fill(std::byte *to, size_t bytes, const HostTensor &pattern) override;

private:
  Expected<Chunk> allocate(size_t bytes) override;
};

/// Memory of a device, filled by work of a queue. Both outlive it.
class DeviceOperandMemory final : public OperandMemory {
public:
  DeviceOperandMemory(Device &device, Queue &queue, size_t chunkBytes);
  MaybeError fill(std::byte *to, size_t bytes, const HostTensor &pattern) override;

private:
  Expected<Chunk> allocate(size_t bytes) override;
  /// Some repetitions of a pattern in memory of the device.
  Expected<DeviceMemory *> repeated(const HostTensor &pattern);

  Device &device;
  Queue &queue;
  std::map<std::string, std::unique_ptr<DeviceMemory>> patterns; // by their bytes
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CALIBRATE_OPERANDMEMORY_H
