//===- Constraint.h - Errors that name the violated constraint ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each constraint that a verifier of an op, an attribute or a dialect enforces has a label, such as
// einsum-c2: the mnemonic (of a dialect its name) and a number from 1. The description in the .td
// file states the constraint after its label, the error ends with the label, and a negative test
// expects it. scripts/check-constraints compares the three.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_CONSTRAINT_H
#define DTC_DIALECTS_DTC_CONSTRAINT_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"

#include <optional>
#include <string>
#include <utility>

namespace dtc {

/// The end of an error's text: " [einsum-c2]".
inline std::string constraintSuffix(llvm::StringRef label) { return (" [" + label + "]").str(); }

/// An error about a constraint. Its text ends with the label, after all streamed text.
class ConstraintError {
public:
  ConstraintError(mlir::InFlightDiagnostic diagnostic, llvm::StringRef label)
      : diagnostic(std::move(diagnostic)), label(label) {}
  ConstraintError(ConstraintError &&other) noexcept
      : diagnostic(std::move(other.diagnostic)), label(std::exchange(other.label, std::nullopt)) {}
  ConstraintError &operator=(ConstraintError &&) = delete;
  ~ConstraintError() {
    if (label)
      diagnostic << constraintSuffix(*label);
  }

  template <typename T> ConstraintError &&operator<<(T &&value) && {
    diagnostic << std::forward<T>(value);
    return std::move(*this);
  }

  operator mlir::LogicalResult() const { return mlir::failure(); }
  template <typename T> operator mlir::FailureOr<T>() const { return mlir::failure(); }

private:
  mlir::InFlightDiagnostic diagnostic;
  std::optional<llvm::StringRef> label; ///< none once it was moved from
};

/// The error of an op, or of an attribute on it, that violates the constraint:
/// `return violates(*this, "softmax-c1") << "operand has type " << type;`
inline ConstraintError violates(mlir::Operation *op, llvm::StringRef label) {
  return ConstraintError(op->emitOpError(), label);
}

/// The error of an attribute whose verifier was given `emitError`.
inline ConstraintError violates(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                                llvm::StringRef label) {
  return ConstraintError(emitError(), label);
}

/// The error of type inference of an op, which may have no location and then says nothing.
template <typename OpT, typename... Args>
mlir::LogicalResult inferenceError(std::optional<mlir::Location> location, llvm::StringRef label,
                                   Args &&...args) {
  return mlir::emitOptionalError(location, "'", OpT::getOperationName(), "' op ",
                                 std::forward<Args>(args)..., constraintSuffix(label));
}

} // namespace dtc

#endif // DTC_DIALECTS_DTC_CONSTRAINT_H
