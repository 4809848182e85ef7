//===- Conversion.h - The conversion of a captured model --------*- C++ -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_IMPORT_TORCH_CONVERSION_H
#define DTC_COMPILER_IMPORT_TORCH_CONVERSION_H

#include "compiler/import/ImportModel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Value.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/Twine.h"

#include <string>

namespace dtc::torch {

/// "layers.0.mlp (model.py:12)".
std::string describe(mlir::Location loc);

/// The state that the steps of a conversion share.
struct Conversion {
  Conversion(llvm::StringRef fileName, ImportLog &log) : fileName(fileName), log(log) {}

  void error(mlir::Location loc, const llvm::Twine &problem);
  void warning(mlir::Location loc, const llvm::Twine &problem);

  /// Counts what several ops became one op of, for a remark.
  void raised(llvm::StringRef what, mlir::Location loc);
  /// Writes the remarks.
  void finish();

  std::string fileName;
  ImportLog &log;
  /// The argument that random ops draw from; null if there is none. The next op's number.
  mlir::Value randomKey;
  int64_t numRandomOps = 0;

private:
  struct Count {
    unsigned number = 0;
    std::string first;
  };
  llvm::MapVector<llvm::StringRef, Count> counts;
};

/// The values that replace the results of an op; empty, or with null values, if it cannot be
/// converted.
class AtenOp;
using Results = llvm::SmallVector<mlir::Value, 1>;

/// The rule of an operator.
struct Rule {
  llvm::StringRef name; ///< "aten.linear"
  Results (*convert)(AtenOp &op);
};

// The rules, by family.
llvm::ArrayRef<Rule> elementwiseRules();
llvm::ArrayRef<Rule> comparisonRules();
llvm::ArrayRef<Rule> shapeRules();
llvm::ArrayRef<Rule> sliceRules();
llvm::ArrayRef<Rule> productRules();
llvm::ArrayRef<Rule> reductionRules();
llvm::ArrayRef<Rule> normRules();
llvm::ArrayRef<Rule> lookupRules();
llvm::ArrayRef<Rule> attentionRules();
llvm::ArrayRef<Rule> windowRules();
llvm::ArrayRef<Rule> expertRules();

/// Whether a capture may have an op of this name, which is of a mixture of experts.
bool isExpertOp(llvm::StringRef name);

/// Replaces all ops of the function by rules; an op without a rule is an error of the log.
void convertOps(mlir::func::FuncOp function, Conversion &conversion);

/// Replaces what does not depend on arguments by "torch.constant", after the forms that are made of
/// such values have been recognized: masks of attention and rotary positions.
void foldConstants(mlir::func::FuncOp function, Conversion &conversion);

/// Makes fused dtc ops of their parts.
void raiseParts(mlir::func::FuncOp function, Conversion &conversion);

/// Moves reshapes and slices from values to the weights of products.
void absorbReshapes(mlir::func::FuncOp function, Conversion &conversion);

/// Gives dimensions of arguments logical axes, and parameters initializers.
void nameDimensions(mlir::func::FuncOp function);

/// Gives the names, one for each dimension, to the dimensions of a value that have none. The
/// names of a norm's result go to its operand: its op has more results.
void addNames(mlir::Value value, mlir::ArrayAttr names);

/// Gives the names of a value that a pattern replaces to the value that takes its place.
struct NameKeeper : mlir::RewriterBase::Listener {
  void notifyOperationReplaced(mlir::Operation *op, mlir::ValueRange replacement) override;
};

} // namespace dtc::torch

#endif // DTC_COMPILER_IMPORT_TORCH_CONVERSION_H
