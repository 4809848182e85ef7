//===- FactorMerge.h - Axes of an op's factors from its tensors -----------===//
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
#include "compiler/analysis/ReshardSteps.h"

namespace dtc {

/// One operand or result of an op, as the merge sees it.
struct FactorTensor {
  const TensorFactors *factors;
  const Layout *layout;
  /// Bytes of the global tensor: larger tensors win conflicts, because moving them costs more.
  double bytes;
  int64_t elementBytes = 4;
  bool isResult = false;
  /// For each dimension whether its axes are fixed; empty: none are. A result that may have more
  /// axes than its layout says costs nothing where it has them.
  llvm::ArrayRef<bool> closed = {};
};

/// Chooses the axes of each factor of an op from the layouts of its tensors, at once and by bytes.
///
///  * Whole factors get none.
///  * Where one tensor's axes for a factor begin with another's, the longer list is taken. Where
///    they contradict, the list that the heavier tensors have is.
///  * An axis splits one factor only; the factor of heavier tensors keeps it.
///
/// The result depends on the arguments alone; ties go to the tensor and the factor that come first.
FactorAxes mergeFactorAxes(const LinkedMesh &mesh, const ShardingRule &rule,
                           llvm::ArrayRef<FactorTensor> tensors);

/// The axes that all tensors of an op accept.
struct FactorAgreement {
  FactorAxes axes;
  /// Tensors want contradicting axes for a factor, or two factors want one axis.
  bool conflict = false;
};

/// Extends `committed`, the decided axes of the op, by axes that no tensor contradicts. An axis
/// that `committed` uses is lost for other factors, without a conflict.
FactorAgreement agreeOnFactorAxes(const LinkedMesh &mesh, const ShardingRule &rule,
                                  llvm::ArrayRef<FactorTensor> tensors,
                                  const FactorAxes &committed);

/// Resolution of a conflict between requested shardings, by cost.
struct ConflictResolution {
  FactorAxes axes;
  double seconds = 0; ///< estimated for the choice; see factorAxesSeconds
  FactorAxes runnerUp;
  double runnerUpSeconds = 0;
};

/// Extends `committed` to the cheapest of all combinations of the tensors' requests. Ties go to the
/// combination that splits more, then to the one whose requests come first. Beyond kMaxCombinations
/// of them the choice is that of mergeFactorAxes, or only what no tensor contradicts where that
/// would go back on `committed`.
ConflictResolution resolveFactorAxes(const LinkedMesh &mesh, ReshardCache &planner,
                                     const ShardingRule &rule, llvm::ArrayRef<FactorTensor> tensors,
                                     const FactorAxes &committed, double flops);
inline constexpr size_t kMaxCombinations = 512;

/// An estimate of the seconds that an op takes whose factors are split by `axes`: bringing its
/// operands from their layouts to those that it needs, computing one shard, and bringing its
/// results, sums completed, to their layouts. Infinite where that is impossible.
double factorAxesSeconds(const LinkedMesh &mesh, ReshardCache &planner, const ShardingRule &rule,
                         llvm::ArrayRef<FactorTensor> tensors, const FactorAxes &axes,
                         double flops);

/// The layouts of an op's result whose factors are split by `axes`: the layout that the op
/// computes, partial over the axes of factors that the result lacks.
std::optional<Layout> producedLayout(const LinkedMesh &mesh, const ShardingRule &rule,
                                     const TensorFactors &result, const FactorAxes &axes);

/// Gives up axes that no list of equal blocks can express for some tensor of the op: a minor factor
/// of a dimension can be split only where the major ones are split completely, and a factor that
/// shares a dimension only by axes that divide it.
void dropInexpressible(const LinkedMesh &mesh, const ShardingRule &rule,
                       llvm::ArrayRef<FactorTensor> tensors, FactorAxes &axes);

/// Extends the dimensions of `layout` to what `axes` asks of the tensor, where that only appends
/// axes that the tensor does not use yet. Dimensions whose entry in `closed` is true stay as they
/// are. Returns whether anything changed.
bool extendLayout(const LinkedMesh &mesh, const ShardingRule &rule, const TensorFactors &tensor,
                  const FactorAxes &axes, Layout &layout, llvm::ArrayRef<bool> closed = {});

} // namespace dtc

#endif // DTC_COMPILER_ANALYSIS_FACTORMERGE_H
