//===- DataMovement.cu - Kernels that move elements -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/DataMovementCalls.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/Elementwise.h"
#include "runtime/backends/cuda/MultiTensor.h"
#include "runtime/backends/cuda/StridedCopy.h"

#include <string>
#include <vector>

#include <algorithm>
#include <cstring>

namespace dtc::runtime::cuda {

namespace {

template <typename T> struct Fill {
  T value;
  __device__ T operator()(int64_t) const { return value; }
};

struct Identity {
  template <typename T> __device__ T operator()(int64_t, T value) const { return value; }
};

template <typename T>
__global__ void __launch_bounds__(256)
    stridedCopyKernel(const DeviceLoops<2> __grid_constant__ loops, T *to, const T *from) {
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < loops.count; i += step) {
    int64_t offsets[2];
    loops.offsetsAt(i, offsets);
    to[offsets[0]] = from[offsets[1]];
  }
}

/// Parts of a concatenation that one launch copies.
template <typename T> struct StridedParts {
  static constexpr size_t kMost = 8;
  DeviceLoops<2> loops[kMost];
  T *to[kMost];
  const T *from[kMost];
};

/// Part blockIdx.y.
template <typename T>
__global__ void __launch_bounds__(256)
    stridedPartsKernel(const StridedParts<T> __grid_constant__ parts) {
  const DeviceLoops<2> &loops = parts.loops[blockIdx.y];
  T *to = parts.to[blockIdx.y];
  const T *from = parts.from[blockIdx.y];
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < loops.count; i += step) {
    int64_t offsets[2];
    loops.offsetsAt(i, offsets);
    to[offsets[0]] = from[offsets[1]];
  }
}

template <typename T> MaybeError enqueueFill(CudaQueue &queue, T *out, int64_t count, T value) {
  return enqueueDense<T>(queue, count, Fill<T>{value}, out);
}

PrepareResult prepareFill(const FillCall &call) {
  return withElementBits(call.type.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using T = typename decltype(identity)::type;
    return makeKernel([count = call.type.numElements(), value = static_cast<T>(call.bits)](
                          CudaQueue &queue, const KernelArguments &args) {
      return enqueueFill(queue, output<T>(args, 0), count, value);
    });
  });
}

/// A part of a constant, as an argument of a kernel: a graph may have no copy from memory of the
/// host that is not pinned.
struct ConstantPart {
  static constexpr size_t kBytes = 16384;
  unsigned char bytes[kBytes];
};

__global__ void __launch_bounds__(256)
    writeConstantKernel(const ConstantPart __grid_constant__ part, unsigned char *to, int count) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x))
    to[i] = part.bytes[i];
}

PrepareResult prepareConstant(std::string data) {
  return makeKernel(
      [data = std::move(data)](CudaQueue &queue, const KernelArguments &args) -> MaybeError {
        for (size_t begin = 0; begin < data.size(); begin += ConstantPart::kBytes) {
          size_t count = std::min(ConstantPart::kBytes, data.size() - begin);
          ConstantPart part;
          std::memcpy(part.bytes, data.data() + begin, count);
          if (MaybeError error =
                  launch(queue, {1, 1, 256}, writeConstantKernel, part,
                         output<unsigned char>(args, 0) + begin, static_cast<int>(count)))
            return error;
        }
        return std::nullopt;
      });
}

PrepareResult prepareCopy(int64_t bytes) {
  return makeKernel(
      [size = static_cast<size_t>(bytes)](CudaQueue &queue, const KernelArguments &args) {
        return queue.copy(output<std::byte>(args, 0), input<std::byte>(args, 0), size);
      });
}

PrepareResult prepareStrided(const StridedCall &call) {
  Expected<DeviceLoops<1>> loops = DeviceLoops<1>::from(call.loops, 1);
  if (!loops)
    return loops.error();
  return withElementBits(call.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using T = typename decltype(identity)::type;
    return makeKernel(
        [loops = *loops, offset = call.offset](CudaQueue &queue, const KernelArguments &args) {
          return enqueueElementwise<T, T>(queue, loops, Identity(), output<T>(args, 0),
                                          input<T>(args, 0) + offset);
        });
  });
}

PrepareResult preparePad(const PadCall &call) {
  Expected<DeviceLoops<2>> loops = DeviceLoops<2>::from(call.block.loops);
  if (!loops)
    return loops.error();
  return withElementBits(call.type.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using T = typename decltype(identity)::type;
    return makeKernel([loops = *loops, offset = call.block.offset, count = call.type.numElements(),
                       value = static_cast<T>(call.bits)](
                          CudaQueue &queue, const KernelArguments &args) -> MaybeError {
      if (MaybeError error = enqueueFill(queue, output<T>(args, 0), count, value))
        return error;
      return enqueueStridedCopy(queue, loops, sizeof(T), output<T>(args, 0) + offset,
                                input<T>(args, 0));
    });
  });
}

template <int Capacity>
__global__ void __launch_bounds__(256)
    copyArraysKernel(const GroupTable<2, Capacity> __grid_constant__ table) {
  constexpr int V = 16;
  forEachChunk(table, [](const auto &group, int64_t begin, int64_t end) {
    auto *from = static_cast<const uint8_t *>(group.arrays[0]);
    auto *to = static_cast<uint8_t *>(group.arrays[1]);
    bool isVector = isAligned(from, V) && isAligned(to, V);
    int64_t vectorEnd = isVector ? begin + (end - begin) / V * V : begin;
    for (int64_t i = begin + threadIdx.x * V; i < vectorEnd; i += blockDim.x * V)
      *reinterpret_cast<Vector<uint8_t, V> *>(to + i) =
          *reinterpret_cast<const Vector<uint8_t, V> *>(from + i);
    for (int64_t i = vectorEnd + threadIdx.x; i < end; i += blockDim.x)
      to[i] = from[i];
  });
}

/// Whether the elements follow each other on both sides.
bool isDense(const DeviceLoops<2> &loops) {
  return loops.count <= 1 ||
         (loops.dims == 1 && loops.strides[0][0] == 1 && loops.strides[1][0] == 1);
}

PrepareResult prepareZigzag(const ZigzagCall &call) {
  struct Half {
    DeviceLoops<2> loops;
    int64_t to, from;
  };
  std::vector<Half> halves;
  for (const ZigzagCall::Half &half : call.halves) {
    Expected<DeviceLoops<2>> loops = DeviceLoops<2>::from(half.loops);
    if (!loops)
      return loops.error();
    halves.push_back({*loops, half.to, half.from});
  }
  return withElementBits(call.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using T = typename decltype(identity)::type;
    return makeKernel(
        [halves = std::move(halves)](CudaQueue &queue, const KernelArguments &args) -> MaybeError {
          for (const Half &half : halves)
            if (MaybeError error =
                    enqueueStridedCopy(queue, half.loops, sizeof(T), output<T>(args, 0) + half.to,
                                       input<T>(args, 0) + half.from))
              return error;
          return std::nullopt;
        });
  });
}

/// A part of the result of a concatenation.
struct ConcatPart {
  DeviceLoops<2> loops;
  size_t offset; // in bytes
};

/// Parts that are dense are one launch, however many there are.
std::unique_ptr<CudaKernel> makeDenseConcat(std::vector<ConcatPart> parts, size_t width) {
  return makeKernel([parts = std::move(parts), width](CudaQueue &queue,
                                                      const KernelArguments &args) -> MaybeError {
    std::vector<TensorGroup> groups;
    for (size_t i = 0; i < parts.size(); ++i)
      groups.push_back({{args.inputs[i], output<std::byte>(args, 0) + parts[i].offset},
                        parts[i].loops.count * static_cast<int64_t>(width)});
    constexpr size_t most = HeldLaunches::kMaxGroups;
    for (size_t i = 0; i < groups.size(); i += most)
      if (MaybeError error =
              launchGroups(queue, std::span(groups).subspan(i, std::min(most, groups.size() - i)),
                           copyArraysKernel<8>, copyArraysKernel<HeldLaunches::kMaxGroups>))
        return error;
    return std::nullopt;
  });
}

template <typename T> std::unique_ptr<CudaKernel> makeStridedConcat(std::vector<ConcatPart> parts) {
  return makeKernel(
      [parts = std::move(parts)](CudaQueue &queue, const KernelArguments &args) -> MaybeError {
        constexpr size_t most = StridedParts<T>::kMost;
        for (size_t first = 0; first < parts.size(); first += most) {
          StridedParts<T> launched = {};
          size_t count = std::min(most, parts.size() - first);
          int64_t longest = 0;
          for (size_t i = 0; i < count; ++i) {
            const ConcatPart &part = parts[first + i];
            launched.loops[i] = part.loops;
            launched.to[i] = reinterpret_cast<T *>(output<std::byte>(args, 0) + part.offset);
            launched.from[i] = input<T>(args, first + i);
            longest = std::max(longest, part.loops.count);
          }
          LaunchShape shape = gridStride(queue, longest);
          shape.blocksY = static_cast<unsigned>(count);
          if (MaybeError error = launch(queue, shape, stridedPartsKernel<T>, launched))
            return error;
        }
        return std::nullopt;
      });
}

PrepareResult prepareConcat(const ConcatCall &call) {
  size_t width = byteWidth(call.dtype);
  std::vector<ConcatPart> parts;
  for (const BlockWrite &block : call.blocks) {
    Expected<DeviceLoops<2>> loops = DeviceLoops<2>::from(block.loops);
    if (!loops)
      return loops.error();
    parts.push_back({*loops, static_cast<size_t>(block.offset) * width});
  }
  if (std::ranges::all_of(parts, [](const ConcatPart &part) { return isDense(part.loops); }))
    return makeDenseConcat(std::move(parts), width);
  switch (width) {
  case 1:
    return makeStridedConcat<uint8_t>(std::move(parts));
  case 2:
    return makeStridedConcat<uint16_t>(std::move(parts));
  case 8:
    return makeStridedConcat<uint64_t>(std::move(parts));
  default:
    return makeStridedConcat<uint32_t>(std::move(parts));
  }
}

template <typename T>
MaybeError enqueueCopyOf(CudaQueue &queue, const DeviceLoops<2> &loops, void *to,
                         const void *from) {
  return launch(queue, gridStride(queue, loops.count), stridedCopyKernel<T>, loops,
                static_cast<T *>(to), static_cast<const T *>(from));
}

} // namespace

MaybeError enqueueStridedCopy(CudaQueue &queue, const DeviceLoops<2> &loops, size_t width, void *to,
                              const void *from) {
  switch (width) {
  case 1:
    return enqueueCopyOf<uint8_t>(queue, loops, to, from);
  case 2:
    return enqueueCopyOf<uint16_t>(queue, loops, to, from);
  case 8:
    return enqueueCopyOf<uint64_t>(queue, loops, to, from);
  default:
    return enqueueCopyOf<uint32_t>(queue, loops, to, from);
  }
}

std::span<const KernelEntry> dataMovementKernels() {
  static constexpr KernelEntry entries[] = {
      {"fill", prepareBy<checkFill, prepareFill>},
      {"constant", prepareBy<checkConstant, prepareConstant>},
      {"copy", prepareBy<checkCopy, prepareCopy>},
      {"broadcast", prepareBy<checkBroadcast, prepareStrided>},
      {"transpose", prepareBy<checkTranspose, prepareStrided>},
      {"slice", prepareBy<checkSlice, prepareStrided>},
      {"pad", prepareBy<checkPad, preparePad>},
      {"concat", prepareBy<checkConcat, prepareConcat>},
      {"zigzag", prepareBy<checkZigzag, prepareZigzag>},
  };
  return entries;
}

} // namespace dtc::runtime::cuda
