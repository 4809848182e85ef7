//===- DataMovementCalls.cpp - Calls of kernels that move elements --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/DataMovementCalls.h"

#include "calls/SignatureChecker.h"
#include "support/Float8.h"
#include "support/Format.h"

#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace dtc {

uint64_t bitsOf(double value, DType dtype) {
  switch (dtype) {
  case DType::F32:
    return std::bit_cast<uint32_t>(static_cast<float>(value));
  case DType::F64:
    return std::bit_cast<uint64_t>(value);
  case DType::I32:
    return std::bit_cast<uint32_t>(static_cast<int32_t>(value));
  case DType::Bool:
    return value != 0;
  case DType::BF16:
    return BFloat16(value).bits;
  case DType::F16:
    return Float16(value).bits;
  case DType::F8E4M3:
    return Float8E4M3(value).bits;
  case DType::F8E5M2:
    return Float8E5M2(value).bits;
  }
  return 0;
}

/// The bits of `value` as an element; an error of the attribute if the type cannot hold it.
static uint64_t elementBits(SignatureChecker &check, const std::string &name, double value,
                            DType dtype) {
  using I32 = std::numeric_limits<int32_t>;
  const char *expected = nullptr;
  if (dtype == DType::I32 &&
      !(value >= I32::min() && value <= I32::max() && value == std::trunc(value)))
    expected = "a value of i32";
  if (dtype == DType::Bool && value != 0 && value != 1)
    expected = "0 or 1, a value of bool";
  if (!expected)
    return bitsOf(value, dtype);
  check.failAttribute(name, fmt::format("{}", value), expected);
  return 0;
}

Expected<FillCall> checkFill(const KernelSignature &signature) {
  SignatureChecker check(signature, 0, 1);
  TensorType type = check.output(0);
  uint64_t bits = elementBits(check, "value", check.anyFloatAttribute("value"), type.dtype);
  if (MaybeError error = check.finish())
    return *error;
  return FillCall{type, bits};
}

Expected<std::string> checkConstant(const KernelSignature &signature) {
  SignatureChecker check(signature, 0, 1);
  const TensorType &type = check.output(0);
  const std::string &data = check.dataAttribute("data");
  if (data.size() != type.numBytes())
    check.failAttribute("data", fmt::format("{} bytes long", data.size()),
                        fmt::format("the {} bytes of {}", type.numBytes(), type.str()));
  if (type.dtype == DType::Bool &&
      std::any_of(data.begin(), data.end(), [](char byte) { return byte != 0 && byte != 1; }))
    check.failAttribute("data", "other bytes than 0 and 1", "elements of bool");
  if (MaybeError error = check.finish())
    return *error;
  return data;
}

Expected<int64_t> checkCopy(const KernelSignature &signature) {
  SignatureChecker check(signature, 1, 1);
  const TensorType &in = check.input(0);
  if (in.dtype != check.output(0).dtype || in.numElements() != check.output(0).numElements())
    check.fail(fmt::format("output 0 is {}, expected the elements of {}", check.output(0).str(),
                           in.str()));
  if (MaybeError error = check.finish())
    return *error;
  return static_cast<int64_t>(in.numBytes());
}

Expected<StridedCall> checkBroadcast(const KernelSignature &signature) {
  SignatureChecker check(signature, 1, 1);
  const TensorType &out = check.output(0);
  std::vector<int64_t> dims = check.dimsAttribute("dims", out.rank());
  TensorType expected{out.dtype, {}};
  for (int64_t dim : dims)
    expected.shape.push_back(out.shape[static_cast<size_t>(dim)]);
  check.expectInput(0, expected);
  if (MaybeError error = check.finish())
    return *error;
  return StridedCall{out.dtype, LoopNest<2>(out.shape, {denseStrides(out.shape),
                                                        broadcastStrides(expected.shape, dims,
                                                                         out.shape.size())})};
}

Expected<StridedCall> checkTranspose(const KernelSignature &signature) {
  SignatureChecker check(signature, 1, 1);
  const TensorType &in = check.input(0);
  std::vector<int64_t> permutation = check.intsAttribute("permutation");
  std::vector<int64_t> sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  bool valid = sorted.size() == in.shape.size();
  for (size_t i = 0; valid && i < sorted.size(); ++i)
    valid = sorted[i] == static_cast<int64_t>(i);
  if (!valid)
    check.failAttribute("permutation", formatShape(permutation),
                        fmt::format("a permutation of {} dimensions", in.rank()));
  TensorType expected{in.dtype, {}};
  std::vector<int64_t> inStrides = denseStrides(in.shape), strides;
  for (size_t i = 0; valid && i < permutation.size(); ++i) {
    expected.shape.push_back(in.shape[static_cast<size_t>(permutation[i])]);
    strides.push_back(inStrides[static_cast<size_t>(permutation[i])]);
  }
  check.expectOutput(0, expected);
  if (MaybeError error = check.finish())
    return *error;
  return StridedCall{in.dtype,
                     LoopNest<2>(expected.shape, {denseStrides(expected.shape), strides})};
}

/// Checks that a block of shape `block` at `offsets` lies inside `whole`; gives the distance of its
/// first element from the first of `whole`.
static int64_t blockOffset(SignatureChecker &check, const std::string &name,
                           const TensorType &block, const TensorType &whole) {
  std::vector<int64_t> offsets = check.intsAttribute(name);
  bool valid = offsets.size() == whole.shape.size() && block.shape.size() == whole.shape.size();
  for (size_t i = 0; valid && i < offsets.size(); ++i)
    valid = offsets[i] >= 0 && offsets[i] <= whole.shape[i] - block.shape[i];
  if (!valid) {
    check.failAttribute(name, formatShape(offsets),
                        fmt::format("offsets that keep {} inside {}", block.str(), whole.str()));
    return 0;
  }
  std::vector<int64_t> strides = denseStrides(whole.shape);
  int64_t distance = 0;
  // An empty block lies nowhere, so its distance must not be computed: it could overflow.
  for (size_t i = 0; block.numElements() > 0 && i < offsets.size(); ++i)
    distance += offsets[i] * strides[i];
  return distance;
}

Expected<StridedCall> checkSlice(const KernelSignature &signature) {
  SignatureChecker check(signature, 1, 1);
  const TensorType &in = check.input(0);
  const TensorType &out = check.output(0);
  check.expectOutput(0, withElements(out, in.dtype));
  int64_t offset = blockOffset(check, "offsets", out, in);
  if (MaybeError error = check.finish())
    return *error;
  return StridedCall{
      in.dtype, LoopNest<2>(out.shape, {denseStrides(out.shape), denseStrides(in.shape)}), offset};
}

Expected<PadCall> checkPad(const KernelSignature &signature) {
  SignatureChecker check(signature, 1, 1);
  const TensorType &in = check.input(0);
  const TensorType &out = check.output(0);
  check.expectOutput(0, withElements(out, in.dtype));
  int64_t offset = blockOffset(check, "low", in, out);
  uint64_t bits = elementBits(check, "value", check.anyFloatAttribute("value"), in.dtype);
  if (MaybeError error = check.finish())
    return *error;
  return PadCall{
      out,
      bits,
      {LoopNest<2>(in.shape, {denseStrides(out.shape), denseStrides(in.shape)}), offset}};
}

Expected<ConcatCall> checkConcat(const KernelSignature &signature) {
  SignatureChecker check(signature);
  const TensorType &out = check.output(0);
  if (signature.inputs.empty())
    check.fail("has 0 inputs, expected 1 or more");
  if (signature.outputs.size() != 1)
    check.fail(fmt::format("has {} outputs, expected 1", signature.outputs.size()));
  size_t dim = static_cast<size_t>(check.dimAttribute("dim", out.rank()));
  if (check.failed())
    return *check.finish();

  ConcatCall call{out.dtype, {}};
  std::vector<int64_t> strides = denseStrides(out.shape);
  int64_t begin = 0;
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    TensorType expected = out;
    if (check.input(i).shape.size() == out.shape.size())
      expected.shape[dim] = std::min(check.input(i).shape[dim], out.shape[dim] - begin);
    check.expectInput(i, expected);
    if (check.failed())
      return *check.finish();
    call.blocks.push_back({LoopNest<2>(expected.shape, {strides, denseStrides(expected.shape)}),
                           begin * strides[dim]});
    begin += expected.shape[dim];
  }
  if (begin != out.shape[dim])
    check.fail(fmt::format("the inputs have {} elements in dimension {}, expected the {} of {}",
                           begin, dim, out.shape[dim], out.str()));
  if (MaybeError error = check.finish())
    return *error;
  return call;
}

Expected<ZigzagCall> checkZigzag(const KernelSignature &signature) {
  SignatureChecker check(signature, 1, 1);
  const TensorType &in = check.input(0);
  check.expectOutput(0, in);
  bool inverse = check.boolAttribute("inverse");
  auto dim = static_cast<size_t>(check.dimAttribute("dim", in.rank()));
  int64_t parts = check.intAttribute("parts");
  if (!check.failed() &&
      (parts < 1 || parts > in.shape[dim] / 2 || in.shape[dim] % (2 * parts) != 0))
    check.failAttribute("parts", fmt::format("{}", parts),
                        fmt::format("parts of two equal chunks of the {} elements of dimension {}",
                                    in.shape[dim], dim));
  if (MaybeError error = check.finish())
    return *error;
  int64_t outer = 1, inner = 1;
  for (size_t d = 0; d < in.shape.size(); ++d)
    if (d != dim)
      (d < dim ? outer : inner) *= in.shape[d];
  ZigzagCall call{in.dtype, {}};
  if (in.numElements() == 0)
    return call;
  int64_t chunk = in.shape[dim] / (2 * parts) * inner, row = 2 * parts * chunk;
  const int64_t shape[] = {outer, parts, chunk};
  for (bool second : {false, true}) {
    // The chunks of part 0, 1, ... follow each other forwards or, in the second half, backwards.
    int64_t ordered = second ? (2 * parts - 1) * chunk : 0, zigzag = second ? chunk : 0;
    std::vector<int64_t> orderedStrides = {row, second ? -chunk : chunk, 1};
    std::vector<int64_t> zigzagStrides = {row, 2 * chunk, 1};
    call.halves.push_back(
        inverse
            ? ZigzagCall::Half{LoopNest<2>(shape, {orderedStrides, zigzagStrides}), ordered, zigzag}
            : ZigzagCall::Half{LoopNest<2>(shape, {zigzagStrides, orderedStrides}), zigzag,
                               ordered});
  }
  return call;
}

} // namespace dtc
