//===- CpuKernel.h - Base class of CPU kernels ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_CPUKERNEL_H
#define DTC_RUNTIME_BACKENDS_CPU_CPUKERNEL_H

#include "runtime/backends/Kernel.h"

#include <cstddef>

namespace dtc::runtime::cpu {

/// The arguments of a kernel when it runs.
struct CpuArguments : KernelArguments {
  /// Threads that it may use, at least 1.
  int threads = 1;
};

/// A kernel that the queues of a CPU run. Running touches only the operands and the workspace and
/// allocates nothing. An exception is an error of the queue.
class CpuKernel : public Kernel {
public:
  size_t workspaceBytes() const final { return workspaceBytesFor(threads); }
  /// Workspace that a run with `threads` threads needs.
  virtual size_t workspaceBytesFor(int threads) const { return 0; }
  virtual void run(const CpuArguments &args) const = 0;

  /// Sets the threads of every run; called before the first one.
  void setThreads(int count) { threads = count; }
  void runPrepared(const KernelArguments &args) const { run(CpuArguments{args, threads}); }

private:
  int threads = 1;
};

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_CPUKERNEL_H
