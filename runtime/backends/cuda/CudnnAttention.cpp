//===- CudnnAttention.cpp - Attention by cuDNN ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/CudnnAttention.h"

#include "runtime/backends/cuda/AttentionGradByWarpgroups.h"
#include "runtime/backends/cuda/CudaError.h"
#include "runtime/backends/cuda/JoinedAttention.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc::runtime::cuda {

namespace {

/// The GPU that the graphs of a process are compiled for.
constexpr int kTargetOrdinal = 0;

/// Whether the GPU that graphs are compiled for has the instructions of our gradient of attention.
Expected<bool> hasWarpgroupsHere() {
  int major = 0, minor = 0;
  auto read = [](int &value, cudaDeviceAttr attribute) {
    return checkCuda(cudaDeviceGetAttribute(&value, attribute, kTargetOrdinal),
                     fmt::format("cuda {}", kTargetOrdinal));
  };
  if (MaybeError error = read(major, cudaDevAttrComputeCapabilityMajor))
    return *error;
  if (MaybeError error = read(minor, cudaDevAttrComputeCapabilityMinor))
    return *error;
  return hasWarpgroups(10 * major + minor);
}

/// Makes the handle, for the GPU of the calling thread, unless there is one.
MaybeError openHandle(CudnnHandle &cudnn) {
  if (cudnn.context)
    return std::nullopt;
  Expected<std::shared_ptr<cudnnContext>> handle = createCudnnHandle();
  if (!handle)
    return handle.error();
  cudnn.context = std::move(*handle);
  cudnn.stream = nullptr;
  return std::nullopt;
}

class CudnnAttentionKernel final : public CudaKernel {
public:
  CudnnAttentionKernel(const PlacedAttention &placed, std::shared_ptr<const AttentionGraph> graph,
                       std::string model, std::unique_ptr<CudaKernel> own)
      : placed(placed), graph(std::move(graph)), model(std::move(model)), own(std::move(own)) {}

  size_t workspaceBytes() const override {
    return std::max(graph->workspaceBytes(), own->workspaceBytes());
  }

  MaybeError enqueue(CudaQueue &queue, const KernelArguments &given) const override {
    ApartArguments apart(placed, given);
    const KernelArguments &args = apart.get();
    std::vector<void *> tensors(args.inputs.begin(), args.inputs.end());
    tensors.insert(tensors.end(), args.outputs.begin(), args.outputs.end());
    if (queue.owner().modelName() != model || !areUsable(tensors, args.outputs.size()))
      return own->enqueue(queue, given);
    CudnnHandle &cudnn = queue.owner().cudnn();
    std::lock_guard lock(cudnn.mutex);
    if (MaybeError error = openHandle(cudnn))
      return error;
    if (cudnn.stream != queue.stream()) {
      if (MaybeError error = setStream(cudnn.context.get(), queue.stream()))
        return error;
      cudnn.stream = queue.stream();
    }
    return graph->enqueue(cudnn.context.get(), tensors, args.workspace);
  }

private:
  static bool areUsable(std::span<void *const> tensors, size_t outputs) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (reinterpret_cast<uintptr_t>(tensors[i]) % AttentionGraph::kAlignment != 0)
        return false;
      size_t firstOutput = tensors.size() - outputs;
      if (i >= firstOutput && std::ranges::count(tensors.first(firstOutput), tensors[i]) > 0)
        return false;
    }
    return true;
  }

  PlacedAttention placed;
  std::shared_ptr<const AttentionGraph> graph;
  std::string model;
  std::unique_ptr<CudaKernel> own;
};

/// The key of a graph: what distinguishes calls that need different graphs.
std::string keyOf(const PlacedAttention &placed) {
  const AttentionCall &call = placed.call;
  const AttentionShape &shape = call.shape;
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {}", placed.isGradient,
                     placed.joined.has_value(), static_cast<int>(call.dtype), shape.batch,
                     shape.queries, shape.keys, shape.heads, shape.kvHeads, shape.headSize,
                     shape.causal, shape.window, shape.scale);
}

} // namespace

Expected<CudnnAttention::Compiled> CudnnAttention::find(const PlacedAttention &placed) {
  std::lock_guard lock(mutex);
  auto [entry, isNew] = compiled.try_emplace(keyOf(placed));
  if (!isNew)
    return entry->second;
  cudaDeviceProp gpu;
  if (MaybeError error = checkCuda(cudaGetDeviceProperties(&gpu, kTargetOrdinal),
                                   fmt::format("cuda {}", kTargetOrdinal)))
    return *error;
  Expected<std::unique_ptr<AttentionGraph>> graph =
      AttentionGraph::create(placed, {kTargetOrdinal, 10 * gpu.major + gpu.minor});
  if (graph) {
    entry->second = {std::move(*graph), gpu.name};
    return entry->second;
  }
  const AttentionShape &shape = placed.call.shape;
  Error refusal = graph.error().inContext(fmt::format(
      "{} of {} with {} heads of {} elements", placed.isGradient ? "attention_grad" : "attention",
      name(placed.call.dtype), shape.heads, shape.headSize));
  if (isDemanded)
    return refusal.inContext("--cudnn on");
  if (note)
    note("attention is computed by kernels of dtc, not by cuDNN: " + refusal.message);
  return entry->second;
}

PrepareResult CudnnAttention::prepare(const KernelSignature &signature,
                                      std::unique_ptr<CudaKernel> own) {
  if (!isAttention(signature))
    return own;
  Expected<PlacedAttention> placed = checkPlacedAttention(signature);
  if (!placed)
    return placed.error();
  if (!AttentionGraph::isAsked(placed->call))
    return own;
  if (placed->isGradient && !isDemanded && canUseWarpgroups(placed->call)) {
    Expected<bool> isFaster = hasWarpgroupsHere();
    if (!isFaster)
      return isFaster.error();
    if (*isFaster)
      return own;
  }
  Expected<Compiled> found = find(*placed);
  if (!found)
    return found.error();
  if (!found->graph)
    return own;
  return PrepareResult(std::make_unique<CudnnAttentionKernel>(
      *placed, std::move(found->graph), std::move(found->model), std::move(own)));
}

} // namespace dtc::runtime::cuda
