//===- Rotary.h - Rotary positions by their parts ---------------*- C++ -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_IMPORT_TORCH_ROTARY_H
#define DTC_COMPILER_IMPORT_TORCH_ROTARY_H

#include "compiler/import/torch/Recognize.h"

namespace dtc::torch {

/// x cos + rotate_half(x) sin, by x or by both halves of it.
struct RotaryParts {
  mlir::Value x;             ///< null where the halves are no halves of a value
  mlir::Value first, second; ///< the halves, if the parts are written by them
  mlir::Value cosine, sine;
};

/// The numbers that tables of rotary positions are made of.
struct RotaryForm {
  llvm::SmallVector<double> frequencies; ///< of the angles of half of the elements
  double factor = 1;
  int64_t positionDim = 2;
  mlir::Value positions; ///< [samples, positions], or null where they are 0, 1, 2...
};

/// The op that a table of cosines or sines is taken of angles by; null if it is no such table.
mlir::Operation *tableOp(mlir::Value value);

/// The form of tables that values of the shape, x or a half of it, are multiplied by; nothing where
/// the angles are not positions times frequencies.
std::optional<RotaryForm> findRotaryForm(const RotaryParts &parts, llvm::ArrayRef<int64_t> shape,
                                         const ConstantMap &constants);

} // namespace dtc::torch

#endif // DTC_COMPILER_IMPORT_TORCH_ROTARY_H
