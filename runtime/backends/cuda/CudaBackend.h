//===- CudaBackend.h - Kernels on NVIDIA GPUs -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_CUDABACKEND_H
#define DTC_RUNTIME_BACKENDS_CUDA_CUDABACKEND_H

#include "runtime/backends/Kernel.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dtc::runtime {

struct CudaOptions {
  /// Each product is computed by the fastest of the algorithms that cuBLASLt proposes, which are
  /// timed when it comes the first time; otherwise by the first that it proposes.
  bool timesProducts = false;
  /// Where the algorithms are kept from run to run (AlgorithmCache.h); empty: nowhere.
  std::string cachePath = {};
  /// Calls of a plan are computed together where the backend can, not each by itself.
  bool fusesCalls = true;
  /// Attention is computed by cuDNN where that is found and has the call.
  bool usesCudnn = true;
  /// That cuDNN does not compile a call that it is asked for is an error.
  bool demandsCudnn = false;
  /// Operands of products in f32 are rounded to TF32, which has 10 bits of mantissa.
  bool usesTf32 = false;
  /// Takes sentences for people about what is computed otherwise than it might be; from any thread.
  std::function<void(const std::string &)> note = {};
};

/// The cuDNN in use, for people ("cuDNN 9.19.0 (/usr/lib/libcudnn.so.9)"). The error says why
/// none is.
Expected<std::string> findCudnn();

/// The path for CudaOptions::cachePath: products.txt in the folder that DTC_CUDA_CACHE names, or in
/// dtc/ in the user's folder for caches. Empty where there is none.
std::string defaultCachePath();

/// The kernels of docs/kernels.md that have a CUDA version, on the GPUs of this process. Device i
/// is GPU i; beyond their number they are shared in turn. It needs neither a GPU nor a library
/// before the first device is opened or the first matrix product is prepared.
std::unique_ptr<Backend> createCudaBackend(CudaOptions options = {});

/// The number of GPUs of this process. An error says why CUDA cannot be used: no driver, no GPU.
/// Before all else that calls CUDA, as it sets CUDA_DEVICE_MAX_CONNECTIONS where that is not set.
Expected<int> countGpus();

/// The identity of a GPU, by its number in the calls of CUDA, the same in every process: its UUID
/// as nvidia-smi prints it, "GPU-fcf9a9c1-...".
Expected<std::string> identityOfGpu(int ordinal);

/// For people, a line for each GPU ("cuda 0: NVIDIA H200, 143771 MiB, compute capability 9.0, 132
/// multiprocessors") and for each library (the version and where it was found, or what was looked
/// for and where); or why there are none.
std::vector<std::string> describeCuda();

/// The names of the kernels that the backend has, in no order.
std::vector<std::string> cudaKernelNames();

} // namespace dtc::runtime

#endif // DTC_RUNTIME_BACKENDS_CUDA_CUDABACKEND_H
