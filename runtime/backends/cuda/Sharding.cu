//===- Sharding.cu - Kernels that depend on a device's coordinates --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/ShardingCalls.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/Elementwise.h"

namespace dtc::runtime::cuda {

namespace {

/// Rows of `length` elements: the first `valid` ones are those of rows that lie `distance` apart
/// from `from` on, the others are `padding`. `to` may be `from` where the rows lie alike.
template <typename T>
__global__ void __launch_bounds__(256)
    fillRowsKernel(T *to, const T *from, int64_t rows, int64_t length, int64_t distance,
                   int64_t valid, T padding) {
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y)
    for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < length; i += step)
      to[row * length + i] = i < valid ? from[row * distance + i] : padding;
}

template <typename T>
MaybeError enqueueFillRows(CudaQueue &queue, T *to, const T *from, int64_t rows, int64_t length,
                           int64_t distance, int64_t valid, T padding) {
  LaunchShape shape = gridStride(queue, length);
  shape.blocksY = static_cast<unsigned>(std::min<int64_t>(rows, 65535));
  return launch(queue, shape, fillRowsKernel<T>, to, from, rows, length, distance, valid, padding);
}

struct Value {
  int32_t value;
  __device__ int32_t operator()(int64_t) const { return value; }
};
struct Sum {
  template <typename T> __device__ T operator()(int64_t, T a, T b) const { return a + b; }
};

PrepareResult prepareShardSlice(ShardSliceCall call) {
  return withElementBits(call.local.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using T = typename decltype(identity)::type;
    return makeKernel([call = std::move(call)](CudaQueue &queue, const KernelArguments &args) {
      const TensorRows &rows = call.rows;
      ShardExtent extent = call.split.at(args.position);
      // The offset of an empty block may lie outside of the input.
      int64_t offset = extent.count > 0 ? extent.offset : 0;
      return enqueueFillRows<T>(queue, output<T>(args, 0),
                                input<T>(args, 0) + offset * rows.element, rows.count,
                                extent.room * rows.element, call.split.size * rows.element,
                                extent.count * rows.element, T(0));
    });
  });
}

PrepareResult prepareShardOffset(SplitDimension split) {
  return makeKernel([split = std::move(split)](CudaQueue &queue, const KernelArguments &args) {
    auto offset = static_cast<int32_t>(split.at(args.position).offset);
    return enqueueDense<int32_t>(queue, 1, Value{offset}, output<int32_t>(args, 0));
  });
}

PrepareResult prepareMaskPadding(MaskPaddingCall call) {
  return withElementBits(call.type.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using T = typename decltype(identity)::type;
    return makeKernel([call = std::move(call)](CudaQueue &queue, const KernelArguments &args) {
      ShardExtent extent = call.split.at(args.position);
      int64_t length = extent.room * call.rows.element;
      return enqueueFillRows<T>(queue, output<T>(args, 0), input<T>(args, 0), call.rows.count,
                                length, length, extent.count * call.rows.element,
                                static_cast<T>(call.bits));
    });
  });
}

PrepareResult prepareAccumulate(AccumulateCall call) {
  return withWideType(call.type.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using T = typename decltype(identity)::type;
    return makeKernel([call = std::move(call)](CudaQueue &queue, const KernelArguments &args) {
      T *out = output<T>(args, 0);
      if (call.isFirst(args.position))
        return queue.copy(output<std::byte>(args, 0), input<std::byte>(args, 0),
                          call.type.numBytes());
      return enqueueDense<T, T, T>(queue, call.type.numElements(), Sum(), out,
                                   static_cast<const T *>(out), input<T>(args, 0));
    });
  });
}

} // namespace

std::span<const KernelEntry> shardingKernels() {
  static constexpr KernelEntry entries[] = {
      {"shard_slice", prepareBy<checkShardSlice, prepareShardSlice>},
      {"shard_offset", prepareBy<checkShardOffset, prepareShardOffset>},
      {"mask_padding", prepareBy<checkMaskPadding, prepareMaskPadding>},
      {"accumulate", prepareBy<checkAccumulate, prepareAccumulate>},
  };
  return entries;
}

} // namespace dtc::runtime::cuda
