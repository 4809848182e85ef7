//===- CudnnExecution.cpp - Enqueuing graphs of cuDNN's operations -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/CudnnExecution.h"

#include "test/standin/cuda/Api.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace dtc::standin {

namespace {

bool isIn(const Engine &engine, int device, const std::byte *first, size_t bytes) {
  const Allocation *found = engine.memory.find(first);
  return found && !found->freed && found->device == device && first >= found->data &&
         first + bytes <= found->data + found->bytes;
}

/// Calls body(offset) for the first byte of each element of the tensor.
void forEachElement(const CudnnTensor &tensor, const std::function<void(size_t)> &body) {
  size_t count = tensor.elements();
  for (size_t number = 0; number < count; ++number) {
    size_t left = number;
    int64_t offset = 0;
    for (size_t axis = tensor.dims.size(); axis-- > 0;) {
      auto dim = static_cast<size_t>(tensor.dims[axis]);
      offset += static_cast<int64_t>(left % dim) * tensor.strides[axis];
      left /= dim;
    }
    body(static_cast<size_t>(offset) * bytesOf(tensor.type));
  }
}

/// Whether two tensors have a byte in common. Their ranges may overlap without that: heads of
/// several tensors can take turns in memory.
bool haveCommonBytes(const CudnnTensor &x, const std::byte *xData, const CudnnTensor &y,
                     const std::byte *yData) {
  const std::byte *xEnd = xData + x.bytes(), *yEnd = yData + y.bytes();
  if (xData >= yEnd || yData >= xEnd)
    return false;
  const std::byte *first = std::min(xData, yData);
  std::vector<bool> isUsed(static_cast<size_t>(std::max(xEnd, yEnd) - first));
  forEachElement(x, [&](size_t offset) {
    for (size_t i = 0; i < bytesOf(x.type); ++i)
      isUsed[static_cast<size_t>(xData - first) + offset + i] = true;
  });
  bool isCommon = false;
  forEachElement(y, [&](size_t offset) {
    for (size_t i = 0; i < bytesOf(y.type); ++i)
      isCommon |= isUsed[static_cast<size_t>(yData - first) + offset + i];
  });
  return isCommon;
}

cudaError_t checkMemory(Engine &engine, const CudnnWork &work, int device) {
  const std::vector<CudnnTensor> &tensors = work.graph->tensors;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::byte *data = work.bindings[i].data;
    if (tensors[i].isInMemory() && !isIn(engine, device, data, tensors[i].bytes()))
      return violation(
          engine, fmt::format("cudnnBackendExecute: {} is {} bytes from {}; expected memory "
                              "of device {}",
                              tensors[i].describe(), tensors[i].bytes(),
                              engine.memory.describe(data).value_or("what is not CUDA's"), device));
  }
  if (!isIn(engine, device, work.workspace, kCudnnWorkspaceBytes))
    return violation(
        engine,
        fmt::format("cudnnBackendExecute: the workspace is {} bytes from {}; expected "
                    "memory of device {}",
                    kCudnnWorkspaceBytes,
                    engine.memory.describe(work.workspace).value_or("what is not CUDA's"), device));
  CudnnTensor workspace{0, CUDNN_DATA_BOOLEAN, {int64_t(kCudnnWorkspaceBytes)}, {1}};
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].isInMemory())
      continue;
    if (haveCommonBytes(tensors[i], work.bindings[i].data, workspace, work.workspace))
      return violation(engine, fmt::format("cudnnBackendExecute: {} overlaps the workspace",
                                           tensors[i].describe()));
    for (size_t k = 0; k < tensors.size(); ++k)
      if (k != i && tensors[k].isInMemory() && work.graph->isWritten(i) &&
          haveCommonBytes(tensors[i], work.bindings[i].data, tensors[k], work.bindings[k].data))
        return violation(engine, fmt::format("cudnnBackendExecute: {}, which is written, overlaps "
                                             "{}",
                                             tensors[i].describe(), tensors[k].describe()));
  }
  return cudaSuccess;
}

} // namespace

cudnnStatus_t statusOf(cudaError_t error) {
  switch (error) {
  case cudaSuccess:
    return CUDNN_STATUS_SUCCESS;
  case cudaErrorMemoryAllocation:
    return CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
  case cudaErrorNoDevice:
    return CUDNN_STATUS_NOT_INITIALIZED;
  case cudaErrorInvalidValue:
  case cudaErrorInvalidResourceHandle:
    return CUDNN_STATUS_BAD_PARAM;
  default:
    return CUDNN_STATUS_EXECUTION_FAILED;
  }
}

void checkPack(const CudnnDescriptor &pack) {
  auto ids = pack.list<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  auto pointers = pack.list<std::byte *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  if (ids.size() != pointers.size() || std::set(ids.begin(), ids.end()).size() != ids.size())
    throw CudnnError{CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES,
                     fmt::format("a variant pack has {} pointers for {} ids, expected one for each "
                                 "id and no id twice",
                                 pointers.size(), ids.size())};
}

CudnnWork prepare(const CudnnDescriptor &plan, const CudnnDescriptor &pack) {
  if (plan.type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ||
      pack.type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR || !plan.isFinalized || !pack.isFinalized)
    throw CudnnError{CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
                     fmt::format("a {} is executed with a {}, expected a plan and a variant pack, "
                                 "finalized",
                                 nameOf(plan.type), nameOf(pack.type))};
  CudnnWork work{plan.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)
                     ->part(CUDNN_ATTR_ENGINECFG_ENGINE)
                     ->part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH)
                     ->graph,
                 {},
                 pack.get<std::byte *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE)};
  auto ids = pack.list<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  auto pointers = pack.list<std::byte *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  for (const CudnnTensor &tensor : work.graph->tensors) {
    CudnnBinding &binding = work.bindings.emplace_back();
    if (tensor.isVirtual)
      continue;
    auto found = std::find(ids.begin(), ids.end(), tensor.id);
    std::byte *data =
        found == ids.end() ? nullptr : pointers[static_cast<size_t>(found - ids.begin())];
    if (!data)
      throw CudnnError{CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
                       fmt::format("the variant pack has no memory for {}", tensor.describe())};
    if (tensor.isByValue) {
      binding.value = loadElement(tensor.type, data);
      continue;
    }
    if (reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(tensor.alignment) != 0)
      throw CudnnError{CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
                       fmt::format("{} is at {}, expected a multiple of {} bytes",
                                   tensor.describe(), fmt::ptr(data), tensor.alignment)};
    binding.data = data;
  }
  return work;
}

cudaError_t enqueue(Engine &engine, const cudnnContext &handle, CudnnWork work) {
  std::shared_ptr<Stream> stream;
  if (cudaError_t error = findStream(engine, handle.stream, "cudnnBackendExecute", stream))
    return error;
  if (cudaError_t error = checkMemory(engine, work, handle.device))
    return error;
  if (cudaError_t error =
          loadAtFirstUse(engine, "the first cudnnBackendExecute of a plan", stream->device,
                         reinterpret_cast<uint64_t>(work.graph.get())))
    return error;
  auto describe = [operations = work.graph->operations.size(), number = stream->number] {
    return fmt::format("cudnnBackendExecute of {} operations on stream {}", operations, number);
  };
  engine.enqueue(stream, {Operation::Kind::Work, describe,
                          [work = std::move(work),
                           counts = engine.settings.countsAlone]() -> std::optional<Failure> {
                            if (counts)
                              return std::nullopt;
                            std::memset(work.workspace, 0xFF, kCudnnWorkspaceBytes);
                            interpret(*work.graph, work.bindings);
                            std::memset(work.workspace, 0xFF, kCudnnWorkspaceBytes);
                            return std::nullopt;
                          },
                          nullptr});
  engine.countLaunch(reinterpret_cast<const void *>(&cudnnBackendExecute));
  return cudaSuccess;
}

} // namespace dtc::standin
