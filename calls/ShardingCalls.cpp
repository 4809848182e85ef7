//===- ShardingCalls.cpp - Calls of kernels that depend on coordinates ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/ShardingCalls.h"

#include "calls/AxisExtent.h"
#include "calls/DataMovementCalls.h"
#include "calls/SignatureChecker.h"

#include <fmt/format.h>
#include <limits>

namespace dtc {

TensorRows::TensorRows(const TensorType &type, size_t dim) {
  for (size_t d = 0; d < type.shape.size(); ++d)
    if (d != dim)
      (d < dim ? count : element) *= type.shape[d];
  if (type.numElements() == 0)
    element = 0;
}

ShardExtent SplitDimension::at(std::span<const AxisCoordinate> position) const {
  return extentAt(position, axes, size);
}

bool AccumulateCall::isFirst(std::span<const AxisCoordinate> position) const {
  const AxisCoordinate *found = findAxis(position, axis);
  return !found || (found->coordinate == 0 && found->repetition == 0);
}

Expected<ShardSliceCall> checkShardSlice(const KernelSignature &signature) {
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
  return ShardSliceCall{local, {std::move(axes), size}, TensorRows(in, dim), size % blocks == 0};
}

Expected<SplitDimension> checkShardOffset(const KernelSignature &signature) {
  SignatureChecker check(signature, 0, 1);
  check.expectOutput(0, TensorType{DType::I32, {}});
  int64_t blocks = 1;
  std::vector<std::string> axes = check.axesAttribute("axes", blocks);
  int64_t size = check.intAttribute("size");
  std::vector<AxisCoordinate> lastBlock = signature.mesh;
  for (AxisCoordinate &axis : lastBlock)
    axis.coordinate = std::max<int64_t>(axis.size, 1) - 1;
  if (size < 0 || !paddedShardsFit(size, blocks) ||
      extentAt(lastBlock, axes, size).offset > std::numeric_limits<int32_t>::max())
    check.failAttribute("size", fmt::format("{}", size),
                        fmt::format("a size whose offsets in {} blocks fit an i32", blocks));
  if (MaybeError error = check.finish())
    return *error;
  return SplitDimension{std::move(axes), size};
}

/// The bits of the element that a sum, a maximum or a minimum does not see.
static uint64_t paddingBits(DType dtype, PaddingValue padding) {
  if (padding == PaddingValue::Zero)
    return 0;
  using I32 = std::numeric_limits<int32_t>;
  double infinity = std::numeric_limits<double>::infinity();
  bool isInteger = dtype == DType::I32;
  double lowest = isInteger ? I32::min() : -infinity, highest = isInteger ? I32::max() : infinity;
  return bitsOf(padding == PaddingValue::Lowest ? lowest : highest, dtype);
}

Expected<MaskPaddingCall> checkMaskPadding(const KernelSignature &signature) {
  SignatureChecker check(signature, 1, 1);
  const TensorType &type = check.input(0);
  check.expectOutput(0, type);
  size_t dim = static_cast<size_t>(check.dimAttribute("dim", type.rank()));
  int64_t blocks = 1;
  std::vector<std::string> axes = check.axesAttribute("axes", blocks);
  int64_t size = check.intAttribute("size");
  auto padding = check.nameAttribute<PaddingValue>("value");
  if (type.dtype == DType::Bool && padding != PaddingValue::Zero)
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
  return MaskPaddingCall{
      type, {std::move(axes), size}, TensorRows(type, dim), paddingBits(type.dtype, padding)};
}

Expected<AccumulateCall> checkAccumulate(const KernelSignature &signature) {
  SignatureChecker check(signature, 1, 1);
  const TensorType &type = check.wideInput(0);
  check.expectOutput(0, type);
  std::string axis = check.stringAttribute("axis");
  const AxisCoordinate *position = findAxis(signature.mesh, axis);
  if (!position || !position->temporal)
    check.failAttribute("axis", fmt::format("\"{}\"", axis), "the temporal axis of the mesh");
  if (MaybeError error = check.finish())
    return *error;
  return AccumulateCall{type, std::move(axis)};
}

} // namespace dtc
