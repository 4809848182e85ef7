//===- ModelFlops.h - FLOPs of a model's matrix products ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_TRAIN_MODELFLOPS_H
#define DTC_COMPILER_PASSES_TRAIN_MODELFLOPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace dtc {

/// Floating point operations of a step of a model on one device, as the field counts them
/// (Chowdhery et al. 2022, "PaLM", appendix B): those of products, and nothing for what is computed
/// again.
struct ModelFlops {
  double all = 0;
  /// The part of these that attention spends on positions that a causal mask hides: half of its
  /// products.
  double masked = 0;
};

/// Counts them in the function of a loss. With `isTrained` the gradients are counted too: a product
/// for each operand that a parameter reaches which is not frozen, by its mark or by one of the
/// patterns of `freeze`.
ModelFlops countModelFlops(mlir::func::FuncOp function, bool isTrained,
                           llvm::ArrayRef<std::string> freeze);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_TRAIN_MODELFLOPS_H
