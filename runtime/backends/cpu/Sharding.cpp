//===- Sharding.cpp - Kernels that depend on device coordinates -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/ShardingCalls.h"
#include "runtime/backends/cpu/DataMovement.h"
#include "runtime/backends/cpu/StridedCopy.h"

#include <utility>

namespace dtc::runtime::cpu {

namespace {

/// Calls body(row, first, last) for the stretches of rows of `length` elements that make up all of
/// them, shared by the threads.
template <typename Body>
void forStretches(int threads, int64_t rows, int64_t length, const Body &body) {
  parallelFor(threads, rows * length, kElementGrain, [&](int64_t begin, int64_t end, int) {
    int64_t row = begin / length, first = begin % length;
    while (begin < end) {
      int64_t last = std::min(length, first + (end - begin));
      body(row++, first, last);
      begin += last - std::exchange(first, 0);
    }
  });
}

/// Fills rows of `length` elements: the first `valid` ones are those of rows that lie `distance`
/// apart from `from` on, the others are `padding`.
template <typename T>
void fillRows(T *to, const T *from, int64_t rows, int64_t length, int64_t distance, int64_t valid,
              T padding, int threads) {
  forStretches(threads, rows, length, [=](int64_t row, int64_t first, int64_t last) {
    int64_t middle = std::clamp(valid, first, last);
    if (first < middle)
      std::copy(from + row * distance + first, from + row * distance + middle,
                to + row * length + first);
    std::fill(to + row * length + middle, to + row * length + last, padding);
  });
}

PrepareResult prepareShardSlice(const KernelSignature &signature) {
  Expected<ShardSliceCall> checked = checkShardSlice(signature);
  if (!checked)
    return checked.error();
  const TensorType &in = signature.inputs[0];
  return withElementBits(in.dtype, [&](auto zero) -> std::unique_ptr<CpuKernel> {
    using T = decltype(zero);
    if (checked->isEven) {
      const std::vector<int64_t> &local = checked->local.shape;
      StridedCopy copy(local, denseStrides(local), denseStrides(in.shape));
      return makeKernel([copy = std::move(copy),
                         call = std::move(*checked)](const CpuArguments &args) {
        const T *from = input<T>(args, 0) + call.split.at(args.position).offset * call.rows.element;
        copy.run(output<T>(args, 0), from, args.threads);
      });
    }
    return makeKernel([call = std::move(*checked)](const CpuArguments &args) {
      ShardExtent extent = call.split.at(args.position);
      const TensorRows &rows = call.rows;
      // The offset of an empty block may lie outside of the input.
      int64_t offset = extent.count > 0 ? extent.offset : 0;
      fillRows<T>(output<T>(args, 0), input<T>(args, 0) + offset * rows.element, rows.count,
                  extent.room * rows.element, call.split.size * rows.element,
                  extent.count * rows.element, 0, args.threads);
    });
  });
}

PrepareResult prepareShardOffset(SplitDimension split) {
  return makeKernel([split = std::move(split)](const CpuArguments &args) {
    *output<int32_t>(args, 0) = static_cast<int32_t>(split.at(args.position).offset);
  });
}

PrepareResult prepareMaskPadding(MaskPaddingCall call) {
  return withElementBits(call.type.dtype, [&](auto zero) {
    using T = decltype(zero);
    return makeKernel([call = std::move(call)](const CpuArguments &args) {
      ShardExtent extent = call.split.at(args.position);
      const TensorRows &rows = call.rows;
      int64_t length = extent.room * rows.element, valid = extent.count * rows.element;
      T bits = static_cast<T>(call.bits);
      const T *from = input<T>(args, 0);
      T *to = output<T>(args, 0);
      if (from != to)
        return fillRows<T>(to, from, rows.count, length, length, valid, bits, args.threads);
      forStretches(args.threads, rows.count, length - valid,
                   [=](int64_t row, int64_t first, int64_t last) {
                     T *rest = to + row * length + valid;
                     std::fill(rest + first, rest + last, bits);
                   });
    });
  });
}

template <typename F> std::unique_ptr<CpuKernel> makeAccumulate(const AccumulateCall &call) {
  return makeKernel([call, count = call.type.numElements()](const CpuArguments &args) {
    const F *in = input<F>(args, 0);
    F *out = output<F>(args, 0);
    bool first = call.isFirst(args.position);
    parallelFor(args.threads, count, kElementGrain, [=](int64_t begin, int64_t end, int) {
      if (first) {
        std::copy(in + begin, in + end, out + begin);
        return;
      }
      simd([=] {
#pragma omp simd
        for (int64_t i = begin; i < end; ++i)
          out[i] += in[i];
      });
    });
  });
}

PrepareResult prepareAccumulate(const AccumulateCall &call) {
  return withWideType(call.type.dtype,
                      [&](auto zero) { return makeAccumulate<decltype(zero)>(call); });
}

} // namespace

std::span<const KernelEntry> shardingKernels() {
  static constexpr KernelEntry entries[] = {
      {"shard_slice", prepareShardSlice},
      {"shard_offset", prepareBy<checkShardOffset, prepareShardOffset>},
      {"mask_padding", prepareBy<checkMaskPadding, prepareMaskPadding>},
      {"accumulate", prepareBy<checkAccumulate, prepareAccumulate>},
  };
  return entries;
}

} // namespace dtc::runtime::cpu
