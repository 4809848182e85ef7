//===- CompressedSum.h - A sum of a gradient in a compressed form ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The interface of a method of compression for dtc-compress-gradients. A sum has three steps:
// begin(), where the gradient is made, combine(), where the first of several sums is needed, and
// result(). The same step of all these sums comes before the next one, so that collectives share
// buckets.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_COLLECTIVES_COMPRESSEDSUM_H
#define DTC_COMPILER_PASSES_COLLECTIVES_COMPRESSEDSUM_H

#include "compiler/analysis/Layout.h"
#include "compiler/passes/collectives/CompressionMethod.h"
#include "dialects/dist/DistCompressionOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

#include <memory>
#include <optional>

namespace dtc {

/// A sum of a gradient over the axis that an optimizer reads, or of an outer gradient.
struct GradientSum {
  mlir::Operation *op;
  /// A state of the parameter that lies as the gradient does in the end: the first moment of the
  /// optimizer, or the outer parameters.
  mlir::BlockArgument state;
  mlir::Value apply;                ///< whether the step is not skipped; null: it never is
  llvm::SmallVector<int64_t> shape; ///< the parameter's, on all devices together
  int64_t group = 1;                ///< the devices of the axis

  /// The sum stays where the optimizer's state is, as with ZeRO.
  bool scatters() const { return mlir::isa<dist::ReduceScatterOp>(op); }
  /// The type of a device's addend.
  mlir::RankedTensorType type() const {
    return mlir::cast<mlir::RankedTensorType>(op->getOperand(0).getType());
  }
  mlir::RankedTensorType resultType() const {
    return mlir::cast<mlir::RankedTensorType>(op->getResult(0).getType());
  }
};

/// The product of the sizes of dimensions `first` and after.
int64_t elementsFrom(llvm::ArrayRef<int64_t> shape, size_t first = 0);

/// The argument of the function that a value is, or a part or a conversion of; null if there is
/// none.
mlir::BlockArgument argumentOf(mlir::Value value);

/// Builds ops and states of the sums of one function.
class SumBuilder {
public:
  SumBuilder(mlir::func::FuncOp function, const LinkedMesh &mesh,
             const CompressionSettings &settings)
      : function(function), mesh(mesh), settings(settings), builder(function.getContext()) {}

  /// Builds an op that stands for a part of the sum: in its stage, and for its reason.
  template <typename OpT, typename... Args> OpT create(const GradientSum &sum, Args &&...args) {
    auto op = OpT::create(builder, sum.op->getLoc(), std::forward<Args>(args)...);
    if (mlir::Attribute stage = sum.op->getAttr(dist::kStageAttrName))
      op->setAttr(dist::kStageAttrName, stage);
    if (mlir::Attribute reason = sum.op->getAttr(dist::kReasonAttrName);
        reason && mlir::isa<dist::CollectiveOpInterface>(op.getOperation()))
      op->setAttr(dist::kReasonAttrName, reason);
    return op;
  }

  mlir::Value reshape(const GradientSum &sum, mlir::Value value, llvm::ArrayRef<int64_t> shape);
  /// The tensor with zeros after the elements of each dimension, or without its last ones.
  mlir::Value resize(const GradientSum &sum, mlir::Value value, llvm::ArrayRef<int64_t> shape);
  /// The sum over axes; the value itself over none.
  mlir::Value sumOver(const GradientSum &sum, mlir::Value value, llvm::ArrayRef<unsigned> axes);
  mlir::Value allGather(const GradientSum &sum, mlir::Value value, int64_t dim,
                        llvm::ArrayRef<unsigned> axes);
  /// Sends each device of the axis its part of dimension 0; what arrives lies along dimension 1.
  mlir::Value allToAll(const GradientSum &sum, mlir::Value value);
  /// This device's block of dimension `dim` over axes; the value itself over none.
  mlir::Value shardSlice(const GradientSum &sum, mlir::Value value, int64_t dim,
                         llvm::ArrayRef<unsigned> axes);

  /// Says about the gradient of a sum what follows.
  mlir::InFlightDiagnostic remark(const GradientSum &sum);
  /// How a device's addend lies, without the padding of ZeRO; none where the optimizer's state does
  /// not say, or where another axis pads the gradient.
  std::optional<Layout> addendLayout(const GradientSum &sum);

  /// A new state of the parameter of the sum, of this global shape and layout, with the local shape
  /// that these give. Fails with a diagnostic.
  mlir::FailureOr<mlir::BlockArgument> addState(const GradientSum &sum, llvm::StringRef name,
                                                llvm::ArrayRef<int64_t> shape,
                                                const Layout &layout);
  /// Makes the step return the state's next value, or the old one if the step is skipped.
  void updateState(const GradientSum &sum, mlir::BlockArgument state, mlir::Value next);

  /// The random key of the step; null if it has none.
  mlir::BlockArgument randomKey();
  /// The parameter of the sum, as its states name it.
  mlir::StringAttr parameterName(const GradientSum &sum);
  /// The axis over which the gradient is summed.
  unsigned axis() const { return *mesh.find(settings.axis); }
  mlir::ArrayAttr names(llvm::ArrayRef<unsigned> axes);

  mlir::func::FuncOp function;
  const LinkedMesh &mesh;
  const CompressionSettings &settings;
  mlir::OpBuilder builder;

private:
  llvm::StringMap<unsigned> statesOf; ///< by parameter and name
};

/// A sum in a compressed form. The driver sets the builder's place before each step.
class CompressedSum {
public:
  CompressedSum(SumBuilder &build, GradientSum sum) : build(build), sum(std::move(sum)) {}
  virtual ~CompressedSum() = default;

  /// Decides how the sum is compressed. Returns whether less travels then, else says why not in a
  /// remark, and the sum stays as it is.
  virtual bool choose() = 0;
  /// Builds what this device sends of its addend, and sets `sent`.
  virtual mlir::LogicalResult begin(mlir::Value addend) = 0;
  /// Builds what comes between the first collective and the last one.
  virtual void combine() = 0;
  /// The sum, of the type of the op.
  virtual mlir::Value result() = 0;

  /// The value that the others receive for this device's addend, in its type; null until it is
  /// known, at the latest after combine().
  mlir::Value kept;
  /// The first collective.
  mlir::Operation *sent = nullptr;

protected:
  SumBuilder &build;

public:
  GradientSum sum;
};

/// The length of the blocks of a sum: as many consecutive elements of the parameter as the settings
/// say, or the largest divisor of the stretches that a device has. Zero, with a remark, where
/// another axis pads the gradient.
int64_t blockOf(SumBuilder &build, const GradientSum &sum);
/// Says in a remark where the block is not as long as the settings say.
void remarkOnBlock(SumBuilder &build, const GradientSum &sum, int64_t block);

std::unique_ptr<CompressedSum> makeQuantizedSum(SumBuilder &build, GradientSum sum);
std::unique_ptr<CompressedSum> makeSparseSum(SumBuilder &build, GradientSum sum);
std::unique_ptr<CompressedSum> makeFactoredSum(SumBuilder &build, GradientSum sum);

/// The collectives and changes of shape and type that read a gradient alone, one after the other,
/// from a sum to its optimizer.
llvm::SmallVector<mlir::Operation *> chainFrom(mlir::Operation *sum);

/// The names of the axes of a collective.
inline auto axesOf(mlir::Operation *collective) {
  return mlir::cast<dist::CollectiveOpInterface>(collective)
      .getAxes()
      .getAsValueRange<mlir::StringAttr>();
}

} // namespace dtc

#endif // DTC_COMPILER_PASSES_COLLECTIVES_COMPRESSEDSUM_H
