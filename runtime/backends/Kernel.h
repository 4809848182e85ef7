//===- Kernel.h - Interfaces of kernels and backends ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The executor prepares every kernel call of a plan once, when the plan is loaded. Preparing checks
// the call against its signature in docs/kernels.md and does what depends on shapes alone (GEMM
// descriptors, index tables). Prepared calls are enqueued on the queues of a device (Device.h).
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_KERNEL_H
#define DTC_RUNTIME_BACKENDS_KERNEL_H

#include "calls/KernelSignature.h"
#include "runtime/backends/Device.h"
#include "support/Error.h"

#include <memory>
#include <span>
#include <string>

namespace dtc {
struct FusedCalls; // calls/fusion/FusedCalls.h
} // namespace dtc

namespace dtc::runtime {

/// The arguments of a kernel when it runs: addresses of memory of its device.
struct KernelArguments {
  std::span<void *const> inputs;
  std::span<void *const> outputs;
  std::span<const AxisCoordinate> position;
  /// At least workspaceBytes(), aligned as Device::alignment() says; its contents mean nothing
  /// before and after.
  void *workspace = nullptr;
};

/// A prepared kernel call, which queues of its backend's devices run (Queue::enqueue). Immutable:
/// one object may run on many devices at once.
class Kernel {
public:
  virtual ~Kernel() = default;
  /// Workspace that a run needs.
  virtual size_t workspaceBytes() const { return 0; }
};

/// The kernels of one kind of device, and the devices.
class Backend {
public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  /// Checks the call and prepares it. The error names the kernel, the operand and what was
  /// expected.
  virtual Expected<std::unique_ptr<Kernel>> prepare(const KernelSignature &signature) const = 0;
  /// Whether prepareFused() may give anything.
  virtual bool fusesCalls() const { return false; }
  /// Prepares one kernel for all the calls; null if there is none.
  virtual std::unique_ptr<Kernel> prepareFused(const FusedCalls &calls) const { return nullptr; }
  /// Whether prepareOfRows() may give anything.
  virtual bool leavesOutRows() const { return false; }
  /// Prepares a call of a kernel that keeps zeros (KernelInfo), whose output has `rows` rows in
  /// groups of `rowsOfGroup`. One more input has an index for each row, i32: rows whose index is
  /// negative come last in their group, and are zeros in all operands. Null if there is no kernel
  /// that leaves them out.
  virtual std::unique_ptr<Kernel> prepareOfRows(const KernelSignature &signature, int64_t rows,
                                                int64_t rowsOfGroup) const {
    return nullptr;
  }
  /// Opens the device for the process's device number `index`, from 0. Several may share the same
  /// hardware.
  virtual Expected<std::unique_ptr<Device>> openDevice(int64_t index) const = 0;
  /// This backend with `threads` threads of the host for each kernel, at least 1; null if its
  /// kernels use none. Its prepared kernels are for its own devices.
  virtual std::shared_ptr<const Backend> withThreads(int threads) const { return nullptr; }
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_BACKENDS_KERNEL_H
