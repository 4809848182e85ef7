//===- FactorMerge.h - The shardings of an op's tensors, reconciled -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Pure functions over factors: the core of propagation and of reshard insertion.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_ANALYSIS_FACTORMERGE_H
#define DTC_COMPILER_ANALYSIS_FACTORMERGE_H

#include "compiler/analysis/Layout.h"

namespace dtc {

/// One operand or result of an op, as the merge sees it.
struct FactorTensor {
  const TensorFactors *factors;
  const Layout *layout;
  /// Bytes of the global tensor: larger tensors win conflicts, because moving them costs more.
  double weight;
};

/// Chooses the axes of each factor of an op from the layouts of its tensors.
///
///  * Whole factors get none.
///  * Where one tensor's axes for a factor begin with another's, the longer list is taken. Where
///  they contradict, the
///    list that the heavier tensors have is.
///  * An axis splits one factor only; the factor of heavier tensors keeps it.
///
/// The result depends on the arguments alone; ties go to the tensor and the factor that come first.
FactorAxes mergeFactorAxes(const Mesh &mesh, const ShardingRule &rule,
                           llvm::ArrayRef<FactorTensor> tensors);

/// Extends the dimensions of `layout` to what `axes` asks of the tensor, where that only appends
/// axes that the tensor does not use yet. Returns whether anything changed.
bool extendLayout(const Mesh &mesh, const ShardingRule &rule, const TensorFactors &tensor,
                  const FactorAxes &axes, Layout &layout);

} // namespace dtc

#endif // DTC_COMPILER_ANALYSIS_FACTORMERGE_H
