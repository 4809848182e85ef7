//===- EinsumEquation.cpp - The terms of an einsum ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dtc/EinsumEquation.h"
#include "dialects/dtc/Constraint.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

#include <array>

using namespace mlir;
using namespace dtc;

FailureOr<EinsumEquation> EinsumEquation::parse(StringRef equation, std::string &error) {
  auto fail = [&](StringRef label, const Twine &what) -> FailureOr<EinsumEquation> {
    error = ("equation \"" + equation + "\" " + what + constraintSuffix(label)).str();
    return failure();
  };
  auto [operands, result] = equation.split("->");
  auto [lhs, rhs] = operands.split(',');
  if (equation.count("->") != 1 || operands.count(',') != 1)
    return fail("einsum-c1", "has not the form \"lhs,rhs->result\"");

  std::array<StringRef, 3> terms = {lhs, rhs, result};
  std::array<unsigned, 26> termsWith = {};
  for (StringRef term : terms) {
    for (size_t i = 0; i < term.size(); ++i) {
      if (term[i] < 'a' || term[i] > 'z')
        return fail("einsum-c2", "has the term \"" + term + "\", expected letters from a to z");
      if (term.find(term[i], i + 1) != StringRef::npos)
        return fail("einsum-c3", "has '" + term.substr(i, 1) + "' twice in \"" + term +
                                     "\", expected each letter at most once in a term");
      ++termsWith[term[i] - 'a'];
    }
  }
  for (auto [index, count] : llvm::enumerate(termsWith))
    if (count == 1)
      return fail("einsum-c4", "has '" + Twine(static_cast<char>('a' + index)) +
                                   "' in one term only, expected each letter in at least two");
  return EinsumEquation{lhs.str(), rhs.str(), result.str()};
}
