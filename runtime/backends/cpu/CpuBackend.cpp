//===- CpuBackend.cpp - Kernels on the cores of the host ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/CpuBackend.h"

#include "runtime/backends/cpu/CpuDevice.h"
#include "runtime/backends/cpu/ElementwiseKernel.h"
#include "runtime/backends/cpu/WindowKernels.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc::runtime {

namespace {

using namespace cpu;

class CpuBackend : public Backend {
public:
  explicit CpuBackend(int threads) : threads(std::max(threads, 1)) {}

  std::string name() const override { return "cpu"; }

  Expected<std::unique_ptr<Kernel>> prepare(const KernelSignature &signature) const override {
    PrepareResult kernel = registry.prepare(
        signature, Error{fmt::format("kernel '{}' is unknown to the cpu backend, expected a kernel "
                                     "of docs/kernels.md",
                                     signature.kernel)});
    if (!kernel)
      return kernel.error();
    (*kernel)->setThreads(threads);
    return std::unique_ptr<Kernel>(std::move(*kernel));
  }

  bool leavesOutRows() const override { return true; }

  std::unique_ptr<Kernel> prepareOfRows(const KernelSignature &signature, int64_t rows,
                                        int64_t rowsOfGroup) const override {
    PrepareResult all = registry.prepare(signature, Error{"unknown"});
    if (!all)
      return nullptr;
    std::unique_ptr<CpuKernel> kernel =
        makeOfRows(std::move(*all), signature.inputs.size(),
                   static_cast<size_t>(signature.outputs[0].numBytes()) /
                       static_cast<size_t>(signature.outputs[0].numElements()),
                   rows, rowsOfGroup);
    if (kernel)
      kernel->setThreads(threads);
    return kernel;
  }

  Expected<std::unique_ptr<Device>> openDevice(int64_t) const override {
    return createCpuDevice(threads);
  }

  std::shared_ptr<const Backend> withThreads(int count) const override {
    return createCpuBackend(count);
  }

private:
  int threads;
  KernelRegistry<CpuKernel> registry{
      unaryKernels(),        binaryKernels(),         conversionKernels(),
      dataMovementKernels(), reduceKernels(),         shardingKernels(),
      einsumKernels(),       groupedProductKernels(), indexingKernels(),
      softmaxKernels(),      normKernels(),           rotaryKernels(),
      attentionKernels(),    crossEntropyKernels(),   dropoutKernels(),
      cacheKernels(),        optimizerKernels(),      quantizedBlocksKernels(),
      convKernels(),         poolingKernels(),        joinedAttentionKernels(),
      scaledProductKernels()};
};

} // namespace

std::unique_ptr<Backend> createCpuBackend(int threads) {
  return std::make_unique<CpuBackend>(threads);
}

} // namespace dtc::runtime
