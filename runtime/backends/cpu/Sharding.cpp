//===- Sharding.cpp - Kernels that depend on where a device stands --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/DataMovement.h"
#include "runtime/backends/shared/AxisExtent.h"

#include <fmt/format.h>
#include <limits>
#include <utility>

namespace dtc::runtime::cpu {

namespace {

/// A tensor as rows: a row is one dimension with those behind it, the rows are those before it.
struct Rows {
  int64_t count = 1;   // of rows
  int64_t element = 1; // elements of the tensor for one of the dimension; 0 if it has none at all

  Rows(const TensorType &type, size_t dim) {
    for (size_t d = 0; d < type.shape.size(); ++d)
      if (d != dim)
        (d < dim ? count : element) *= type.shape[d];
    if (type.numElements() == 0)
      element = 0;
  }
};

/// Calls body(row, first, last) for the stretches of rows of `length` elements that make up all of
/// them, shared by the threads.
template <typename Body>
void forStretches(int threads, int64_t rows, int64_t length, const Body &body) {
  parallelFor(threads, rows * length, elementGrain, [&](int64_t begin, int64_t end, int) {
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
  SignatureChecker check(signature, 1, 1);
  const TensorType &in = check.input(0);
  size_t dim = static_cast<size_t>(check.dimAttribute("dim", in.rank()));
  int64_t blocks = 1;
  std::vector<std::string> axes = check.axesAttribute("axes", blocks);
  if (check.failed())
    return *check.finish();
  int64_t size = in.shape[dim];
  if (!paddedShardsFit(size, blocks))
    check.fail(fmt::format("{} blocks of dimension {} of input 0 ({}) have more elements with "
                           "their padding than 64 bits count",
                           blocks, dim, in.str()));
  TensorType local = in;
  local.shape[dim] = paddedShardSize(size, blocks);
  check.expectOutput(0, local);
  if (MaybeError error = check.finish())
    return *error;

  Rows rows(in, dim);
  return withElementBits(in.dtype, [&](auto zero) -> std::unique_ptr<CpuKernel> {
    using T = decltype(zero);
    if (size % blocks == 0) {
      StridedCopy copy(local.shape, denseStrides(local.shape), denseStrides(in.shape));
      return makeKernel([copy = std::move(copy), axes = std::move(axes), size,
                         element = rows.element](const CpuArguments &args) {
        const T *from = input<T>(args, 0) + extentAt(args.position, axes, size).offset * element;
        copy.run(output<T>(args, 0), from, args.threads);
      });
    }
    return makeKernel([axes = std::move(axes), size, rows](const CpuArguments &args) {
      ShardExtent extent = extentAt(args.position, axes, size);
      // The offset of an empty block may lie outside of the input.
      int64_t offset = extent.count > 0 ? extent.offset : 0;
      fillRows<T>(output<T>(args, 0), input<T>(args, 0) + offset * rows.element, rows.count,
                  extent.room * rows.element, size * rows.element, extent.count * rows.element, 0,
                  args.threads);
    });
  });
}

PrepareResult prepareShardOffset(const KernelSignature &signature) {
  SignatureChecker check(signature, 0, 1);
  check.expectOutput(0, TensorType{DType::I32, {}});
  int64_t blocks = 1;
  std::vector<std::string> axes = check.axesAttribute("axes", blocks);
  int64_t size = check.intAttribute("size");
  std::vector<AxisPosition> lastBlock = signature.mesh;
  for (AxisPosition &axis : lastBlock)
    axis.coordinate = std::max<int64_t>(axis.size, 1) - 1;
  if (size < 0 || !paddedShardsFit(size, blocks) ||
      extentAt(lastBlock, axes, size).offset > std::numeric_limits<int32_t>::max())
    check.failAttribute("size", fmt::format("{}", size),
                        fmt::format("a size whose offsets in {} blocks fit an i32", blocks));
  if (MaybeError error = check.finish())
    return *error;
  return makeKernel([axes = std::move(axes), size](const CpuArguments &args) {
    *output<int32_t>(args, 0) = static_cast<int32_t>(extentAt(args.position, axes, size).offset);
  });
}

/// The values of mask_padding, in the order of its words.
enum class Padding { Zero, Lowest, Highest };

/// The bits of the element that a sum, a maximum or a minimum does not see.
uint64_t paddingBits(DType dtype, Padding padding) {
  if (padding == Padding::Zero)
    return 0;
  using I32 = std::numeric_limits<int32_t>;
  double infinity = std::numeric_limits<double>::infinity();
  bool isInteger = dtype == DType::I32;
  double lowest = isInteger ? I32::min() : -infinity, highest = isInteger ? I32::max() : infinity;
  return bitsOf(padding == Padding::Lowest ? lowest : highest, dtype);
}

PrepareResult prepareMaskPadding(const KernelSignature &signature) {
  SignatureChecker check(signature, 1, 1);
  const TensorType &type = check.input(0);
  check.expectOutput(0, type);
  size_t dim = static_cast<size_t>(check.dimAttribute("dim", type.rank()));
  int64_t blocks = 1;
  std::vector<std::string> axes = check.axesAttribute("axes", blocks);
  int64_t size = check.intAttribute("size");
  auto padding =
      static_cast<Padding>(check.choiceAttribute("value", {"zero", "lowest", "highest"}));
  if (type.dtype == DType::Bool && padding != Padding::Zero)
    check.failAttribute("value", "an end of a range", "\"zero\" for elements of bool");
  if (size < 0 || !paddedShardsFit(size, blocks))
    check.failAttribute(
        "size", fmt::format("{}", size),
        fmt::format("0 or more elements that fit 64 bits when padded to {} blocks", blocks));
  if (check.failed())
    return *check.finish();
  if (type.shape[dim] != paddedShardSize(size, blocks))
    check.fail(fmt::format("dimension {} of input 0 ({}) has {} elements, expected {}: {} in {} "
                           "blocks, rounded up",
                           dim, type.str(), type.shape[dim], paddedShardSize(size, blocks), size,
                           blocks));
  if (MaybeError error = check.finish())
    return *error;

  Rows rows(type, dim);
  return withElementBits(type.dtype, [&](auto zero) {
    using T = decltype(zero);
    T bits = static_cast<T>(paddingBits(type.dtype, padding));
    return makeKernel([axes = std::move(axes), size, rows, bits](const CpuArguments &args) {
      ShardExtent extent = extentAt(args.position, axes, size);
      int64_t length = extent.room * rows.element, valid = extent.count * rows.element;
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

template <typename F>
std::unique_ptr<CpuKernel> makeAccumulate(const std::string &axis, int64_t count) {
  return makeKernel([axis, count](const CpuArguments &args) {
    const F *in = input<F>(args, 0);
    F *out = output<F>(args, 0);
    const AxisPosition *position = findAxis(args.position, axis);
    bool first = !position || (position->coordinate == 0 && position->repetition == 0);
    parallelFor(args.threads, count, elementGrain, [=](int64_t begin, int64_t end, int) {
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

PrepareResult prepareAccumulate(const KernelSignature &signature) {
  SignatureChecker check(signature, 1, 1);
  const TensorType &type = check.wideInput(0);
  check.expectOutput(0, type);
  std::string axis = check.stringAttribute("axis");
  const AxisPosition *position = findAxis(signature.mesh, axis);
  if (!position || !position->temporal)
    check.failAttribute("axis", fmt::format("\"{}\"", axis), "the temporal axis of the mesh");
  if (MaybeError error = check.finish())
    return *error;
  return withWideType(type.dtype, [&](auto zero) {
    return makeAccumulate<decltype(zero)>(axis, type.numElements());
  });
}

} // namespace

std::span<const KernelEntry> shardingKernels() {
  static constexpr KernelEntry entries[] = {
      {"shard_slice", prepareShardSlice},
      {"shard_offset", prepareShardOffset},
      {"mask_padding", prepareMaskPadding},
      {"accumulate", prepareAccumulate},
  };
  return entries;
}

} // namespace dtc::runtime::cpu
