//===- ArgumentDims.h - Dimensions of arguments in axis maps --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// An axis-map entry speaks of a dimension by its logical axis, or by the argument that has it:
// "layers.0.weight#1" is dimension 1 of the parameter or input "layers.0.weight", counted from 0
// and in the shape that files have. A component "*" stands for any number, so that one key speaks
// of all layers that repeat: "h.*.fc.weight#1".
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_SHARDING_ARGUMENTDIMS_H
#define DTC_COMPILER_PASSES_SHARDING_ARGUMENTDIMS_H

#include "support/Error.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringRef.h"

#include <vector>

namespace dtc {

/// Whether the key of an entry speaks of arguments, not of a logical axis.
inline bool namesArgumentDims(llvm::StringRef key) { return key.contains('#'); }

/// A dimension of an argument.
struct ArgumentDim {
  unsigned argument = 0;
  unsigned dim = 0;

  auto operator<=>(const ArgumentDim &) const = default;
};

/// The name of a parameter or an input; empty for other arguments.
llvm::StringRef argumentName(mlir::func::FuncOp function, unsigned argument);

/// Whether `name` is what `pattern` says, whose components "*" stand for numbers.
bool matchesArgument(llvm::StringRef pattern, llvm::StringRef name);

/// The dimensions, of the types that the arguments have, that `key` speaks of. Where a parameter
/// has another shape than files have (`dtc.file_shape`), it is the first of those that the file's
/// dimension was split into. At least one; an error is such as "'x#1': the model has no
/// parameter or input 'x'".
Expected<std::vector<ArgumentDim>> findArgumentDims(mlir::func::FuncOp function,
                                                    llvm::StringRef key);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_SHARDING_ARGUMENTDIMS_H
