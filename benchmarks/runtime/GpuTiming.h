//===- GpuTiming.h - Timing work on a GPU ---------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Operands in the memory of GPU 0, and the time of the work that reads and writes them, by events
// of the GPU's queue.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_BENCHMARKS_RUNTIME_GPUTIMING_H
#define DTC_BENCHMARKS_RUNTIME_GPUTIMING_H

#include "runtime/backends/Device.h"
#include "runtime/backends/Kernel.h"
#include "support/Tensor.h"

#include <benchmark/benchmark.h>
#include <functional>
#include <memory>
#include <vector>

namespace dtc::runtime {

class GpuTiming {
public:
  static Expected<std::unique_ptr<GpuTiming>> create(const Backend &backend);

  /// The contents of floating point operands. A GPU multiplies zeros with less power, and so
  /// faster, than other numbers.
  enum class Contents { Zeros, Random };
  /// Memory for a tensor. Elements of type I32 are indices below the size of GPT-2's vocabulary:
  /// the larger an index is, the less frequent it is; 6 in 100 are 0.
  Expected<void *> place(const TensorType &type, Contents contents);
  /// Zeros.
  Expected<void *> placeBytes(size_t bytes);

  /// Enqueues work once.
  using Work = std::function<MaybeError(Queue &)>;
  /// The benchmark's loop. The work has been enqueued once before it is timed, since the first time
  /// it may choose algorithms and load kernels.
  void run(benchmark::State &state, const Work &work);

private:
  GpuTiming() = default;
  MaybeError fill(std::byte *to, size_t bytes, DType dtype);

  // Destroyed in the order memory, queue, device.
  std::unique_ptr<Device> device;
  std::unique_ptr<Queue> queue;
  std::vector<std::unique_ptr<DeviceMemory>> memory;
};

} // namespace dtc::runtime

#endif // DTC_BENCHMARKS_RUNTIME_GPUTIMING_H
