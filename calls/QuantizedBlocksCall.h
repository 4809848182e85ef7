//===- QuantizedBlocksCall.h - Calls about blocks of integers -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each function checks a call against its row of docs/kernels.md and gives the backend its
// parameters.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_QUANTIZEDBLOCKSCALL_H
#define DTC_CALLS_QUANTIZEDBLOCKSCALL_H

#include "calls/KernelSignature.h"
#include "support/Error.h"
#include "support/QuantizedBlocks.h"

namespace dtc {

/// Blocks of integers and the tensor of floats that they stand for. `run` is the number of
/// consecutive elements of the tensor that are of one part. With `hasNoise`, a second input has a
/// number for each element, which is added before it is rounded down.
struct QuantizedBlocksCall {
  DType dtype = DType::F32; // of the floats: f32 or f64
  QuantizedBlocks blocks;
  int64_t run = 1;
  bool hasNoise = false;
};
Expected<QuantizedBlocksCall> checkQuantizeBlocks(const KernelSignature &signature);
Expected<QuantizedBlocksCall> checkDequantizeBlocks(const KernelSignature &signature);

} // namespace dtc

#endif // DTC_CALLS_QUANTIZEDBLOCKSCALL_H
