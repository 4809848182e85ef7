//===- WorkApi.cpp - Kernels and copies of CUDA --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/Api.h"
#include "test/standin/cuda/Capture.h"
#include "test/standin/cuda/GridRunner.h"
#include "test/standin/cuda/Launch.h"
#include "test/standin/cuda/Symbols.h"

#include <cstring>
#include <fmt/format.h>
#include <map>

namespace dtc::standin {

namespace {

/// Where an operand of a copy is.
struct Operand {
  bool pageable = false;
  int device = kPinned; // if not pageable
};

/// Checks that `bytes` bytes from `address` are in one allocation, or in none.
cudaError_t locate(Engine &engine, const std::string &what, const void *address, size_t bytes,
                   Operand &operand) {
  const Allocation *found = engine.memory.find(address);
  operand = {!found, found ? found->device : kPinned};
  if (!found)
    return cudaSuccess;
  auto *first = static_cast<const std::byte *>(address);
  if (!found->freed && first >= found->data && first + bytes <= found->data + found->bytes)
    return cudaSuccess;
  return violation(engine, fmt::format("{} begins at {}; all of it has to be in one allocation",
                                       what, *engine.memory.describe(address)));
}

bool fits(const Operand &operand, bool wantsDevice) {
  return wantsDevice == (!operand.pageable && operand.device != kPinned);
}

cudaError_t enqueueCopy(Engine &engine, Lock &lock, const std::shared_ptr<Stream> &stream, void *to,
                        const void *from, size_t bytes, cudaMemcpyKind kind) {
  auto name = [bytes, number = stream->number] {
    return fmt::format("cudaMemcpyAsync of {} bytes on stream {}", bytes, number);
  };
  Operand source, target;
  if (cudaError_t error = locate(engine, name() + ": its source", from, bytes, source))
    return error;
  if (cudaError_t error = locate(engine, name() + ": its destination", to, bytes, target))
    return error;
  if (kind != cudaMemcpyDefault &&
      (!fits(source, kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice) ||
       !fits(target, kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice)))
    return violation(engine, name() + ": its kind is another one than that of its operands",
                     cudaErrorInvalidMemcpyDirection);
  auto *first = static_cast<const std::byte *>(from);
  auto *last = static_cast<const std::byte *>(to);
  if (first < last + bytes && last < first + bytes)
    return violation(engine, name() + ": its source and its destination overlap");
  if (source.pageable || target.pageable)
    if (cudaError_t error = checkNotCaptured(*stream))
      return error;
  Operation copy{Operation::Kind::Work, name, nullptr, nullptr};
  if (source.pageable && !target.pageable) {
    // The source is staged before the call returns.
    std::vector<std::byte> staged(first, first + bytes);
    copy.run = [=, staged = std::move(staged)]() -> std::optional<Failure> {
      std::memcpy(to, staged.data(), bytes);
      return std::nullopt;
    };
  } else {
    copy.run = [=]() -> std::optional<Failure> {
      std::memcpy(to, from, bytes);
      return std::nullopt;
    };
  }
  copy.otherDevice = source.device == stream->device ? target.device : source.device;
  engine.enqueue(stream, std::move(copy));
  // To pageable memory the call returns when the copy is done.
  if (target.pageable)
    engine.waitFor(lock, {{stream, stream->given}});
  return engine.errorOf(stream->device);
}

/// Whether a grid or a block can be so large.
bool isLaunchable(dim3 grid, dim3 block) {
  return grid.x >= 1 && grid.x <= 0x7FFFFFFF && grid.y >= 1 && grid.y <= 65535 && grid.z >= 1 &&
         grid.z <= 65535 && block.x >= 1 && block.y >= 1 && block.z >= 1 && block.z <= 64 &&
         uint64_t(block.x) * block.y * block.z <= 1024;
}

/// The most bytes of shared memory that launches of each kernel can ask for, where it is not what
/// all can. The caller holds the lock of the engine.
std::map<const void *, size_t> &sharedBytes() {
  static auto &map = *new std::map<const void *, size_t>;
  return map;
}
size_t sharedBytesOf(const void *kernel) {
  auto found = sharedBytes().find(kernel);
  return found == sharedBytes().end() ? 48 * 1024 : found->second;
}

cudaError_t checkLaunch(Engine &engine, const cudaLaunchConfig_t &config, const Stream &stream,
                        const Launch &launch) {
  auto name = [&] { return functionName(launch.kernel); };
  if (stream.device != currentDevice())
    return violation(engine,
                     fmt::format("kernel {} is launched on a stream of device {} by a thread whose "
                                 "device is {}",
                                 name(), stream.device, currentDevice()),
                     cudaErrorInvalidResourceHandle);
  if (config.numAttrs)
    return violation(
        engine,
        fmt::format("kernel {} is launched with attributes, which the stand-in does not have",
                    name()));
  if (config.dynamicSmemBytes > sharedBytesOf(launch.kernel))
    return cudaErrorInvalidValue;
  if (!isLaunchable(config.gridDim, config.blockDim))
    return cudaErrorInvalidConfiguration;
  for (const void *pointer : launch.pointers) {
    if (!pointer)
      continue;
    const Allocation *found = engine.memory.find(pointer);
    auto *byte = static_cast<const std::byte *>(pointer);
    if (!found || found->freed || byte < found->data || byte > found->data + found->bytes ||
        (found->device != kPinned && found->device != stream.device))
      return violation(engine,
                       fmt::format("kernel {} on device {} gets the pointer {}, which is {}",
                                   name(), stream.device, pointer,
                                   engine.memory.describe(pointer).value_or("not CUDA's")));
  }
  return cudaSuccess;
}

cudaError_t loadKernel(Engine &engine, const char *what, const void *kernel, int device) {
  return loadAtFirstUse(engine, fmt::format("{} of kernel {}", what, functionName(kernel)), device,
                        reinterpret_cast<uint64_t>(kernel));
}

Launch makeLaunch(const void *kernel, void (*call)(const void *kernel, void *const *arguments),
                  std::initializer_list<LaunchArgument> arguments) {
  auto units = [](size_t bytes) {
    return (bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t);
  };
  size_t total = 0;
  for (const LaunchArgument &argument : arguments)
    total += units(argument.bytes);
  Launch launch;
  launch.kernel = kernel;
  launch.call = call;
  launch.memory = std::make_shared<std::max_align_t[]>(total);
  std::max_align_t *free = launch.memory.get();
  for (const LaunchArgument &argument : arguments) {
    std::memcpy(free, argument.value, argument.bytes);
    launch.arguments.push_back(free);
    free += units(argument.bytes);
    if (argument.isPointer)
      launch.pointers.push_back(*static_cast<void *const *>(argument.value));
  }
  return launch;
}

} // namespace

cudaError_t enqueueLaunch(const cudaLaunchConfig_t *config, const void *kernel,
                          void (*invoke)(const void *kernel, void *const *arguments),
                          std::initializer_list<LaunchArgument> arguments) {
  return call("cudaLaunchKernelEx", [&](Engine &engine, Lock &lock) {
    std::shared_ptr<Stream> stream;
    if (cudaError_t error = findStream(engine, config->stream, "cudaLaunchKernelEx", stream))
      return error;
    Launch launch = makeLaunch(kernel, invoke, arguments);
    if (cudaError_t error = checkLaunch(engine, *config, *stream, launch))
      return error;
    if (cudaError_t error = loadKernel(engine, "the first launch", launch.kernel, stream->device))
      return error;
    launch.grid = config->gridDim;
    launch.block = config->blockDim;
    launch.sharedBytes = config->dynamicSmemBytes;
    auto describe = [kernel = launch.kernel, number = stream->number, grid = launch.grid,
                     block = launch.block] {
      return fmt::format("kernel {} ({}x{}x{} blocks of {}x{}x{} threads) on stream {}",
                         functionName(kernel), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                         number);
    };
    engine.countLaunch(launch.kernel);
    auto run = [launch = std::move(launch), seed = engine.draw(),
                counts = engine.settings.countsAlone]() -> std::optional<Failure> {
      if (counts)
        return std::nullopt;
      if (std::optional<std::string> error = gridRunner().run(launch, seed))
        return Failure{cudaErrorLaunchFailure, std::move(*error)};
      return std::nullopt;
    };
    engine.enqueue(stream, {Operation::Kind::Work, describe, std::move(run), nullptr});
    waitForPlace(engine, lock, stream);
    return cudaSuccess;
  });
}

} // namespace dtc::standin

using namespace dtc::standin;

extern "C" {

cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute attribute, int value) {
  return call("cudaFuncSetAttribute", [&](Engine &engine, Lock &) {
    if (cudaError_t error = loadKernel(engine, "cudaFuncSetAttribute", function, currentDevice()))
      return error;
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
      if (value < 0 || value > kMaxSharedBytes)
        return cudaErrorInvalidValue;
      sharedBytes()[function] = static_cast<size_t>(value);
    }
    return cudaSuccess;
  });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *function) {
  return call("cudaFuncGetAttributes", [&](Engine &engine, Lock &) {
    *attributes = {};
    attributes->maxThreadsPerBlock = 1024;
    return loadKernel(engine, "cudaFuncGetAttributes", function, currentDevice());
  });
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t handle) {
  return call("cudaMemcpyAsync", [&](Engine &engine, Lock &lock) {
    std::shared_ptr<Stream> stream;
    if (cudaError_t error = findStream(engine, handle, "cudaMemcpyAsync", stream))
      return error;
    if (!bytes)
      return cudaSuccess;
    cudaError_t error = enqueueCopy(engine, lock, stream, to, from, bytes, kind);
    waitForPlace(engine, lock, stream);
    return error;
  });
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t handle) {
  return call("cudaMemsetAsync", [&](Engine &engine, Lock &) {
    std::shared_ptr<Stream> stream;
    if (cudaError_t error = findStream(engine, handle, "cudaMemsetAsync", stream))
      return error;
    if (!bytes)
      return cudaSuccess;
    auto name = [bytes, number = stream->number] {
      return fmt::format("cudaMemsetAsync of {} bytes on stream {}", bytes, number);
    };
    Operand target;
    if (cudaError_t error = locate(engine, name() + ": its range", at, bytes, target))
      return error;
    if (target.pageable)
      return violation(engine, name() + ": its range is not CUDA's memory");
    Operation set{Operation::Kind::Work, name,
                  [=]() -> std::optional<Failure> {
                    std::memset(at, value, bytes);
                    return std::nullopt;
                  },
                  nullptr};
    set.otherDevice = target.device;
    engine.enqueue(stream, std::move(set));
    return cudaSuccess;
  });
}

} // extern "C"
