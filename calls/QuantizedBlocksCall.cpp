//===- QuantizedBlocksCall.cpp - Calls about blocks of integers -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/QuantizedBlocksCall.h"

#include "calls/SignatureChecker.h"

#include <string>

namespace dtc {

/// The attributes of a call whose floats have that type.
static QuantizedBlocksCall blocksOf(SignatureChecker &check, const TensorType &floats) {
  QuantizedBlocksCall call{.dtype = floats.dtype, .blocks = {}};
  QuantizedBlocks &blocks = call.blocks;
  blocks.bits = check.intAttribute("bits");
  blocks.block = check.intAttribute("block");
  int64_t dim = check.dimAttribute("dim", floats.rank());
  blocks.parts = check.intAttribute("parts");
  blocks.elements = floats.numElements();
  if (check.failed())
    return call;
  int64_t size = floats.shape[dim];
  if (blocks.bits != 4 && blocks.bits != 8)
    check.failAttribute("bits", std::to_string(blocks.bits), "4 or 8");
  else if (blocks.block < 1 || blocks.block > kMaxQuantizedBlock)
    check.failAttribute("block", std::to_string(blocks.block),
                        "at least 1 and at most " + std::to_string(kMaxQuantizedBlock));
  else if (blocks.parts < 1 || size % blocks.parts != 0)
    check.failAttribute("parts", std::to_string(blocks.parts),
                        "a divisor of the " + std::to_string(size) + " elements of dimension " +
                            std::to_string(dim));
  if (check.failed())
    return call;
  call.run = size / blocks.parts;
  for (int64_t inner = dim + 1; inner < floats.rank(); ++inner)
    call.run *= floats.shape[inner];
  return call;
}

/// The type of the blocks. The call is a right one.
static TensorType wordsOf(const QuantizedBlocksCall &call) {
  return {DType::I32, {call.blocks.rows(), call.blocks.words()}};
}

Expected<QuantizedBlocksCall> checkQuantizeBlocks(const KernelSignature &signature) {
  bool hasNoise = signature.inputs.size() == 2;
  SignatureChecker check(signature, hasNoise ? 2 : 1, 1);
  const TensorType &floats = check.wideInput(0, 1);
  QuantizedBlocksCall call = blocksOf(check, floats);
  call.hasNoise = hasNoise;
  if (!check.failed() && hasNoise)
    check.expectInput(1, {DType::F32, floats.shape});
  if (!check.failed())
    check.expectOutput(0, wordsOf(call));
  if (MaybeError error = check.finish())
    return *error;
  return call;
}

Expected<QuantizedBlocksCall> checkDequantizeBlocks(const KernelSignature &signature) {
  SignatureChecker check(signature, 1, 1);
  const TensorType &out = check.output(0);
  if (!check.failed() &&
      (!isFloat(out.dtype) || out.dtype != wideType(out.dtype) || out.rank() < 1))
    check.fail("output 0 is " + out.str() + ", expected at least 1 dimension of f32 or f64");
  QuantizedBlocksCall call = blocksOf(check, out);
  if (!check.failed())
    check.expectInput(0, wordsOf(call));
  if (MaybeError error = check.finish())
    return *error;
  return call;
}

} // namespace dtc
