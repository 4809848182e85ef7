//===- OpHelpers.h - Helpers of op implementations ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Private to dialects/dtc.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_OPHELPERS_H
#define DTC_DIALECTS_DTC_OPHELPERS_H

#include "dialects/dtc/Constraint.h"
#include "dialects/dtc/DtcOps.h"

#include <cmath>
#include <optional>

namespace dtc {

//===----------------------------------------------------------------------===//
// Types and errors: each check is given the label of the constraint that it enforces
//===----------------------------------------------------------------------===//

/// Checks that the operand called `name` has the type that the others ask for.
template <typename OpT>
mlir::LogicalResult expectType(std::optional<mlir::Location> location, llvm::StringRef label,
                               llvm::StringRef name, mlir::Value operand, mlir::Type expected) {
  if (operand.getType() == expected)
    return mlir::success();
  return inferenceError<OpT>(location, label, name, " has type ", operand.getType(), ", expected ",
                             expected);
}

/// Checks the type of the key of a random op, tensor<2xi32>.
template <typename OpT>
mlir::LogicalResult expectRandomKey(std::optional<mlir::Location> location, llvm::StringRef label,
                                    mlir::Value key) {
  auto expected = mlir::RankedTensorType::get({2}, mlir::IntegerType::get(key.getContext(), 32));
  return expectType<OpT>(location, label, "key", key, expected);
}

/// The labels of the constraints of expectHeads.
struct HeadLabels {
  llvm::StringRef q, k, heads, v;
};

/// Checks the types of queries q [b,s,h,d], and of keys and values k, v [b,t,g,d] for them.
template <typename OpT>
mlir::LogicalResult expectHeads(std::optional<mlir::Location> location, const HeadLabels &labels,
                                mlir::RankedTensorType q, mlir::RankedTensorType k, mlir::Value v) {
  if (q.getRank() != 4)
    return inferenceError<OpT>(location, labels.q, "q has type ", q, ", expected rank 4");
  if (k.getRank() != 4 || k.getDimSize(0) != q.getDimSize(0) ||
      k.getDimSize(3) != q.getDimSize(3) || k.getElementType() != q.getElementType())
    return inferenceError<OpT>(location, labels.k, "k has type ", k, ", expected tensor<",
                               q.getDimSize(0), "xtxgx", q.getDimSize(3), "x", q.getElementType(),
                               "> for some t and g");
  if (q.getDimSize(2) % k.getDimSize(2) != 0)
    return inferenceError<OpT>(location, labels.heads, "k has ", k.getDimSize(2),
                               " heads, expected a divisor of the ", q.getDimSize(2), " of q");
  return expectType<OpT>(location, labels.v, "v", v, k);
}

/// The labels of the constraints of expectScores; `causal` is none where an op is always causal.
struct ScoreLabels {
  llvm::StringRef window, causal, softcap;
};

/// Checks which keys attention sees and how its scores are bounded.
template <typename OpT>
mlir::LogicalResult expectScores(std::optional<mlir::Location> location, const ScoreLabels &labels,
                                 typename OpT::Adaptor adaptor, bool causal) {
  if (std::optional<uint64_t> window = adaptor.getWindow()) {
    if (static_cast<int64_t>(*window) < 1)
      return inferenceError<OpT>(location, labels.window, "window is ",
                                 static_cast<int64_t>(*window), ", expected at least 1 key");
    if (!causal)
      return inferenceError<OpT>(location, labels.causal, "window is ",
                                 static_cast<int64_t>(*window),
                                 " and causal is false, expected a window of causal attention: "
                                 "it counts keys back from the query's own");
  }
  std::optional<double> softcap = adaptor.getSoftcap();
  if (softcap && !(*softcap > 0 && std::isfinite(*softcap)))
    return inferenceError<OpT>(location, labels.softcap, "softcap is ", *softcap,
                               ", expected a finite positive number");
  return mlir::success();
}

/// The FLOPs of the products q k^T and p v of attention, of the scores that a query at a time sees:
/// 4 b h s t d, half of it if causal, and with a window no more than that leaves.
double getAttentionFlops(mlir::RankedTensorType q, mlir::RankedTensorType k, bool causal,
                         std::optional<int64_t> window);

/// Adds the attributes with which the kernel of a random op draws its mask. The op has a shard of
/// shape `local` of a tensor: the op's number, the shape of the whole tensor and its sharding.
template <typename OpT>
void addRandomKernelAttributes(OpT op, llvm::ArrayRef<int64_t> local,
                               mlir::NamedAttrList &attributes) {
  mlir::Builder builder(op.getContext());
  mlir::DenseI64ArrayAttr shape = op.getShapeAttr();
  mlir::ArrayAttr sharding = op.getShardingAttr();
  llvm::SmallVector<llvm::StringRef> whole(local.size(), "");
  attributes.set("op", op.getNumberAttr());
  attributes.set("shape", shape ? shape : builder.getDenseI64ArrayAttr(local));
  attributes.set("sharding", sharding ? sharding : builder.getStrArrayAttr(whole));
}

inline mlir::RankedTensorType getTensorType(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

/// A tensor type with the elements of `type` and another shape.
mlir::RankedTensorType withShape(mlir::RankedTensorType type, llvm::ArrayRef<int64_t> shape);

/// The type without its last dimension.
mlir::RankedTensorType dropLastDim(mlir::RankedTensorType type);

/// "[0, 2]".
std::string formatList(llvm::ArrayRef<int64_t> values);

/// Whether every value is a dimension of a tensor of that rank and larger than the one before.
bool areIncreasingDims(llvm::ArrayRef<int64_t> dims, int64_t rank);

/// Whether the op carries annotations (axes, a sharding, a stage), so that it must not be replaced
/// by an operand.
bool isAnnotated(mlir::Operation *op);

/// Whether the attribute is a constant whose elements all are `value`.
bool isSplatOf(mlir::Attribute attribute, double value);

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

/// Builds ops at one location, for gradients and decompositions. C++ leaves the order of arguments
/// open: at most one argument of a call builds ops, so that the order of the ops does not depend on
/// the compiler.
class ValueBuilder {
public:
  ValueBuilder(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  template <typename OpT, typename... Args> mlir::Value create(Args &&...args) {
    return OpT::create(builder, loc, std::forward<Args>(args)...);
  }
  mlir::Value add(mlir::Value x, mlir::Value y) { return create<AddOp>(x, y); }
  mlir::Value sub(mlir::Value x, mlir::Value y) { return create<SubOp>(x, y); }
  mlir::Value mul(mlir::Value x, mlir::Value y) { return create<MulOp>(x, y); }
  mlir::Value div(mlir::Value x, mlir::Value y) { return create<DivOp>(x, y); }

  /// x with elements of their wide type.
  mlir::Value widen(mlir::Value x);
  /// x with elements as those of `like`.
  mlir::Value convertLike(mlir::Value x, mlir::Value like);

  /// A constant of the type of `like`.
  mlir::Value splat(mlir::Value like, double value);
  mlir::Value scale(mlir::Value x, double factor) { return mul(x, splat(x, factor)); }
  mlir::Value compare(ComparePredicate predicate, mlir::Value x, mlir::Value y) {
    return create<CompareOp>(x, y, predicate);
  }
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y) {
    return create<SelectOp>(condition, x, y);
  }

  /// Repeats x, whose dimensions are the first ones of `like`, along the others.
  mlir::Value broadcastLeading(mlir::Value x, mlir::Value like);
  /// Repeats x, whose dimensions are the last ones of `like`, along the others.
  mlir::Value broadcastTrailing(mlir::Value x, mlir::Value like);
  /// Reduces the last dimension.
  mlir::Value reduceLast(ReductionKind kind, mlir::Value x);
  /// Sums over all dimensions but the last.
  mlir::Value sumLeading(mlir::Value x);
  /// The mean over the last dimension.
  mlir::Value meanLast(mlir::Value x);

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
};

} // namespace dtc

#endif // DTC_DIALECTS_DTC_OPHELPERS_H
