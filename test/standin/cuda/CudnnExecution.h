//===- CudnnExecution.h - Enqueuing graphs of cuDNN's operations ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_CUDNNEXECUTION_H
#define DTC_TEST_STANDIN_CUDA_CUDNNEXECUTION_H

#include "test/standin/cuda/CudnnGraph.h"
#include "test/standin/cuda/Engine.h"

struct cudnnContext {
  int device;
  cudaStream_t stream = nullptr;
};

namespace dtc::standin {

/// The workspace of every plan: so that callers give memory that may be overwritten.
constexpr size_t kCudnnWorkspaceBytes = 2048;

cudnnStatus_t statusOf(cudaError_t error);

/// One execution of a graph. The numbers that are passed by value have been read.
struct CudnnWork {
  std::shared_ptr<const CudnnGraph> graph;
  std::vector<CudnnBinding> bindings;
  std::byte *workspace;
};

/// Checks that a variant pack has one pointer for each id.
void checkPack(const CudnnDescriptor &pack);
/// Binds each tensor of the plan's graph to its entry in the pack.
CudnnWork prepare(const CudnnDescriptor &plan, const CudnnDescriptor &pack);
/// Checks the memory of all tensors, and enqueues the work on the handle's stream. With the
/// engine's lock.
cudaError_t enqueue(Engine &engine, const cudnnContext &handle, CudnnWork work);

} // namespace dtc::standin

#endif // DTC_TEST_STANDIN_CUDA_CUDNNEXECUTION_H
