//===- CudnnAttention.h - Attention by cuDNN ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_CUDNNATTENTION_H
#define DTC_RUNTIME_BACKENDS_CUDA_CUDNNATTENTION_H

#include "runtime/backends/cuda/AttentionGraph.h"
#include "runtime/backends/cuda/CudaKernel.h"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace dtc::runtime::cuda {

/// The graphs of a backend. Each is compiled once. They are compiled for the first GPU; others of
/// its model use them too.
class CudnnAttention {
public:
  /// `isDemanded`: that cuDNN cannot compile a call is an error, not a note.
  CudnnAttention(bool isDemanded, std::function<void(const std::string &)> note)
      : isDemanded(isDemanded), note(std::move(note)) {}

  /// A call of attention or its gradient, joined or not, that cuDNN computes; `own` if it does not,
  /// and for every call of another kernel. `own` also computes the calls that turn out to be
  /// impossible for cuDNN when they run: on a GPU of another model, with operands that are not
  /// aligned, or with results in the place of operands.
  PrepareResult prepare(const KernelSignature &signature, std::unique_ptr<CudaKernel> own);

private:
  struct Compiled {
    std::shared_ptr<const AttentionGraph> graph; // null where cuDNN does not compute the call
    std::string model;                           // of the GPU that it is compiled for
  };
  Expected<Compiled> find(const PlacedAttention &placed);

  const bool isDemanded;
  const std::function<void(const std::string &)> note;
  std::mutex mutex;
  std::map<std::string, Compiled> compiled;
};

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_CUDNNATTENTION_H
