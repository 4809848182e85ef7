//===- Sharding.cpp - Kernels that depend on where a device stands --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/DataMovement.h"
#include "runtime/support/CheckedMath.h"

#include <fmt/format.h>
#include <limits>

namespace dtc::runtime::cpu {

namespace {

const AxisPosition *findAxis(std::span<const AxisPosition> position, const std::string &name) {
  for (const AxisPosition &axis : position)
    if (axis.name == name)
      return &axis;
  return nullptr;
}

/// The device's place among the blocks that `axes` count, row-major.
int64_t blockNumber(std::span<const AxisPosition> position, const std::vector<std::string> &axes) {
  int64_t block = 0;
  for (const std::string &name : axes)
    if (const AxisPosition *axis = findAxis(position, name))
      block = block * axis->size + axis->coordinate;
  return block;
}

PrepareResult prepareShardSlice(const KernelSignature &signature) {
  SignatureChecker check(signature, 1, 1);
  const TensorType &in = check.input(0);
  size_t dim = static_cast<size_t>(check.dimAttribute("dim", in.rank()));
  int64_t blocks = 1;
  std::vector<std::string> axes = check.axesAttribute("axes", blocks);
  if (check.failed())
    return *check.finish();
  TensorType local = in;
  if (in.shape[dim] % blocks != 0)
    check.fail(fmt::format("dimension {} of input 0 ({}) is not a multiple of the {} blocks of "
                           "its axes",
                           dim, in.str(), blocks));
  local.shape[dim] /= blocks;
  check.expectOutput(0, local);
  if (MaybeError error = check.finish())
    return *error;

  StridedCopy copy(local.shape, denseStrides(local.shape), denseStrides(in.shape));
  int64_t blockDistance =
      local.numElements() > 0 ? denseStrides(in.shape)[dim] * local.shape[dim] : 0;
  return withElementBits(in.dtype, [&](auto zero) {
    using T = decltype(zero);
    return makeKernel([copy = std::move(copy), axes = std::move(axes),
                       blockDistance](const KernelArguments &args) {
      const T *from = input<T>(args, 0) + blockNumber(args.position, axes) * blockDistance;
      copy.run(output<T>(args, 0), from, args.threads);
    });
  });
}

PrepareResult prepareShardOffset(const KernelSignature &signature) {
  SignatureChecker check(signature, 0, 1);
  check.expectOutput(0, TensorType{DType::I32, {}});
  int64_t blocks = 1;
  std::vector<std::string> axes = check.axesAttribute("axes", blocks);
  int64_t size = check.intAttribute("size");
  std::optional<int64_t> last = checkedMul(blocks - 1, size);
  if (size < 0 || !last || *last > std::numeric_limits<int32_t>::max())
    check.failAttribute("size", fmt::format("{}", size),
                        fmt::format("offsets of {} blocks that fit an i32", blocks));
  if (MaybeError error = check.finish())
    return *error;
  return makeKernel([axes = std::move(axes), size](const KernelArguments &args) {
    *output<int32_t>(args, 0) = static_cast<int32_t>(blockNumber(args.position, axes) * size);
  });
}

template <typename F>
std::unique_ptr<Kernel> makeAccumulate(const std::string &axis, int64_t count) {
  return makeKernel([axis, count](const KernelArguments &args) {
    const F *in = input<F>(args, 0);
    F *out = output<F>(args, 0);
    const AxisPosition *position = findAxis(args.position, axis);
    bool first = !position || position->coordinate == 0;
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
  const TensorType &type = check.floatInput(0);
  check.expectOutput(0, type);
  std::string axis = check.stringAttribute("axis");
  const AxisPosition *position = findAxis(signature.mesh, axis);
  if (!position || !position->temporal)
    check.failAttribute("axis", fmt::format("\"{}\"", axis), "the temporal axis of the mesh");
  if (MaybeError error = check.finish())
    return *error;
  return withFloatType(type.dtype, [&](auto zero) {
    return makeAccumulate<decltype(zero)>(axis, type.numElements());
  });
}

} // namespace

std::span<const KernelEntry> shardingKernels() {
  static constexpr KernelEntry entries[] = {
      {"shard_slice", prepareShardSlice},
      {"shard_offset", prepareShardOffset},
      {"accumulate", prepareAccumulate},
  };
  return entries;
}

} // namespace dtc::runtime::cpu
