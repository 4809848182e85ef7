//===- EinsumEquation.cpp - The terms of an einsum ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/EinsumEquation.h"

#include <utility>

namespace dtc {

std::optional<EinsumEquation> EinsumEquation::parse(std::string_view text, Violation *violation) {
  auto fail = [&](Rule rule, std::string what) -> std::optional<EinsumEquation> {
    if (violation)
      *violation = {rule, std::move(what)};
    return std::nullopt;
  };
  size_t comma = text.find(','), arrow = text.find("->");
  if (arrow == text.npos || text.rfind("->") != arrow || comma > arrow ||
      text.substr(0, arrow).rfind(',') != comma)
    return fail(Rule::Form, "has not the form \"lhs,rhs->result\"");

  EinsumEquation equation{{std::string(text.substr(0, comma)),
                           std::string(text.substr(comma + 1, arrow - comma - 1)),
                           std::string(text.substr(arrow + 2))}};
  std::array<int, 26> termsWith{};
  for (const std::string &term : equation.terms)
    for (size_t i = 0; i < term.size(); ++i) {
      if (term[i] < 'a' || term[i] > 'z')
        return fail(Rule::Letters, "has the term \"" + term + "\", expected letters from a to z");
      if (term.find(term[i], i + 1) != term.npos)
        return fail(Rule::OnceInATerm, std::string("has '") + term[i] + "' twice in \"" + term +
                                           "\", expected each letter at most once in a term");
      ++termsWith[static_cast<size_t>(term[i] - 'a')];
    }
  for (char letter = 'a'; letter <= 'z'; ++letter)
    if (termsWith[static_cast<size_t>(letter - 'a')] == 1)
      return fail(Rule::InTwoTerms, std::string("has '") + letter +
                                        "' in one term only, expected each letter in at least two");
  return equation;
}

bool isGroupedProduct(const EinsumEquation &equation) {
  const auto &[lhs, rhs, result] = equation.terms;
  // One of the other terms has the rows, and one the matrices.
  const std::string &rows = rhs.size() == 4 ? rhs : result;
  const std::string &matrix = rhs.size() == 4 ? result : rhs;
  if (lhs.size() != 4 || rows.size() != 4 || matrix.size() != 3)
    return false;
  std::string_view group = std::string_view(lhs).substr(0, 3);
  char k = lhs[3], n = rows[3];
  return k != n && std::string_view(rows).substr(0, 3) == group && matrix[0] == group[0] &&
         ((matrix[1] == k && matrix[2] == n) || (matrix[1] == n && matrix[2] == k));
}

} // namespace dtc
