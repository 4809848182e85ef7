//===- FactoredSum.cpp - Sums of gradients as factors of low rank ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// PowerSGD (Vogels, Karimireddy and Jaggi, arXiv:1905.13727), algorithms 1 and 2. With M_r the
// gradient of device r of the axis as a matrix, with the residual of the device, and Q [n, rank] a
// state:
//
//   P = sum of M_r Q         [m, rank], an all-reduce
//   P = orthonormalize(P)
//   Q = sum of M_r^T P       [n, rank], an all-reduce, and the state of the next step
//   G = P Q^T                in place of the sum of all M_r
//
// and the residual of device r becomes M_r - P (M_r^T P)^T. The paper has means in place of sums; P
// does not depend on a factor of Q. Q starts with numbers from [-1, 1), where the paper draws from
// the normal distribution: its columns just have to be independent. Axes that split the parameter
// split P and Q as they do the rows and the columns of the matrix.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/collectives/CompressedSum.h"

using namespace mlir;
using namespace dtc;

namespace {

class FactoredSum : public CompressedSum {
public:
  using CompressedSum::CompressedSum;
  bool choose() override;
  LogicalResult begin(Value addend) override;
  void combine() override;
  Value result() override;

private:
  /// Dimensions of the parameter that are the rows or the columns of the matrix, on this device.
  struct Side {
    SmallVector<int64_t> shape, local;
    SmallVector<AxisList, 4> dims;
    int64_t size = 1, localSize = 1;
    AxisList axes; ///< of all dimensions
  };
  Side sideOf(size_t first, size_t last) const;
  AxisList withAxis(const AxisList &axes) const;
  Value einsum(StringRef equation, Value lhs, Value rhs) {
    return build.create<EinsumOp>(sum, lhs, rhs, equation);
  }
  Value scalar(Value vector, int64_t index);
  Value column(Value matrix, int64_t first, int64_t count);
  Value orthonormalize(Value matrix);

  Side rows, columns;
  int64_t rank = 1;
  Value matrix;                ///< [local rows, local columns]
  BlockArgument state;         ///< Q of the last step
  Value previous, left, right; ///< Q of the last step, P and Q, of this device's rows and columns
  Value lengths;               ///< [rank], 1 over the length of a column of P; 0 if it is left out
};

} // namespace

FactoredSum::Side FactoredSum::sideOf(size_t first, size_t last) const {
  Layout layout = *build.addendLayout(sum);
  SmallVector<int64_t> local = layout.localShape(build.mesh, sum.shape);
  Side side;
  for (size_t dim = first; dim < last; ++dim) {
    side.shape.push_back(sum.shape[dim]);
    side.local.push_back(local[dim]);
    side.dims.push_back(layout.dims[dim]);
    side.size *= sum.shape[dim];
    side.localSize *= local[dim];
    llvm::append_range(side.axes, layout.dims[dim]);
  }
  return side;
}

/// The axis of the sum and others, in the order of the mesh.
AxisList FactoredSum::withAxis(const AxisList &axes) const {
  AxisList all = axes;
  all.push_back(build.axis());
  llvm::sort(all);
  return all;
}

/// Decides how many of the first dimensions are the rows: the number with the smallest factors.
bool FactoredSum::choose() {
  rank = build.settings.rank;
  auto inFull = [&](const Twine &reason) {
    build.remark(sum) << "is summed over \"" << build.settings.axis << "\" in full, as " << reason;
    return false;
  };
  if (sum.shape.size() < 2)
    return inFull("it has fewer than two dimensions");
  if (!build.addendLayout(sum))
    return inFull("what a device has of it is no shard of the parameter, or one with padding");
  int64_t elements = elementsFrom(sum.shape), smallest = 0;
  size_t cut = 0;
  for (size_t dim = 1; dim < sum.shape.size(); ++dim) {
    int64_t ofRow = elementsFrom(sum.shape, dim), size = ofRow + elements / ofRow;
    if (cut == 0 || size < smallest) {
      cut = dim;
      smallest = size;
    }
  }
  rows = sideOf(0, cut);
  columns = sideOf(cut, sum.shape.size());
  if (rank * smallest >= elements)
    return inFull("factors of rank " + Twine(rank) + " of a matrix of " + Twine(rows.size) +
                  " rows and " + Twine(columns.size) + " columns are no smaller");
  return true;
}

/// Multiplies the matrix by the columns of the last step and adds the products of the devices.
LogicalResult FactoredSum::begin(Value addend) {
  SmallVector<int64_t> local = rows.local;
  llvm::append_range(local, columns.local);
  matrix =
      build.reshape(sum, build.resize(sum, addend, local), {rows.localSize, columns.localSize});
  SmallVector<int64_t> shape = columns.shape;
  shape.push_back(rank);
  Layout layout{.dims = columns.dims};
  layout.dims.emplace_back();
  FailureOr<BlockArgument> factor = build.addState(sum, kFactorStateName, shape, layout);
  if (failed(factor))
    return failure();
  state = *factor;
  previous = build.reshape(sum, state, {columns.localSize, rank});
  left = build.sumOver(sum, einsum("ij,jk->ik", matrix, previous), withAxis(columns.axes));
  sent = left.getDefiningOp();
  return success();
}

/// Element `index` of a vector.
Value FactoredSum::scalar(Value vector, int64_t index) {
  Value one = build.create<SliceOp>(sum, vector, ArrayRef<int64_t>{index}, ArrayRef<int64_t>{1});
  return build.reshape(sum, one, {});
}

/// Columns of a matrix.
Value FactoredSum::column(Value matrix, int64_t first, int64_t count) {
  auto type = cast<RankedTensorType>(matrix.getType());
  return build.create<SliceOp>(sum, matrix, ArrayRef<int64_t>{0, first},
                               ArrayRef<int64_t>{type.getDimSize(0), count});
}

/// Modified Gram-Schmidt: each column in turn is scaled to length 1, and its part in later columns
/// is subtracted from these. If no more than a 2^-14th (f32) or a 2^-43rd (f64) of the length of a
/// column is left, the rest is rounding errors: the column becomes zeros. A column of zeros stays
/// zeros. Sets `lengths`. A length that is not finite makes NaNs.
Value FactoredSum::orthonormalize(Value matrix) {
  auto type = cast<RankedTensorType>(matrix.getType());
  Type elementType = type.getElementType();
  auto vector = RankedTensorType::get({rank}, elementType);
  int64_t size = type.getDimSize(0);
  double least = elementType.isF64() ? 0x1p-86 : 0x1p-28;
  Value squares = build.create<MulOp>(sum, matrix, matrix);
  squares = build.create<ReduceOp>(sum, squares, ReductionKind::Sum, ArrayRef<int64_t>{0});
  auto times = [&](double factor) -> Value {
    return build.create<MulOp>(sum, squares, build.create<ConstantOp>(sum, vector, factor));
  };
  // Zeros, and NaNs where a square is infinite.
  Value limits = times(least), zeros = times(0);
  SmallVector<Value> made, factors;
  Value rest = matrix;
  for (int64_t index = 0; index < rank; ++index) {
    Value next = build.reshape(sum, column(rest, 0, 1), {size});
    Value square = einsum("i,i->", next, next);
    Value isNone =
        build.create<CompareOp>(sum, square, scalar(limits, index), ComparePredicate::LessOrEqual);
    Value factor = build.create<SelectOp>(sum, isNone, scalar(zeros, index),
                                          build.create<RsqrtOp>(sum, square));
    Value repeated = build.create<BroadcastOp>(sum, next.getType(), factor, ArrayRef<int64_t>());
    next = build.create<MulOp>(sum, next, repeated);
    made.push_back(build.reshape(sum, next, {size, 1}));
    factors.push_back(build.reshape(sum, factor, {1}));
    if (index + 1 == rank)
      break;
    rest = column(rest, 1, rank - index - 1);
    Value shares = einsum("i,ij->j", next, rest);
    rest = build.create<SubOp>(sum, rest, einsum("i,j->ij", next, shares));
  }
  lengths = rank == 1 ? factors[0] : build.create<ConcatOp>(sum, factors, 0);
  return rank == 1 ? made[0] : build.create<ConcatOp>(sum, made, 1);
}

void FactoredSum::combine() {
  // All rows are needed for the lengths of columns. They are few elements.
  SmallVector<int64_t> shape = rows.local;
  shape.push_back(rank);
  Value whole = build.reshape(sum, left, shape);
  for (auto [dim, axes] : llvm::enumerate(rows.dims))
    whole = build.allGather(sum, whole, int64_t(dim), axes);
  whole = orthonormalize(build.reshape(sum, whole, {rows.size, rank}));
  shape = rows.shape;
  shape.push_back(rank);
  whole = build.reshape(sum, whole, shape);
  for (auto [dim, axes] : llvm::enumerate(rows.dims))
    whole = build.shardSlice(sum, whole, int64_t(dim), axes);
  left = build.reshape(sum, whole, {rows.localSize, rank});
  Value own = einsum("ij,ik->jk", matrix, left);
  if (build.settings.feedback) {
    own = build.sumOver(sum, own, rows.axes);
    SmallVector<int64_t> local = rows.local;
    llvm::append_range(local, columns.local);
    Value product = build.reshape(sum, einsum("ik,jk->ij", left, own), local);
    kept = build.resize(sum, product, sum.type().getShape());
    right = build.sumOver(sum, own, build.axis());
  } else {
    right = build.sumOver(sum, own, withAxis(rows.axes));
  }
}

Value FactoredSum::result() {
  // A column of P that was left out keeps that of Q, from which the next step makes it again.
  auto vector = cast<RankedTensorType>(lengths.getType());
  auto type = cast<RankedTensorType>(right.getType());
  Value isNone = build.create<CompareOp>(sum, lengths, build.create<ConstantOp>(sum, vector, 0.0),
                                         ComparePredicate::Equal);
  auto mask = RankedTensorType::get(type.getShape(), build.builder.getI1Type());
  isNone = build.create<BroadcastOp>(sum, mask, isNone, ArrayRef<int64_t>{1});
  build.updateState(sum, state, build.create<SelectOp>(sum, isNone, previous, right));
  SmallVector<int64_t> local = rows.local;
  llvm::append_range(local, columns.local);
  Value product = build.reshape(sum, einsum("ik,jk->ij", left, right), local);
  if (auto scatter = dyn_cast<dist::ReduceScatterOp>(sum.op))
    return build.shardSlice(sum, product, int64_t(scatter.getDim()), build.axis());
  return build.reshape(sum, product, sum.resultType().getShape());
}

std::unique_ptr<CompressedSum> dtc::makeFactoredSum(SumBuilder &build, GradientSum sum) {
  return std::make_unique<FactoredSum>(build, std::move(sum));
}
