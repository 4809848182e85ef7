//===- CudaBackend.cpp - Kernels on NVIDIA GPUs ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/CudaBackend.h"

#include "runtime/backends/cuda/AlgorithmCache.h"
#include "runtime/backends/cuda/CublasLt.h"
#include "runtime/backends/cuda/CudaDevice.h"
#include "runtime/backends/cuda/CudaError.h"
#include "runtime/backends/cuda/CudaKernel.h"
#ifdef DTC_HAS_CUDNN
#include "runtime/backends/cuda/CudnnAttention.h"
#endif
#include "runtime/backends/cuda/WindowKernels.h"
#include "runtime/backends/shared/DeferredDevice.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <utility>
#include <variant>
#include <vector>

namespace dtc::runtime {

namespace cuda {

namespace {

struct FusionPreparer {
  const FusedCalls &calls;
  const SingleKernels &singles;

  PrepareResult operator()(FusedProduct &match) const {
    return prepareFusedProduct(calls, std::move(match), singles);
  }
  PrepareResult operator()(const AddedGradient &match) const {
    return match.grad->signature.kernel == "embedding_grad"
               ? prepareAddedEmbeddingGrad(calls, match)
               : prepareAddedNormGrad(calls, match);
  }
  PrepareResult operator()(const LossAndGrad &match) const {
    return prepareLossAndGrad(calls, match);
  }
  PrepareResult operator()(const GatedActivation &match) const {
    return prepareGatedActivation(calls, match);
  }
  PrepareResult operator()(const ConvertedUpdate &match) const {
    return prepareConvertedUpdate(calls, match);
  }
  PrepareResult operator()(const NormAndLargest &match) const {
    return prepareNormAndLargest(calls, match);
  }
};

} // namespace

class CudaBackend final : public Backend {
public:
  explicit CudaBackend(CudaOptions options)
      : algorithms(options.timesProducts
                       ? std::make_shared<AlgorithmCache>(std::move(options.cachePath))
                       : nullptr),
        usesTf32(options.usesTf32), isFusing(options.fusesCalls) {
#ifdef DTC_HAS_CUDNN
    if (options.usesCudnn && loadCudnn())
      attention = std::make_shared<CudnnAttention>(options.demandsCudnn, options.note);
#endif
  }
  std::string name() const override { return "cuda"; }
  std::vector<std::string> kernelNames() const { return registry.names(); }

  Expected<std::unique_ptr<Kernel>> prepare(const KernelSignature &signature) const override {
    PrepareResult kernel = registry.prepare(
        signature, Error{fmt::format("the cuda backend has no kernel '{}'; docs/kernels.md lists "
                                     "those that it has; run the plan with --device cpu",
                                     signature.kernel)});
    if (!kernel)
      return kernel.error();
#ifdef DTC_HAS_CUDNN
    if (attention)
      kernel = attention->prepare(signature, std::move(*kernel));
    if (!kernel)
      return kernel.error();
#endif
    (*kernel)->kernelName = signature.kernel;
    return Expected<std::unique_ptr<Kernel>>(std::move(*kernel));
  }

  bool fusesCalls() const override { return isFusing; }

  std::unique_ptr<Kernel> prepareFused(const FusedCalls &calls) const override {
    std::optional<Fusion> fusion = findFusion(calls);
    if (!fusion)
      return nullptr;
    SingleKernels singles;
    std::string names;
    for (const FusedCalls::Call &call : calls.calls) {
      Expected<std::unique_ptr<Kernel>> single = prepare(call.signature);
      if (!single)
        return nullptr;
      std::shared_ptr<const Kernel> shared = std::move(*single);
      singles.push_back(std::static_pointer_cast<const CudaKernel>(std::move(shared)));
      names += (names.empty() ? "" : "' with '") + call.signature.kernel;
    }
    PrepareResult kernel = std::visit(FusionPreparer{calls, singles}, *fusion);
    if (!kernel || !*kernel)
      return nullptr;
    (*kernel)->kernelName = names;
    return std::move(*kernel);
  }

  Expected<std::unique_ptr<Device>> openDevice(int64_t index) const override {
    Expected<int> count = countGpus();
    if (!count)
      return count.error();
    Expected<std::unique_ptr<CudaDevice>> device =
        CudaDevice::open(static_cast<int>(index % *count), algorithms, usesTf32);
    if (!device)
      return device.error();
    return deferWaitingWork(std::move(*device));
  }

private:
  std::shared_ptr<AlgorithmCache> algorithms;
  bool usesTf32 = false, isFusing = true;
#ifdef DTC_HAS_CUDNN
  std::shared_ptr<CudnnAttention> attention; // null: by kernels of our own
#endif
  KernelRegistry<CudaKernel> registry{
      unaryKernels(),   binaryKernels(),       conversionKernels(),      dataMovementKernels(),
      reduceKernels(),  shardingKernels(),     einsumKernels(),          indexingKernels(),
      softmaxKernels(), normKernels(),         normGradKernels(),        crossEntropyKernels(),
      rotaryKernels(),  attentionKernels(),    attentionGradKernels(),   cacheKernels(),
      dropoutKernels(), optimizerKernels(),    quantizedBlocksKernels(), convKernels(),
      poolingKernels(), scaledProductKernels()};
};

} // namespace cuda

std::unique_ptr<Backend> createCudaBackend(CudaOptions options) {
  return std::make_unique<cuda::CudaBackend>(std::move(options));
}

Expected<std::string> findCudnn() {
#ifdef DTC_HAS_CUDNN
  return cuda::loadCudnn();
#else
  return Error{"cuDNN: this build of dtc has none, as it was built without cuDNN's headers or "
               "without cudnn-frontend"};
#endif
}

std::string defaultCachePath() { return cuda::algorithmCachePath(); }

std::vector<std::string> cudaKernelNames() { return cuda::CudaBackend({}).kernelNames(); }

Expected<int> countGpus() {
  // A pipeline's device has more streams than the 8 hardware queues that CUDA uses by default, and
  // streams that share one wait for each other: a send may stand behind a receive, and that of the
  // peer too, so that neither comes. CUDA reads the variable at its first call.
  (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver) {
    // The runtime library opens the driver's by this name.
    int driver = 0, runtime = 0;
    (void)cudaDriverGetVersion(&driver);
    (void)cudaRuntimeGetVersion(&runtime);
    if (driver == 0)
      return Error{"no NVIDIA driver: libcuda.so.1 was not found by the dynamic linker "
                   "(LD_LIBRARY_PATH, /etc/ld.so.conf); install the driver of the GPU, or in a "
                   "container make it visible there"};
    return Error{fmt::format("the NVIDIA driver supports CUDA {}.{}, expected {}.{} or newer",
                             driver / 1000, driver % 1000 / 10, runtime / 1000,
                             runtime % 1000 / 10)};
  }
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0))
    return Error{"the NVIDIA driver sees no GPU; check CUDA_VISIBLE_DEVICES and nvidia-smi"};
  if (MaybeError error = cuda::checkCuda(status, "cannot count the GPUs"))
    return *error;
  return count;
}

Expected<std::string> identityOfGpu(int ordinal) {
  cudaDeviceProp properties;
  if (MaybeError error = cuda::checkCuda(cudaGetDeviceProperties(&properties, ordinal),
                                         fmt::format("cuda {}", ordinal)))
    return *error;
  std::string identity = "GPU";
  for (size_t i = 0; i < sizeof(properties.uuid.bytes); ++i) {
    bool isGroup = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    identity += fmt::format("{}{:02x}", isGroup ? "-" : "",
                            static_cast<unsigned char>(properties.uuid.bytes[i]));
  }
  return identity;
}

std::vector<std::string> describeCuda() {
  std::vector<std::string> lines;
  Expected<int> count = countGpus();
  if (!count)
    lines.push_back("cuda: " + count.error().message);
  for (int i = 0; count && i < *count; ++i) {
    cudaDeviceProp properties;
    if (MaybeError error =
            cuda::checkCuda(cudaGetDeviceProperties(&properties, i), fmt::format("cuda {}", i)))
      lines.push_back(error->message);
    else
      lines.push_back(
          fmt::format("cuda {}: {}, {} MiB, compute capability {}.{}, {} multiprocessors", i,
                      properties.name, properties.totalGlobalMem >> 20, properties.major,
                      properties.minor, properties.multiProcessorCount));
  }
  Expected<const cuda::CublasLt *> cublasLt = cuda::loadCublasLt();
  lines.push_back(cublasLt ? fmt::format("cuBLASLt {}", (*cublasLt)->getVersion())
                           : cublasLt.error().message);
  Expected<std::string> cudnn = findCudnn();
  lines.push_back(cudnn ? *cudnn : cudnn.error().message);
  return lines;
}

} // namespace dtc::runtime
