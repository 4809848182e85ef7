//===- EinsumEquation.h - The terms of an einsum --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_EINSUMEQUATION_H
#define DTC_SUPPORT_EINSUMEQUATION_H

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace dtc {

/// "bsd,df->bsf": a letter from a to z for each dimension, at most once in a term and in at least
/// two of the terms.
struct EinsumEquation {
  std::array<std::string, 3> terms; // of the left operand, the right one and the result

  /// The rules that a text must fulfil.
  enum class Rule { Form, Letters, OnceInATerm, InTwoTerms };
  struct Violation {
    Rule rule = Rule::Form;
    std::string text; ///< the finding and the expectation: "has not the form ..."
  };

  /// None if the text is no equation; `violation`, where it is given, says why.
  static std::optional<EinsumEquation> parse(std::string_view text, Violation *violation = nullptr);

  const std::string &lhs() const { return terms[0]; }
  const std::string &rhs() const { return terms[1]; }
  const std::string &result() const { return terms[2]; }
  std::string str() const { return lhs() + "," + rhs() + "->" + result(); }
};

/// Whether an equation has one of the forms "xbck,xkn->xbcn", "xbck,xnk->xbcn", "xbck,xbcn->xkn"
/// and "xbck,xbcn->xnk", with any letters.
bool isGroupedProduct(const EinsumEquation &equation);

} // namespace dtc

#endif // DTC_SUPPORT_EINSUMEQUATION_H
