//===- DeviceApi.cpp - Errors, devices and memory of CUDA ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/Api.h"
#include "test/standin/cuda/Capture.h"
#include "test/standin/cuda/GridRunner.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <pthread.h>
#include <string_view>
#include <thread>
#include <utility>

namespace dtc::standin {

namespace {

thread_local int device = 0;
thread_local bool hasChosenDevice = false;
thread_local cudaError_t lastError = cudaSuccess;

constexpr int kMaxThreads = 1024;

} // namespace

int &currentDevice() { return device; }

/// Calls that need no context of a device.
static bool needsContext(std::string_view function) {
  constexpr std::string_view without[] = {"cudaSetDevice",           "cudaGetDevice",
                                          "cudaGetDeviceCount",      "cudaGetDeviceProperties",
                                          "cudaRuntimeGetVersion",   "cudaDriverGetVersion",
                                          "cudaPointerGetAttributes"};
  return std::ranges::find(without, function) == std::end(without);
}

cudaError_t beginCall(Engine &engine, Lock &lock, const char *function) {
  engine.lastCall = Clock::now();
  if (inHostFunction())
    return violation(engine, fmt::format("a host function calls {}", function),
                     cudaErrorNotPermitted);
  // CUDA takes device 0, which may be that of another process, whose memory a context takes.
  if (engine.settings.devices > 1 && !hasChosenDevice && needsContext(function))
    return violation(
        engine, fmt::format("{} is called by a thread that has not called cudaSetDevice", function),
        cudaErrorNotPermitted);
  ++engine.counts.calls;
  if (!engine.callStalls.empty() &&
      Engine::takeFault(engine.callStalls, Engine::placeOf(function, device)))
    engine.stallCaller(lock);
  if (std::optional<cudaError_t> fault = Engine::takeFault(engine.callFaults, function))
    return *fault;
  if (engine.settings.devices == 0)
    return cudaErrorNoDevice;
  return engine.errorOf(device);
}

cudaError_t endCall(cudaError_t error) {
  if (error != cudaSuccess)
    lastError = error;
  return error;
}

cudaError_t violation(Engine &engine, const std::string &message, cudaError_t error) {
  engine.violate(message);
  return error;
}

static std::string nameOfThread() {
  char name[16] = {};
  return pthread_getname_np(pthread_self(), name, sizeof(name)) == 0 ? name : "";
}

cudaError_t mayWaitForDevice(Engine &engine, const std::string &what, int of, const void *group) {
  std::optional<std::string> pending = engine.waitsForOthers(of, group);
  if (!pending)
    return cudaSuccess;
  return violation(engine,
                   fmt::format("{}, by thread \"{}\", may wait for all that device {} does, where "
                               "{} waits for other members",
                               what, nameOfThread(), of, *pending));
}

cudaError_t waitForDevice(Engine &engine, Lock &lock, const std::string &what, int of) {
  const Clock::time_point end = Clock::now() + engine.settings.patience;
  while (engine.waitsForOthers(of) && Clock::now() < end) {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    lock.lock();
  }
  return mayWaitForDevice(engine, what, of);
}

cudaError_t loadAtFirstUse(Engine &engine, const std::string &what, int of, uint64_t code) {
  return engine.loaded.emplace(of, code).second
             ? mayWaitForDevice(engine, what + ", which loads its code", of)
             : cudaSuccess;
}

void waitForPlace(Engine &engine, Lock &lock, const std::shared_ptr<Stream> &stream) {
  if (stream->captured.capture || stream->operations.size() <= engine.settings.queueLength)
    return;
  engine.waitFor(lock, {{stream, stream->given - engine.settings.queueLength}});
}

std::vector<Position> allWork(Engine &engine, int of) {
  std::vector<Position> positions;
  for (const auto &stream : engine.activeStreams())
    if (stream->device == of)
      positions.push_back({stream, stream->given});
  return positions;
}

namespace {

cudaError_t allocate(const char *function, void **pointer, size_t bytes, bool pinned) {
  return call(function, [&](Engine &engine, Lock &) {
    if (!pointer)
      return cudaErrorInvalidValue;
    *pointer = nullptr;
    if (bytes == 0)
      return cudaSuccess;
    if (cudaError_t error = checkNotCapturing(engine))
      return error;
    if (cudaError_t error = mayWaitForDevice(engine, function, device))
      return error;
    size_t used = pinned ? 0 : engine.memory.bytesOf(device);
    if (!pinned &&
        (bytes > engine.settings.memoryBytes || used > engine.settings.memoryBytes - bytes))
      return cudaErrorMemoryAllocation;
    *pointer = engine.memory.allocate(bytes, pinned ? kPinned : device,
                                      /*fills=*/!engine.settings.countsAlone);
    return *pointer ? cudaSuccess : cudaErrorMemoryAllocation;
  });
}

/// Waits for the work that may use the memory, as CUDA does.
cudaError_t release(const char *function, void *pointer, bool pinned) {
  return call(function, [&](Engine &engine, Lock &lock) {
    if (!pointer)
      return cudaSuccess;
    if (cudaError_t error = checkNotCapturing(engine))
      return error;
    if (cudaError_t error = waitForDevice(engine, lock, function, device))
      return error;
    const Allocation *found = engine.memory.find(pointer);
    if (!found || found->freed || found->data != pointer || (found->device == kPinned) != pinned)
      return violation(engine, fmt::format("{} of {}, which it did not allocate: it is {}",
                                           function, pointer,
                                           engine.memory.describe(pointer).value_or("not CUDA's")));
    std::vector<Position> positions;
    for (const auto &stream : engine.activeStreams())
      if (pinned || stream->device == found->device)
        positions.push_back({stream, stream->given});
    engine.waitFor(lock, std::move(positions));
    engine.memory.free(pointer, pinned);
    return engine.errorOf(device);
  });
}

} // namespace

} // namespace dtc::standin

using namespace dtc::standin;

extern "C" {

const char *cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define DTC_STANDIN_CASE(name, value, text)                                                        \
  case name:                                                                                       \
    return #name;
    DTC_STANDIN_CUDA_ERRORS(DTC_STANDIN_CASE)
#undef DTC_STANDIN_CASE
  }
  return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error) {
  switch (error) {
#define DTC_STANDIN_CASE(name, value, text)                                                        \
  case name:                                                                                       \
    return text;
    DTC_STANDIN_CUDA_ERRORS(DTC_STANDIN_CASE)
#undef DTC_STANDIN_CASE
  }
  return "unrecognized error code";
}

// The error of a lost device stays.
cudaError_t cudaGetLastError() {
  Engine &engine = Engine::get();
  Lock lock(engine.mutex);
  return std::exchange(lastError, engine.errorOf(device));
}

cudaError_t cudaPeekAtLastError() { return lastError; }

cudaError_t cudaRuntimeGetVersion(int *version) {
  return call("cudaRuntimeGetVersion", [&](Engine &, Lock &) {
    *version = CUDART_VERSION;
    return cudaSuccess;
  });
}

cudaError_t cudaDriverGetVersion(int *version) {
  return call("cudaDriverGetVersion", [&](Engine &, Lock &) {
    *version = CUDART_VERSION;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceCount(int *count) {
  *count = 0;
  return call("cudaGetDeviceCount", [&](Engine &engine, Lock &) {
    *count = engine.settings.devices;
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int number) {
  // The calling thread leaves a lost device.
  int before = std::exchange(device, number);
  cudaError_t error = call("cudaSetDevice", [&](Engine &engine, Lock &) {
    return number >= 0 && number < engine.settings.devices ? cudaSuccess : cudaErrorInvalidDevice;
  });
  if (error == cudaErrorInvalidDevice || error == cudaErrorNoDevice)
    device = before;
  else
    hasChosenDevice = true;
  return error;
}

cudaError_t cudaGetDevice(int *number) {
  return call("cudaGetDevice", [&](Engine &, Lock &) {
    *number = device;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int number) {
  return call("cudaGetDeviceProperties", [&](Engine &engine, Lock &) {
    if (number < 0 || number >= engine.settings.devices)
      return cudaErrorInvalidDevice;
    *properties = {};
    std::strcpy(properties->name, "CUDA stand-in");
    properties->uuid.bytes[0] = static_cast<char>(number + 1);
    properties->totalGlobalMem = engine.settings.memoryBytes;
    properties->sharedMemPerBlock = 48 * 1024;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = kMaxThreads;
    properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = kMaxThreads;
    properties->maxThreadsDim[2] = 64;
    properties->maxGridSize[0] = 0x7FFFFFFF;
    properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
    properties->major = engine.settings.computeCapability;
    // Few, so that loops over grids have several rounds.
    properties->multiProcessorCount = 2;
    properties->pciBusID = number + 1;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int number) {
  cudaDeviceProp properties;
  if (cudaError_t error = cudaGetDeviceProperties(&properties, number))
    return error;
  switch (attribute) {
  case cudaDevAttrMaxThreadsPerBlock:
    *value = properties.maxThreadsPerBlock;
    break;
  case cudaDevAttrMaxGridDimX:
  case cudaDevAttrMaxGridDimY:
  case cudaDevAttrMaxGridDimZ:
    *value = properties.maxGridSize[attribute - cudaDevAttrMaxGridDimX];
    break;
  case cudaDevAttrMaxSharedMemoryPerBlock:
    *value = static_cast<int>(properties.sharedMemPerBlock);
    break;
  case cudaDevAttrWarpSize:
    *value = properties.warpSize;
    break;
  case cudaDevAttrMultiProcessorCount:
    *value = properties.multiProcessorCount;
    break;
  case cudaDevAttrComputeCapabilityMajor:
    *value = properties.major;
    break;
  case cudaDevAttrComputeCapabilityMinor:
    *value = properties.minor;
    break;
  case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
    *value = kMultiprocessorSharedBytes;
    break;
  case cudaDevAttrMaxSharedMemoryPerBlockOptin:
    *value = kMaxSharedBytes;
    break;
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", [](Engine &engine, Lock &lock) {
    if (cudaError_t error = checkNotCapturing(engine))
      return error;
    if (cudaError_t error = mayWaitForDevice(engine, "cudaDeviceSynchronize", device))
      return error;
    engine.waitFor(lock, allWork(engine, device));
    return engine.errorOf(device);
  });
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  return call("cudaMemGetInfo", [&](Engine &engine, Lock &) {
    *total = engine.settings.memoryBytes;
    *free = *total - std::min(*total, engine.memory.bytesOf(device));
    return cudaSuccess;
  });
}

cudaError_t cudaMalloc(void **pointer, size_t bytes) {
  return allocate("cudaMalloc", pointer, bytes, /*pinned=*/false);
}

cudaError_t cudaFree(void *pointer) { return release("cudaFree", pointer, /*pinned=*/false); }

cudaError_t cudaMallocHost(void **pointer, size_t bytes) {
  return allocate("cudaMallocHost", pointer, bytes, /*pinned=*/true);
}

cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned) {
  return allocate("cudaHostAlloc", pointer, bytes, /*pinned=*/true);
}

cudaError_t cudaFreeHost(void *pointer) {
  return release("cudaFreeHost", pointer, /*pinned=*/true);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer) {
  return call("cudaPointerGetAttributes", [&](Engine &engine, Lock &) {
    const Allocation *found = engine.memory.find(pointer);
    auto *address = const_cast<void *>(pointer);
    *attributes = {};
    attributes->hostPointer = address;
    if (!found || found->freed)
      return cudaSuccess;
    attributes->type = found->device == kPinned ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
    attributes->device = std::max(found->device, 0);
    attributes->devicePointer = address;
    if (found->device != kPinned)
      attributes->hostPointer = nullptr;
    return cudaSuccess;
  });
}

} // extern "C"
