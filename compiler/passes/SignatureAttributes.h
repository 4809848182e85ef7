//===- SignatureAttributes.h - Attributes of a signature ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_SIGNATUREATTRIBUTES_H
#define DTC_COMPILER_PASSES_SIGNATUREATTRIBUTES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dtc {

/// The attributes of a function's arguments and results, to be changed and written back in one go.
/// Setting one attribute on a function makes a new array of all of them: a step has thousands of
/// arguments, and a pass that sets something on each would take time that grows with their square.
class SignatureAttributes {
public:
  explicit SignatureAttributes(mlir::func::FuncOp function) : function(function) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      arguments.emplace_back(function.getArgAttrDict(i));
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      results.emplace_back(function.getResultAttrDict(i));
  }

  mlir::NamedAttrList &argument(unsigned index) { return arguments[index]; }
  mlir::NamedAttrList &result(unsigned index) { return results[index]; }

  /// Writes all attributes. The function has as many arguments and results as when this was made.
  void commit() {
    function.setAllArgAttrs(toDictionaries(arguments));
    function.setAllResultAttrs(toDictionaries(results));
  }

private:
  llvm::SmallVector<mlir::DictionaryAttr>
  toDictionaries(llvm::ArrayRef<mlir::NamedAttrList> lists) {
    llvm::SmallVector<mlir::DictionaryAttr> dictionaries;
    for (const mlir::NamedAttrList &list : lists)
      dictionaries.push_back(list.getDictionary(function.getContext()));
    return dictionaries;
  }

  mlir::func::FuncOp function;
  llvm::SmallVector<mlir::NamedAttrList> arguments, results;
};

} // namespace dtc

#endif // DTC_COMPILER_PASSES_SIGNATUREATTRIBUTES_H
