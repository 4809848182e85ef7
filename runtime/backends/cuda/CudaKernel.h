//===- CudaKernel.h - Prepared kernel calls of the CUDA backend -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_CUDAKERNEL_H
#define DTC_RUNTIME_BACKENDS_CUDA_CUDAKERNEL_H

#include "calls/fusion/Fusions.h"
#include "runtime/backends/Kernel.h"
#include "runtime/backends/cuda/CudaDevice.h"
#include "runtime/backends/shared/KernelRegistry.h"

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dtc::runtime::cuda {

/// A prepared call, whose work enqueue() gives a queue. One object serves all
/// GPUs, so it holds no memory of a device.
class CudaKernel : public Kernel {
public:
  explicit CudaKernel(std::string name = {}) : kernelName(std::move(name)) {}
  /// The name in docs/kernels.md, for messages.
  const std::string &name() const { return kernelName; }
  virtual MaybeError enqueue(CudaQueue &queue, const KernelArguments &args) const = 0;
  /// Whether enqueue() launches nothing but gives its work to CudaQueue::hold().
  virtual bool sharesLaunches() const { return false; }

private:
  friend class CudaBackend;
  std::string kernelName;
};

using PrepareResult = Expected<std::unique_ptr<CudaKernel>>;

using KernelEntry = RegisteredKernel<CudaKernel>;

/// Calls one by one.
using SingleKernels = std::vector<std::shared_ptr<const CudaKernel>>;

/// One kernel for several calls (calls/fusion/Fusions.h).
PrepareResult prepareFusedProduct(const FusedCalls &calls, FusedProduct match,
                                  const SingleKernels &singles);
PrepareResult prepareAddedNormGrad(const FusedCalls &calls, const AddedGradient &match);
PrepareResult prepareAddedEmbeddingGrad(const FusedCalls &calls, const AddedGradient &match);
PrepareResult prepareLossAndGrad(const FusedCalls &calls, const LossAndGrad &match);
PrepareResult prepareGatedActivation(const FusedCalls &calls, const GatedActivation &match);
PrepareResult prepareConvertedUpdate(const FusedCalls &calls, const ConvertedUpdate &match);
PrepareResult prepareNormAndLargest(const FusedCalls &calls, const NormAndLargest &match);

std::span<const KernelEntry> unaryKernels();
std::span<const KernelEntry> binaryKernels();
std::span<const KernelEntry> conversionKernels();
std::span<const KernelEntry> dataMovementKernels();
std::span<const KernelEntry> reduceKernels();
std::span<const KernelEntry> shardingKernels();
std::span<const KernelEntry> einsumKernels();
std::span<const KernelEntry> indexingKernels();
std::span<const KernelEntry> softmaxKernels();
std::span<const KernelEntry> normKernels();
std::span<const KernelEntry> normGradKernels();
std::span<const KernelEntry> crossEntropyKernels();
std::span<const KernelEntry> rotaryKernels();
std::span<const KernelEntry> attentionKernels();
std::span<const KernelEntry> attentionGradKernels();
std::span<const KernelEntry> cacheKernels();
std::span<const KernelEntry> dropoutKernels();
std::span<const KernelEntry> optimizerKernels();
std::span<const KernelEntry> quantizedBlocksKernels();
std::span<const KernelEntry> scaledProductKernels();

template <typename T> const T *input(const KernelArguments &args, size_t index) {
  return static_cast<const T *>(args.inputs[index]);
}
template <typename T> T *output(const KernelArguments &args, size_t index) {
  return static_cast<T *>(args.outputs[index]);
}

/// A kernel from a function of the queue and the arguments.
template <typename Enqueue> class FunctionKernel final : public CudaKernel {
public:
  FunctionKernel(Enqueue function, size_t workspace)
      : function(std::move(function)), workspace(workspace) {}
  size_t workspaceBytes() const override { return workspace; }
  MaybeError enqueue(CudaQueue &queue, const KernelArguments &args) const override {
    return function(queue, args);
  }

private:
  Enqueue function;
  size_t workspace;
};

template <typename Enqueue>
std::unique_ptr<CudaKernel> makeKernel(Enqueue function, size_t workspace = 0) {
  return std::make_unique<FunctionKernel<Enqueue>>(std::move(function), workspace);
}

/// A kernel whose calls share launches (HeldLaunches.h), from a function that makes a HeldCall of
/// the arguments.
template <typename MakeCall> class MultiTensorKernel final : public CudaKernel {
public:
  MultiTensorKernel(MakeCall function, size_t workspace)
      : function(std::move(function)), workspace(workspace) {}
  size_t workspaceBytes() const override { return workspace; }
  bool sharesLaunches() const override { return true; }
  MaybeError enqueue(CudaQueue &queue, const KernelArguments &args) const override {
    return queue.hold(name(), function(args));
  }

private:
  MakeCall function;
  size_t workspace;
};

/// `workspace` is for a launch of as many calls as there may be. The launches of a queue use it one
/// after the other.
template <typename MakeCall>
std::unique_ptr<CudaKernel> makeMultiTensorKernel(MakeCall function, size_t workspace = 0) {
  return std::make_unique<MultiTensorKernel<MakeCall>>(std::move(function), workspace);
}

/// The bytes of an array of `count` elements in the workspace, so that the next one is aligned.
template <typename T> size_t arrayBytes(int64_t count) {
  return (static_cast<size_t>(count) * sizeof(T) + 255) / 256 * 256;
}

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_CUDAKERNEL_H
