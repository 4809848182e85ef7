//===- DataMovementCalls.h - Calls of kernels that move elements ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each function checks a call against its row of docs/kernels.md and gives the backend its
// parameters.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_DATAMOVEMENTCALLS_H
#define DTC_CALLS_DATAMOVEMENTCALLS_H

#include "calls/KernelSignature.h"
#include "calls/LoopNest.h"
#include "support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dtc {

/// The bits of `value` as an element; integers and bools hold it, floats round it.
uint64_t bitsOf(double value, DType dtype);

/// `fill`.
struct FillCall {
  TensorType type;
  uint64_t bits = 0; // of an element
};
Expected<FillCall> checkFill(const KernelSignature &signature);

/// `constant`; the bytes of the result.
Expected<std::string> checkConstant(const KernelSignature &signature);

/// `copy`; the number of bytes.
Expected<int64_t> checkCopy(const KernelSignature &signature);

/// `broadcast`, `transpose` and `slice`: over the dense result, the offsets in it and in the
/// operand.
struct StridedCall {
  DType dtype = DType::F32;
  LoopNest<2> loops{{}, {}};
  int64_t offset = 0; // of the operand's first element
};
Expected<StridedCall> checkBroadcast(const KernelSignature &signature);
Expected<StridedCall> checkTranspose(const KernelSignature &signature);
Expected<StridedCall> checkSlice(const KernelSignature &signature);

/// A block of a dense result, which is written from dense elements.
struct BlockWrite {
  LoopNest<2> loops{{}, {}}; // the offsets in the result and in the operand
  int64_t offset = 0;        // of the block's first element in the result
};

/// `pad`.
struct PadCall {
  TensorType type; // of the result
  uint64_t bits = 0;
  BlockWrite block;
};
Expected<PadCall> checkPad(const KernelSignature &signature);

/// `concat`: a block for each input.
struct ConcatCall {
  DType dtype = DType::F32;
  std::vector<BlockWrite> blocks;
};
Expected<ConcatCall> checkConcat(const KernelSignature &signature);

/// `zigzag`: for each half of the operand or the result, whichever is in the order of the sequence,
/// the offsets in the result and in the operand, and those of the first elements.
struct ZigzagCall {
  struct Half {
    LoopNest<2> loops{{}, {}};
    int64_t to = 0, from = 0;
  };
  DType dtype = DType::F32;
  std::vector<Half> halves;
};
Expected<ZigzagCall> checkZigzag(const KernelSignature &signature);

} // namespace dtc

#endif // DTC_CALLS_DATAMOVEMENTCALLS_H
