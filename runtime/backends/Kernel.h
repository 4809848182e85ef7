//===- Kernel.h - Interfaces of kernels and backends ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The executor prepares every kernel call of a plan once, when the plan is loaded. Preparing checks
// the call against its signature in docs/kernels.md and does what depends on shapes alone (GEMM
// descriptors, index tables). What is prepared is enqueued on the queues of a device (Device.h).
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_KERNEL_H
#define DTC_RUNTIME_BACKENDS_KERNEL_H

#include "runtime/backends/Device.h"
#include "support/Error.h"
#include "support/Tensor.h"

#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace dtc::runtime {

/// The value of a kernel attribute; the alternatives of plan.proto's Attribute, `data` last.
struct RawBytes {
  std::string bytes;
};
using AttributeValue = std::variant<int64_t, double, std::string, bool, std::vector<int64_t>,
                                    std::vector<std::string>, RawBytes>;
using AttributeMap = std::map<std::string, AttributeValue>;

/// Where a device is on the mesh: axis name -> (coordinate, size). The temporal axis is among them;
/// its coordinate is the microbatch that is running.
struct AxisCoordinate {
  std::string name;
  int64_t size = 1;
  int64_t coordinate = 0;
  bool temporal = false;
  /// Of the temporal axis: how often the loop over microbatches has run before in this step.
  int64_t repetition = 0;
};

/// A kernel call as the plan states it.
struct KernelSignature {
  std::string kernel;
  std::vector<TensorType> inputs;
  std::vector<TensorType> outputs;
  AttributeMap attributes;
  /// The mesh, for kernels that depend on it. Coordinates are not meaningful while preparing.
  std::vector<AxisCoordinate> mesh;
};

/// What a kernel gets when it runs: addresses of memory of its device.
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

struct FusedCalls; // FusedCalls.h

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
  /// Opens the device for the process's device number `index`, from 0. Several may share the same
  /// hardware.
  virtual Expected<std::unique_ptr<Device>> openDevice(int64_t index) const = 0;
  /// This backend with so many threads of the host for each kernel, at least 1; null if its kernels
  /// use none. What it prepares is for its own devices.
  virtual std::shared_ptr<const Backend> withThreads(int threads) const { return nullptr; }
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_BACKENDS_KERNEL_H
