//===- KernelSupport.h - Kernels from functions ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_KERNELSUPPORT_H
#define DTC_RUNTIME_BACKENDS_CPU_KERNELSUPPORT_H

#include "calls/SignatureChecker.h"
#include "runtime/backends/cpu/CpuKernels.h"
#include "runtime/backends/cpu/Parallel.h"
#include "runtime/backends/cpu/Simd.h"
#include "support/Float16.h"

#include <cstddef>
#include <memory>
#include <utility>

namespace dtc::runtime::cpu {

template <typename T> const T *input(const CpuArguments &args, size_t index) {
  return static_cast<const T *>(args.inputs[index]);
}
template <typename T> T *output(const CpuArguments &args, size_t index) {
  return static_cast<T *>(args.outputs[index]);
}

/// `bytes` rounded up to whole cache lines, so that the next array is aligned and not shared.
inline size_t roundToLines(size_t bytes) { return (bytes + 63) / 64 * 64; }

/// The bytes of an array of `count` elements in the workspace.
template <typename T> size_t arrayBytes(int64_t count) {
  return roundToLines(static_cast<size_t>(count) * sizeof(T));
}

/// Hands out arrays of the workspace one after the other.
class WorkspaceCursor {
public:
  explicit WorkspaceCursor(void *begin) : next(static_cast<std::byte *>(begin)) {}
  template <typename T> T *take(int64_t count) {
    T *array = reinterpret_cast<T *>(next);
    next += arrayBytes<T>(count);
    return array;
  }

private:
  std::byte *next;
};

/// A kernel from a function of the arguments and, if it needs workspace, a function from the
/// number of threads to bytes.
template <typename Run, typename Workspace> class FunctionKernel final : public CpuKernel {
public:
  FunctionKernel(Run run, Workspace workspace)
      : function(std::move(run)), workspace(std::move(workspace)) {}
  size_t workspaceBytesFor(int threads) const override { return workspace(threads); }
  void run(const CpuArguments &args) const override { function(args); }

private:
  Run function;
  Workspace workspace;
};

template <typename Run, typename Workspace>
std::unique_ptr<CpuKernel> makeKernel(Run run, Workspace workspace) {
  return std::make_unique<FunctionKernel<Run, Workspace>>(std::move(run), std::move(workspace));
}
template <typename Run> std::unique_ptr<CpuKernel> makeKernel(Run run) {
  return makeKernel(std::move(run), [](int) { return size_t{0}; });
}

/// Calls function(F()) with the float type F that `dtype` names: double, float, BFloat16 or
/// Float16.
template <typename Function> auto withFloatType(DType dtype, const Function &function) {
  switch (dtype) {
  case DType::F64:
    return function(double());
  case DType::BF16:
    return function(BFloat16());
  case DType::F16:
    return function(Float16());
  default:
    return function(float());
  }
}

/// The same where `dtype` is f32 or f64.
template <typename Function> auto withWideType(DType dtype, const Function &function) {
  return dtype == DType::F64 ? function(double()) : function(float());
}

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_KERNELSUPPORT_H
