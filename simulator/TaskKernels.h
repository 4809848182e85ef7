//===- TaskKernels.h - The kernels of a task as a device runs them --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_TASKKERNELS_H
#define DTC_SIMULATOR_TASKKERNELS_H

#include "calls/KernelSignature.h"
#include "calls/fusion/CallGroups.h"
#include "plan/KernelTable.h"
#include "plan/plan.pb.h"
#include "simulator/StepWork.h"
#include "simulator/cluster/DeviceTime.h"

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace dtc {

/// How a device computes several calls by one kernel (cluster.proto's DeviceKind).
enum class KernelFusion { None, Pointwise, Calls };
KernelFusion fusionOf(const cluster::DeviceKind &device);

/// The kernels that a device runs for a task.
///
/// Where it fuses work element by element (Pointwise) a kernel that works so is part of the one
/// whose result it reads, if that works so too, and a conversion or a sum over microbatches part of
/// the product whose result it takes; its other operands must have been there when that kernel
/// began. Values that pass between the parts of a kernel are not read, and are written only if
/// others read them before a part of the kernel overwrites them.
///
/// With Calls it has one kernel for calls that the CUDA backend computes by one kernel
/// (calls/fusion/), and one launch for neighbours that may share one.
class TaskKernels {
public:
  /// `readers` comes from countReaders() of the program. Every product has a shapeOfProduct().
  TaskKernels(const plan::Plan &plan, const plan::Program &program, const plan::Task &task,
              const std::vector<uint32_t> &readers, KernelFusion fusion);

  /// The seconds of the kernel that begins with instruction `index` on a device; 0 where that is
  /// part of another one. Adds to `classes`.
  double seconds(int index, const cluster::DeviceKind &device, KernelSeconds &classes) const;

private:
  struct Kernel {
    const plan::Instruction *head = nullptr;
    double flops = 0, bytes = 0;
    double geluElements = 0;  // of the epilogue of a product
    double biasGradBytes = 0; // that a product's epilogue reads for the gradient of a bias
    bool isPart = false;
    bool sharesLaunch = false; // with a kernel before it
  };
  /// The last writer of a buffer.
  struct Write {
    int instruction = 0;
    bool isKernel = false; // if not, it comes from another device
    double bytes = 0;
    bool isReadByOthers = false; // than parts of the kernel that wrote it, up to now
  };

  void addPointwise(bool fuses);
  void addGroups(const plan::Plan &plan);
  Kernel kernelOf(const CallGroup &group) const;
  /// The seconds beside the product of a kernel with an epilogue. Adds to `classes`.
  static double epilogueSeconds(const Kernel &kernel, DType dtype,
                                const cluster::DeviceKind &device, KernelSeconds &classes);
  void shareLaunches(const std::vector<AxisCoordinate> &axes);
  void addKernel(int index);
  /// The kernel that instruction `index` becomes a part of, or -1.
  int findHost(int index) const;
  /// Whether a kernel or a part of it wrote this.
  bool isOf(const Write &write, int kernel) const;
  double bytesOf(uint32_t buffer) const;

  const plan::Program &program;
  const plan::Task &task;
  const std::vector<uint32_t> &readers;
  std::vector<Kernel> kernels; // by instruction
  std::vector<int> hosts;      // by instruction: the kernel that it is a part of, -1: none
  std::unordered_map<uint32_t, Write> writes; // by buffer
};

/// How many instructions of a program's tasks, transfers, states and outputs read each buffer, or a
/// view of it.
std::vector<uint32_t> countReaders(const plan::Program &program);

/// The work of a kernel call on its own.
KernelWork workOf(const plan::Program &program, const plan::Instruction &instruction);

/// The shape of a product (einsum, conv); none if its attributes do not fit its operands.
std::optional<MatrixShape> shapeOfProduct(const plan::Program &program,
                                          const plan::KernelCall &call);

} // namespace dtc

#endif // DTC_SIMULATOR_TASKKERNELS_H
