//===- Recognize.h - Forms that are made of known values --------*- C++ -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_IMPORT_TORCH_RECOGNIZE_H
#define DTC_COMPILER_IMPORT_TORCH_RECOGNIZE_H

#include "compiler/import/torch/AtenOp.h"
#include "compiler/import/torch/ConstantTensor.h"

namespace dtc::torch {

/// Makes attributes of the masks of attention that say no more than causal, window, or nothing.
void recognizeMasks(mlir::Block &block, const ConstantMap &constants, Conversion &conversion);

/// Makes "torch.rotary" of x cos + rotate_half(x) sin, where cosine and sine are those of positions
/// times frequencies.
void recognizeRotary(mlir::Block &block, const ConstantMap &constants, Conversion &conversion);

} // namespace dtc::torch

#endif // DTC_COMPILER_IMPORT_TORCH_RECOGNIZE_H
