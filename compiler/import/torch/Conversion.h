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
#include <utility>
#include <vector>

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
  /// Names of dimensions that the user asks for, each with the place that does.
  std::vector<std::pair<std::string, mlir::Location>> requests;

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

/// Adds a name to the list of names, unless the dimension has one or another dimension has this
/// one.
mlir::ArrayAttr withName(mlir::ArrayAttr names, size_t rank, int64_t dim, llvm::StringRef name,
                         mlir::MLIRContext *context);

/// Finds the names that a user asks for: each op "aten.alias" with "axes" asks for one for each
/// dimension, or for "".
void collectRequests(mlir::func::FuncOp function, Conversion &conversion);

/// Gives the names of such an op to the dimensions of the value that have none. The names of what
/// a norm or attention gives go to its first operand: its op has more results.
void takeRequests(mlir::Value value, mlir::Operation *op, mlir::ArrayAttr names,
                  const Conversion &conversion);

/// Gives requested names to the views of their values, reshapes, transposes and slices, and the
/// other way round: patterns leave one of the two.
void spreadRequests(mlir::func::FuncOp function, const Conversion &conversion);

/// Warns of the requests that no value has any more.
void checkRequests(mlir::func::FuncOp function, Conversion &conversion);

/// Gives the names of a value that a pattern replaces to the value that takes its place, and the
/// requested ones of the operand of a new view to the view.
struct NameKeeper : mlir::RewriterBase::Listener {
  explicit NameKeeper(const Conversion &conversion) : conversion(conversion) {}
  void notifyOperationReplaced(mlir::Operation *op, mlir::ValueRange replacement) override;
  void notifyOperationInserted(mlir::Operation *op, mlir::OpBuilder::InsertPoint previous) override;

  const Conversion &conversion;
};

} // namespace dtc::torch

#endif // DTC_COMPILER_IMPORT_TORCH_CONVERSION_H
