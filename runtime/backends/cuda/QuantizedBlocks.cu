//===- QuantizedBlocks.cu - Blocks of integers with a scale ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/QuantizedBlocksCall.h"
#include "runtime/backends/cuda/BlockReduce.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/Elements.h"

#include <cfloat>
#include <cstring>

namespace dtc::runtime::cuda {

namespace {

/// The blocks of a call, and where their elements are.
struct DeviceBlocks {
  int64_t rows, words, block, parts, partBlocks, partElements, run;
  int bits;

  explicit DeviceBlocks(const QuantizedBlocksCall &call)
      : rows(call.blocks.rows()), words(call.blocks.words()), block(call.blocks.block),
        parts(call.blocks.parts), partBlocks(call.blocks.partBlocks()),
        partElements(call.blocks.partElements()), run(call.run),
        bits(static_cast<int>(call.blocks.bits)) {}

  /// The place of element i of block `row` in the tensor of floats; -1 if there is no such element.
  __device__ __forceinline__ int64_t placeOf(int64_t row, int64_t i) const {
    int64_t at = row % partBlocks * block + i;
    if (i >= block || at >= partElements)
      return -1;
    return (at / run * parts + row / partBlocks) * run + at % run;
  }
};

/// A block of threads for each block of elements: first its scale, then a thread for each word of
/// integers. With `noise`, numbers from [0, 1) are added and sums rounded down; it is null where
/// elements are rounded to the nearest.
template <typename W>
__global__ void __launch_bounds__(kMaxBlockThreads)
    quantizeKernel(const W *x, const float *noise, int32_t *out,
                   const DeviceBlocks __grid_constant__ blocks) {
  W limit = static_cast<W>((1 << (blocks.bits - 1)) - 1);
  int perWord = 32 / blocks.bits;
  for (int64_t row = blockIdx.x; row < blocks.rows; row += gridDim.x) {
    W largest = 0;
    for (int64_t i = threadIdx.x; i < blocks.block; i += blockDim.x)
      if (int64_t place = blocks.placeOf(row, i); place >= 0)
        largest = MaxOf::combine(largest, x[place] < 0 ? -x[place] : x[place]);
    largest = reduceBlock<MaxOf>(largest);
    float scale = static_cast<float>(largest / limit);
    if (!(scale <= FLT_MAX))
      scale = NAN;
    else if (scale < FLT_MIN)
      scale = 0;
    int32_t *to = out + row * blocks.words;
    if (threadIdx.x == 0)
      memcpy(to, &scale, sizeof(scale));
    for (int64_t word = 1 + threadIdx.x; word < blocks.words; word += blockDim.x) {
      uint32_t packed = 0;
      for (int n = 0; n < perWord && scale > 0; ++n) {
        int64_t place = blocks.placeOf(row, (word - 1) * perWord + n);
        if (place < 0)
          break;
        W value = x[place] / static_cast<W>(scale);
        value = noise ? floor(value + static_cast<W>(noise[place])) : rint(value);
        value = value > limit ? limit : value < -limit ? -limit : value;
        uint32_t integer = static_cast<uint32_t>(static_cast<int32_t>(value));
        packed |= (integer & ((1u << blocks.bits) - 1)) << (n * blocks.bits);
      }
      to[word] = static_cast<int32_t>(packed);
    }
  }
}

/// A block of threads for each block of elements.
template <typename W>
__global__ void __launch_bounds__(kMaxBlockThreads)
    dequantizeKernel(const int32_t *in, W *x, const DeviceBlocks __grid_constant__ blocks) {
  int perWord = 32 / blocks.bits;
  int32_t sign = 1 << (blocks.bits - 1);
  for (int64_t row = blockIdx.x; row < blocks.rows; row += gridDim.x) {
    const int32_t *from = in + row * blocks.words;
    float scale;
    memcpy(&scale, from, sizeof(scale));
    for (int64_t i = threadIdx.x; i < blocks.block; i += blockDim.x) {
      int64_t place = blocks.placeOf(row, i);
      if (place < 0)
        break;
      uint32_t word = static_cast<uint32_t>(from[1 + i / perWord]);
      auto field =
          static_cast<int32_t>(word >> (i % perWord * blocks.bits) & ((1u << blocks.bits) - 1));
      x[place] = static_cast<W>((field ^ sign) - sign) * static_cast<W>(scale);
    }
  }
}

template <typename W> std::unique_ptr<CudaKernel> makeQuantize(const QuantizedBlocksCall &call) {
  return makeKernel([call](CudaQueue &queue, const KernelArguments &args) {
    return launch(queue, blockPerRow(call.blocks.rows(), call.blocks.block / 4), quantizeKernel<W>,
                  input<W>(args, 0), call.hasNoise ? input<float>(args, 1) : nullptr,
                  output<int32_t>(args, 0), DeviceBlocks(call));
  });
}

template <typename W> std::unique_ptr<CudaKernel> makeDequantize(const QuantizedBlocksCall &call) {
  return makeKernel([call](CudaQueue &queue, const KernelArguments &args) {
    return launch(queue, blockPerRow(call.blocks.rows(), call.blocks.block / 4),
                  dequantizeKernel<W>, input<int32_t>(args, 0), output<W>(args, 0),
                  DeviceBlocks(call));
  });
}

PrepareResult prepareQuantizeBlocks(const QuantizedBlocksCall &call) {
  return call.dtype == DType::F64 ? makeQuantize<double>(call) : makeQuantize<float>(call);
}

PrepareResult prepareDequantizeBlocks(const QuantizedBlocksCall &call) {
  return call.dtype == DType::F64 ? makeDequantize<double>(call) : makeDequantize<float>(call);
}

} // namespace

std::span<const KernelEntry> quantizedBlocksKernels() {
  static constexpr KernelEntry entries[] = {
      {"dequantize_blocks", prepareBy<checkDequantizeBlocks, prepareDequantizeBlocks>},
      {"quantize_blocks", prepareBy<checkQuantizeBlocks, prepareQuantizeBlocks>},
  };
  return entries;
}

} // namespace dtc::runtime::cuda
