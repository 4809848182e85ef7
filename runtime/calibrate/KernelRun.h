//===- KernelRun.h - A kernel with operands, ready to run -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CALIBRATE_KERNELRUN_H
#define DTC_RUNTIME_CALIBRATE_KERNELRUN_H

#include "runtime/backends/Kernel.h"
#include "runtime/calibrate/OperandMemory.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace dtc::runtime {

struct KernelRunOptions {
  /// Threads that the kernel may use, at least 1.
  int threads = 1;
  /// Whether outputs lie in place of inputs, where docs/kernels.md allows it.
  bool inPlace = false;
  /// Sets of operands are made until they have this many bytes together (one set at least,
  /// `mostSets` at most), and are used in turn: the operands of a kernel in a plan are rarely in
  /// the cache next to the core, as those of a kernel that runs again and again are.
  size_t workingSetBytes = 0;
  size_t mostSets = 1024;
  /// Integers lie on [0, indices).
  int64_t indices = 256;
  /// Where the operands lie; null: in memory of the host and of the run's own. It is not reset.
  std::shared_ptr<OperandMemory> memory = nullptr;
  /// The queue that gets the calls, and outlives the run; null: a queue of its own, of a device in
  /// the memory of the host.
  Queue *queue = nullptr;
};

/// A prepared kernel with operands in memory as devices have it. Floats lie on [-1, 1] and begin
/// with 1; every second bool is true.
class KernelRun {
public:
  /// The error is the backend's, or says that the memory is too small.
  static Expected<KernelRun> create(const Backend &backend, const KernelSignature &signature,
                                    const KernelRunOptions &options = {});

  /// The bytes of all operands of one call.
  int64_t bytes() const { return operandBytes; }
  /// Enqueues the kernel with the next set of operands.
  MaybeError enqueue();
  /// The same on a queue of its own, whose kernels cannot fail, and run at once.
  void run() { (void)enqueue(); }

private:
  KernelRun() = default;
  MaybeError openQueue(const Backend &backend);
  MaybeError placeOperands(const KernelSignature &signature, const KernelRunOptions &options);

  std::shared_ptr<const Backend> backend; // of the kernel; null: the caller's
  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Device> device;
  std::unique_ptr<Queue> ownQueue;
  Queue *queue = nullptr;
  std::vector<AxisCoordinate> position;
  std::shared_ptr<OperandMemory> memory;
  std::vector<void *> operands; // of one set after the other: inputs, outputs
  size_t inputs = 0, operandsPerSet = 0;
  size_t nextSet = 0; // where its operands begin
  void *workspace = nullptr;
  int64_t operandBytes = 0;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CALIBRATE_KERNELRUN_H
