//===- ConstantTensor.h - Values that do not depend on inputs ---*- C++ -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_IMPORT_TORCH_CONSTANTTENSOR_H
#define DTC_COMPILER_IMPORT_TORCH_CONSTANTTENSOR_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <memory>
#include <optional>
#include <vector>

namespace dtc::torch {

/// The most elements of a value that is computed at compile time: 512 MiB of them.
inline constexpr int64_t kMaxConstantElements = int64_t{1} << 26;

/// A tensor whose elements are known. Several tensors may share elements; along a dimension of
/// stride 0 they are repeated, so that a mask of all samples and heads is as small as that of one.
/// Integers are exact up to 2^53.
class ConstantTensor {
public:
  /// Elements in row-major order.
  ConstantTensor(mlir::Type element, llvm::ArrayRef<int64_t> shape, std::vector<double> values);

  static ConstantTensor splat(mlir::Type element, llvm::ArrayRef<int64_t> shape, double value);
  static std::optional<ConstantTensor> get(mlir::DenseElementsAttr elements);

  /// Element [index...].
  double at(llvm::ArrayRef<int64_t> index) const;
  /// All elements in row-major order.
  std::vector<double> flat() const;
  int64_t size() const;
  /// How many elements differ by their place: without those that are repeated.
  int64_t distinct() const;

  /// The same elements by other places.
  ConstantTensor permuted(llvm::ArrayRef<int64_t> order) const;
  ConstantTensor sliced(int64_t dim, int64_t begin, int64_t count, int64_t step = 1) const;
  /// Repeated along dimensions of size 1 and new leading ones; nothing if the shapes do not fit.
  std::optional<ConstantTensor> broadcast(llvm::ArrayRef<int64_t> shape) const;
  ConstantTensor reshaped(llvm::ArrayRef<int64_t> shape) const;
  /// The tensor in another element type, rounded to it.
  ConstantTensor converted(mlir::Type element) const;
  /// The same with stride 0 where all elements along a dimension are equal.
  ConstantTensor compressed() const;

  mlir::DenseElementsAttr attribute() const;

  mlir::Type element;
  llvm::SmallVector<int64_t> shape;

private:
  friend std::optional<ConstantTensor>
  mapElements(llvm::ArrayRef<ConstantTensor> operands, mlir::Type element,
              llvm::ArrayRef<int64_t> shape,
              llvm::function_ref<double(llvm::ArrayRef<double>)> apply);
  int64_t placeOf(llvm::ArrayRef<int64_t> index) const;

  llvm::SmallVector<int64_t> strides;
  int64_t offset = 0;
  std::shared_ptr<const std::vector<double>> values;
};

/// `value` as an element of the type has it: f32 rounds, integers truncate, i1 is 0 or 1.
double rounded(double value, mlir::Type element);

/// Whether the predicate holds for all indices of the shape. Asks in row-major order, until it does
/// not.
bool allIndices(llvm::ArrayRef<int64_t> shape,
                llvm::function_ref<bool(llvm::ArrayRef<int64_t>)> predicate);

/// Calls the function with each index of the shape, in row-major order.
void forEachIndex(llvm::ArrayRef<int64_t> shape,
                  llvm::function_ref<void(llvm::ArrayRef<int64_t>)> call);

/// A function of the elements of tensors of one shape, element by element, as elements of the type.
/// Along a dimension in which all are repeated it is computed once. Nothing if it is too large.
std::optional<ConstantTensor> mapElements(llvm::ArrayRef<ConstantTensor> operands,
                                          mlir::Type element, llvm::ArrayRef<int64_t> shape,
                                          llvm::function_ref<double(llvm::ArrayRef<double>)> apply);

/// The values of a function that do not depend on its arguments.
using ConstantMap = llvm::DenseMap<mlir::Value, ConstantTensor>;

/// The result of an op whose operands are constant; nothing where there is no rule.
std::optional<ConstantTensor> evaluate(mlir::Operation *op, const ConstantMap &constants);

} // namespace dtc::torch

#endif // DTC_COMPILER_IMPORT_TORCH_CONSTANTTENSOR_H
