//===- EinsumEquation.h - The terms of an einsum --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_EINSUMEQUATION_H
#define DTC_DIALECTS_DTC_EINSUMEQUATION_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace dtc {

/// "bsd,df->bsf": a letter from a to z for each dimension, at most once in a term and in at least
/// two of the terms.
struct EinsumEquation {
  std::string lhs, rhs, result;

  /// Reads an equation. If it fails, `error` says what was found, what was expected, and the
  /// label of the constraint.
  static mlir::FailureOr<EinsumEquation> parse(llvm::StringRef equation, std::string &error);

  std::string str() const { return lhs + "," + rhs + "->" + result; }
};

} // namespace dtc

#endif // DTC_DIALECTS_DTC_EINSUMEQUATION_H
