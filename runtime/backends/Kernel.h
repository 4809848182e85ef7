//===- Kernel.h - What a backend offers the executor ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The executor prepares every kernel call of a plan once, when the plan is loaded. Preparing checks
// the call against its signature in docs/kernels.md and does what depends on shapes alone (GEMM
// descriptors, index tables). Running touches only the operands and the workspace, allocates
// nothing and cannot fail.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_KERNEL_H
#define DTC_RUNTIME_BACKENDS_KERNEL_H

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

/// Where a device stands: axis name -> (coordinate, size). The temporal axis is among them; its
/// coordinate is the microbatch that is running.
struct AxisPosition {
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
  std::vector<AxisPosition> mesh;
};

/// What a kernel gets when it runs.
struct KernelArguments {
  std::span<void *const> inputs;
  std::span<void *const> outputs;
  std::span<const AxisPosition> position;
  /// At least workspaceBytes(), aligned to 64 bytes; its contents mean nothing before and after.
  void *workspace = nullptr;
  /// Threads that the kernel may use, at least 1.
  int threads = 1;
};

/// A prepared kernel call. Immutable: one object may run on many devices at once.
class Kernel {
public:
  virtual ~Kernel() = default;
  /// Scratch memory that a run with `threads` threads needs.
  virtual size_t workspaceBytes(int threads) const { return 0; }
  virtual void run(const KernelArguments &args) const = 0;
};

/// The kernels of one kind of device.
class Backend {
public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  /// Checks the call and prepares it. The error names the kernel, the operand and what was
  /// expected.
  virtual Expected<std::unique_ptr<Kernel>> prepare(const KernelSignature &signature) const = 0;
  /// Takes what kernels need that will run on the calling thread with so many threads, so that a
  /// lack of it is found before the first of them runs.
  virtual MaybeError startThreads(int threads) const { return std::nullopt; }
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_BACKENDS_KERNEL_H
