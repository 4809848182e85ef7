//===- GroupedProductCall.cpp - Calls of grouped_product ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/GroupedProductCall.h"

#include "calls/SignatureChecker.h"
#include "support/EinsumEquation.h"
#include "support/Float16.h"

namespace dtc {

GemmShape GroupedProductCall::shapeOf(int64_t count) const {
  MatrixStrides matrix = isTransposed ? MatrixStrides{1, k} : MatrixStrides{n, 1}; // as [k, n]
  if (keepsRows)
    return {count, n, k, {k, 1}, matrix, {n, 1}};
  GemmShape shape{k, n, count, {1, k}, {n, 1}, matrix};
  return shape;
}

Expected<GroupedProductCall> checkGroupedProduct(const KernelSignature &signature) {
  SignatureChecker check(signature, 3, 1);
  const TensorType &lhs = check.floatInputOfRank(0, 4);
  const TensorType &rhs = check.input(1);
  const TensorType &out = check.output(0);
  std::string text = check.stringAttribute("equation");
  std::optional<EinsumEquation> equation = EinsumEquation::parse(text);
  if (!equation || !isGroupedProduct(*equation))
    check.failAttribute("equation", '"' + text + '"',
                        "a form of \"xbck,xkn->xbcn\" or \"xbck,xbcn->xkn\"");
  if (check.failed())
    return *check.finish();

  GroupedProductCall call{lhs.dtype,    out.dtype,    lhs.shape[0],
                          lhs.shape[1], lhs.shape[2], lhs.shape[3]};
  call.keepsRows = equation->rhs().size() == 3;
  const std::string &matrix = call.keepsRows ? equation->rhs() : equation->result();
  call.isTransposed = matrix[2] == equation->lhs()[3];
  const TensorType &withN = call.keepsRows ? rhs : out;
  if (withN.rank() != 3)
    check.fail((call.keepsRows ? "input 1 is " : "output 0 is ") + withN.str() +
               ", expected 3 dimensions");
  else
    call.n = withN.shape[call.isTransposed ? 1 : 2];
  TensorType matrices{lhs.dtype, call.isTransposed
                                     ? std::vector<int64_t>{call.matrices, call.n, call.k}
                                     : std::vector<int64_t>{call.matrices, call.k, call.n}};
  TensorType rows{lhs.dtype, {call.matrices, call.groups, call.rows, call.n}};
  check.expectInput(1, call.keepsRows ? matrices : rows);
  check.expectInput(2, TensorType{DType::I32, {call.matrices, call.groups, call.rows}});
  TensorType result = call.keepsRows ? rows : matrices;
  if (out.dtype == wideType(lhs.dtype))
    result.dtype = out.dtype;
  check.expectOutput(0, result);
  if (MaybeError error = check.finish())
    return *error;
  return call;
}

} // namespace dtc
