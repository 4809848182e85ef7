//===- GroupedProductCall.h - Calls of grouped_product --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_GROUPEDPRODUCTCALL_H
#define DTC_CALLS_GROUPEDPRODUCTCALL_H

#include "calls/GemmShape.h"
#include "calls/KernelSignature.h"
#include "support/Error.h"

#include <algorithm>

namespace dtc {

/// Rows [matrices, groups, rows, k]: `groups` groups of rows for each of `matrices` matrices.
struct GroupedProductCall {
  DType in = DType::F32, out = DType::F32;
  int64_t matrices = 0, groups = 0, rows = 0, k = 0, n = 0;
  /// The result has the rows, [matrices, groups, rows, n], and the other operand is the matrices;
  /// otherwise that operand is the rows [matrices, groups, rows, n] and the result the matrices.
  bool keepsRows = true;
  /// The matrices are [matrices, n, k]; otherwise [matrices, k, n].
  bool isTransposed = false;

  /// The product of the first `count` rows of a group: of them and the matrix, or of their
  /// transpose and the rows of the other operand.
  GemmShape shapeOf(int64_t count) const;
};

/// Checks a call against its row of docs/kernels.md.
Expected<GroupedProductCall> checkGroupedProduct(const KernelSignature &signature);

/// The number of rows of a group that have an index: those before the first negative one of `rows`
/// indices, after which all are negative.
inline int64_t usedRows(const int32_t *indices, int64_t rows) {
  auto isUsed = [](int32_t index) { return index >= 0; };
  return std::partition_point(indices, indices + rows, isUsed) - indices;
}

} // namespace dtc

#endif // DTC_CALLS_GROUPEDPRODUCTCALL_H
