//===- AttentionGraph.h - Attention as a graph of cuDNN -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// All that includes headers of cuDNN is behind this file, which includes none of CUDA: the stand-in
// has headers of CUDA of its own, and those of cuDNN need the toolkit's.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_ATTENTIONGRAPH_H
#define DTC_RUNTIME_BACKENDS_CUDA_ATTENTIONGRAPH_H

#include "calls/JoinedAttention.h"
#include "support/Error.h"

#include <memory>
#include <mutex>
#include <span>
#include <string>

struct cudnnContext; // cudnnHandle_t is a pointer to one

namespace dtc::runtime::cuda {

/// Loads cuDNN at the first call, for good, and returns its version, for people. The error says
/// which file was looked for and where, or that the library is too old.
Expected<std::string> loadCudnn();

/// A handle for the GPU that is the calling thread's.
Expected<std::shared_ptr<cudnnContext>> createCudnnHandle();
/// Makes the work of a handle that of a stream (a cudaStream_t).
MaybeError setStream(cudnnContext *handle, void *stream);

/// A GPU that a graph is compiled for.
struct GraphTarget {
  int ordinal = 0;           // as the calls of CUDA count
  int computeCapability = 0; // 90: 9.0
  /// The properties of a GPU that need not be there, as cuDNN writes them in JSON; empty: those of
  /// `ordinal`.
  std::string properties = {};
};

/// The forward pass of attention, or its gradient, of one shape. One object serves all GPUs of the
/// model that it is compiled for, from several threads.
class AttentionGraph {
public:
  /// Whether cuDNN is asked for a call: not with dropout, segments, a soft cap, a scale that is not
  /// positive, elements of other types than bf16 and f16, or queries that see no key.
  static bool isAsked(const AttentionCall &call);

  /// For a call that is asked. The error says why cuDNN does not compute it.
  static Expected<std::unique_ptr<AttentionGraph>> create(const PlacedAttention &placed,
                                                          const GraphTarget &target);
  ~AttentionGraph();
  /// The first part of create(), which needs no GPU.
  static MaybeError findEngine(const PlacedAttention &placed, const GraphTarget &target);

  size_t workspaceBytes() const;
  /// Enqueues the work on the handle's stream. `tensors` are the inputs and then the outputs of
  /// `attention` or `attention_grad` in the order of docs/kernels.md, each aligned to
  /// kAlignment bytes; no output is an input.
  MaybeError enqueue(cudnnContext *handle, std::span<void *const> tensors, void *workspace) const;

  static constexpr size_t kAlignment = 16;

private:
  struct Graph;
  explicit AttentionGraph(std::unique_ptr<Graph> graph);

  std::unique_ptr<Graph> graph;
  /// The mutex of enqueue(): the first execution of a plan loads its kernels into the plan,
  /// whichever handle it has.
  mutable std::mutex mutex;
};

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_ATTENTIONGRAPH_H
