//===- CudnnApi.cpp - The functions of cuDNN -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The part of cuDNN's graph interface that cudnn-frontend calls for attention. An operation graph
// has one engine, which executes the operations one by one on the host.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/Api.h"
#include "test/standin/cuda/Capture.h"
#include "test/standin/cuda/CudnnExecution.h"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <mutex>
#include <set>
#include <thread>

namespace dtc::standin {

namespace {

thread_local std::string lastError;

/// All descriptors that exist, by their handles.
struct Registry {
  std::mutex mutex;
  std::map<cudnnBackendDescriptor_t, std::shared_ptr<CudnnDescriptor>> descriptors;

  static Registry &get() {
    static auto &registry = *new Registry;
    return registry;
  }
  std::shared_ptr<CudnnDescriptor> find(cudnnBackendDescriptor_t handle) {
    std::lock_guard lock(mutex);
    auto found = descriptors.find(handle);
    if (found == descriptors.end())
      throw CudnnError{CUDNN_STATUS_BAD_PARAM,
                       fmt::format("{} is no descriptor that exists", handle)};
    return found->second;
  }
};

/// Whether a caller asks what is supported: then the answer is no misuse, and is not printed.
bool isAnswer(cudnnStatus_t status) {
  return status > CUDNN_STATUS_NOT_SUPPORTED && status < CUDNN_STATUS_INTERNAL_ERROR;
}

/// Calls body(); keeps the message of an error for cudnnGetLastErrorString.
template <typename Body> cudnnStatus_t run(const char *function, Body body) {
  try {
    body();
    return CUDNN_STATUS_SUCCESS;
  } catch (const CudnnError &error) {
    lastError = fmt::format("{}: {}", function, error.message);
    if (!isAnswer(error.status))
      fmt::print(stderr, "cuDNN stand-in: {}\n", lastError);
    return error.status;
  }
}

/// A call that needs a device: as those of CUDA, it fails where a fault is asked for.
void callDevice(const char *function, const std::function<cudaError_t(Engine &, Lock &)> &body) {
  if (cudaError_t error = call(function, body))
    throw CudnnError{statusOf(error), cudaGetErrorString(error)};
}

/// An execution of a plan. Another one at the same time is a violation: the first loads the plan's
/// kernels, for which it stays long enough that others would meet it.
class OneThread {
public:
  explicit OneThread(cudnnBackendDescriptor_t plan) : plan(plan) {
    Executions &all = executions();
    std::unique_lock lock(all.mutex);
    if (!all.running.insert(plan).second) {
      lock.unlock();
      Engine &engine = Engine::get();
      Lock engineLock(engine.mutex);
      engine.violate("cudnnBackendExecute of a plan that another thread executes");
      lock.lock();
    }
    if (all.known.insert(plan).second) {
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  ~OneThread() {
    std::lock_guard lock(executions().mutex);
    executions().running.erase(plan);
  }

private:
  struct Executions {
    std::mutex mutex;
    std::set<cudnnBackendDescriptor_t> running, known;
  };
  static Executions &executions() {
    static auto &all = *new Executions;
    return all;
  }

  cudnnBackendDescriptor_t plan;
};

CudnnAttribute readAttribute(cudnnBackendAttributeType_t type, int64_t count, const void *from) {
  CudnnAttribute value{type, count, {}, {}};
  if (!from || count < 0)
    throw CudnnError{CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
                     fmt::format("an attribute of {} elements at {}", count, from)};
  auto *bytes = static_cast<const std::byte *>(from);
  if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    value.bytes.assign(bytes, bytes + static_cast<size_t>(count) * bytesOf(type));
    return value;
  }
  for (int64_t i = 0; i < count; ++i) {
    auto part = Registry::get().find(static_cast<const cudnnBackendDescriptor_t *>(from)[i]);
    if (!part->isFinalized)
      throw CudnnError{CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
                       fmt::format("a {} is used before it is finalized", nameOf(part->type))};
    value.descriptors.push_back(std::move(part));
  }
  return value;
}

const CudnnGraph &graphOf(const CudnnDescriptor &descriptor, cudnnBackendAttributeName_t name) {
  CudnnDescriptorPointer graph = descriptor.part(name);
  if (!graph || !graph->graph)
    throw CudnnError{CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
                     fmt::format("{} is of no operation graph", nameOf(descriptor.type))};
  return *graph->graph;
}

void checkCompiles() {
  Engine &engine = Engine::get();
  Lock lock(engine.mutex);
  if (!engine.settings.cudnnCompiles)
    throw CudnnError{CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING, "no libnvrtc"};
}

void finalize(CudnnDescriptor &descriptor) {
  checkComplete(descriptor);
  switch (descriptor.type) {
  case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
    descriptor.graph = buildGraph(descriptor);
    break;
  case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
    checkSupported(graphOf(descriptor, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
    break;
  case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
    checkSupported(graphOf(descriptor, CUDNN_ATTR_ENGINE_OPERATION_GRAPH));
    if (auto index = descriptor.get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX); index != 0)
      throw CudnnError{CUDNN_STATUS_NOT_SUPPORTED,
                       fmt::format("engine {}; the stand-in has engine 0", index)};
    break;
  case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
    checkCompiles();
    break;
  case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR:
    if (descriptor.attributes.empty())
      throw CudnnError{CUDNN_STATUS_BAD_PARAM, "properties of no device"};
    break;
  case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
    checkPack(descriptor);
    break;
  default:
    break;
  }
  descriptor.isFinalized = true;
}

/// The value for cudnnBackendGetAttribute: elements, or descriptors to copy.
CudnnAttribute findAttribute(const CudnnDescriptor &descriptor, cudnnBackendAttributeName_t name) {
  auto number = [](cudnnBackendAttributeType_t type, auto value) {
    return readAttribute(type, 1, &value);
  };
  switch (name) {
  case CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT:
    return number(CUDNN_TYPE_INT64, int64_t(1));
  case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
    auto engine = std::make_shared<CudnnDescriptor>();
    engine->type = CUDNN_BACKEND_ENGINE_DESCRIPTOR;
    engine->attributes = {{CUDNN_ATTR_ENGINE_OPERATION_GRAPH,
                           descriptor.attributes.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)},
                          {CUDNN_ATTR_ENGINE_GLOBAL_INDEX, number(CUDNN_TYPE_INT64, int64_t(0))}};
    engine->isFinalized = true;
    auto config = std::make_shared<CudnnDescriptor>();
    config->type = CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;
    config->attributes[CUDNN_ATTR_ENGINECFG_ENGINE] = {
        CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, {}, {std::move(engine)}};
    config->isFinalized = true;
    return {CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, {}, {std::move(config)}};
  }
  case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
  case CUDNN_ATTR_ENGINE_KNOB_INFO:
    return {CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, {}, {}};
  case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
    return number(CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
    return number(CUDNN_TYPE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
  case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
  case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
    return number(CUDNN_TYPE_INT64, static_cast<int64_t>(kCudnnWorkspaceBytes));
  case CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED:
    return number(CUDNN_TYPE_INT32, int32_t(48 * 1024));
  default:
    break;
  }
  auto found = descriptor.attributes.find(name);
  if (found == descriptor.attributes.end())
    throw CudnnError{CUDNN_STATUS_NOT_SUPPORTED,
                     fmt::format("attribute {} of {}, which is not set or which the stand-in does "
                                 "not have",
                                 static_cast<int>(name), nameOf(descriptor.type))};
  return found->second;
}

void copyAttribute(const CudnnAttribute &value, int64_t room, void *to) {
  int64_t count = std::min(room, value.count);
  if (!to || count == 0)
    return;
  if (value.type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    std::memcpy(to, value.bytes.data(), static_cast<size_t>(count) * bytesOf(value.type));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    auto target = Registry::get().find(static_cast<cudnnBackendDescriptor_t *>(to)[i]);
    const CudnnDescriptor &source = *value.descriptors[static_cast<size_t>(i)];
    if (target->type != source.type)
      throw CudnnError{
          CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
          fmt::format("a {} is to be copied to a {}", nameOf(source.type), nameOf(target->type))};
    *target = source;
  }
}

} // namespace

} // namespace dtc::standin

using namespace dtc::standin;

extern "C" {

size_t cudnnGetVersion() { return CUDNN_VERSION; }

const char *cudnnGetErrorString(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS)
    return "CUDNN_STATUS_SUCCESS";
  // The first digit is the class of the error.
  switch (status / 1000) {
  case 1:
    return "CUDNN_STATUS_NOT_INITIALIZED";
  case 2:
    return "CUDNN_STATUS_BAD_PARAM";
  case 3:
    return "CUDNN_STATUS_NOT_SUPPORTED";
  case 4:
    return "CUDNN_STATUS_INTERNAL_ERROR";
  default:
    return "CUDNN_STATUS_EXECUTION_FAILED";
  }
}

void cudnnGetLastErrorString(char *message, size_t size) {
  if (size == 0)
    return;
  size_t length = std::min(size - 1, lastError.size());
  std::memcpy(message, lastError.data(), length);
  message[length] = 0;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  return run("cudnnCreate", [&] {
    callDevice("cudnnCreate", [&](Engine &engine, Lock &) {
      if (cudaError_t error = checkNotCapturing(engine))
        return error;
      if (cudaError_t error = mayWaitForDevice(engine, "cudnnCreate", currentDevice()))
        return error;
      *handle = new cudnnContext{currentDevice()};
      return cudaSuccess;
    });
  });
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return run("cudnnSetStream", [&] {
    callDevice("cudnnSetStream", [&](Engine &engine, Lock &) {
      std::shared_ptr<Stream> found;
      if (cudaError_t error = findStream(engine, stream, "cudnnSetStream", found))
        return error;
      if (found->device != handle->device)
        return violation(engine,
                         fmt::format("cudnnSetStream with a handle of device {} and a stream of "
                                     "device {}",
                                     handle->device, found->device));
      handle->stream = stream;
      return cudaSuccess;
    });
  });
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream) {
  *stream = handle->stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *descriptor) {
  return run("cudnnBackendCreateDescriptor", [&] {
    if (!isKnown(type))
      throw CudnnError{CUDNN_STATUS_NOT_SUPPORTED,
                       fmt::format("{}, which the stand-in does not have", nameOf(type))};
    auto made = std::make_shared<CudnnDescriptor>();
    made->type = type;
    *descriptor = made.get();
    Registry &registry = Registry::get();
    std::lock_guard lock(registry.mutex);
    registry.descriptors[*descriptor] = std::move(made);
  });
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return run("cudnnBackendDestroyDescriptor", [&] {
    Registry &registry = Registry::get();
    registry.find(descriptor);
    std::lock_guard lock(registry.mutex);
    registry.descriptors.erase(descriptor);
  });
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *elements) {
  return run("cudnnBackendSetAttribute", [&] {
    setAttribute(*Registry::get().find(descriptor), name, readAttribute(type, count, elements));
  });
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t requested,
                                       int64_t *count, void *elements) {
  return run("cudnnBackendGetAttribute", [&] {
    auto from = Registry::get().find(descriptor);
    if (!from->isFinalized)
      throw CudnnError{CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
                       fmt::format("attribute {} of a {} that is not finalized",
                                   static_cast<int>(name), nameOf(from->type))};
    CudnnAttribute value = findAttribute(*from, name);
    if (value.type != type)
      throw CudnnError{CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
                       fmt::format("attribute {} of {} is asked for with type {}, expected {}",
                                   static_cast<int>(name), nameOf(from->type),
                                   static_cast<int>(type), static_cast<int>(value.type))};
    copyAttribute(value, requested, elements);
    if (count)
      *count = value.count;
  });
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return run("cudnnBackendFinalize", [&] { finalize(*Registry::get().find(descriptor)); });
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  return run("cudnnBackendExecute", [&] {
    OneThread alone(plan);
    CudnnWork work = prepare(*Registry::get().find(plan), *Registry::get().find(pack));
    callDevice("cudnnBackendExecute",
               [&](Engine &engine, Lock &) { return enqueue(engine, *handle, std::move(work)); });
  });
}

// Of convolutions: cudnn-frontend refers to them, and attention does not call them.

static cudnnStatus_t refuse(const char *function) {
  return run(function, [] {
    throw CudnnError{CUDNN_STATUS_NOT_SUPPORTED, "the stand-in does not have convolutions"};
  });
}

cudnnStatus_t cudnnCreateFilterDescriptor(void **) { return refuse("cudnnCreateFilterDescriptor"); }
cudnnStatus_t cudnnSetFilterNdDescriptor(void *, cudnnDataType_t, int, int, const int *) {
  return refuse("cudnnSetFilterNdDescriptor");
}
cudnnStatus_t cudnnReorderFilterAndBias(cudnnHandle_t, void *, int, const void *, void *, int,
                                        const void *, void *) {
  return refuse("cudnnReorderFilterAndBias");
}
cudnnStatus_t cudnnDestroyFilterDescriptor(void *) {
  return refuse("cudnnDestroyFilterDescriptor");
}

} // extern "C"
