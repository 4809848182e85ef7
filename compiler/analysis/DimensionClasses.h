//===- DimensionClasses.h - Dimensions that are split together ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Two dimensions of two values are of one class if an op has them as one factor (see
// ShardingRule.h): an einsum's sum runs over a dimension of both operands, an addition has each
// dimension in all three values. Who splits one of a class wants to split all of it, or has to move
// data between them. This is the named dimension analysis of Alabed et al. 2025, "TOAST: Fast and
// scalable auto-partitioning based on principled static analysis", over the rules that propagation
// follows.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_ANALYSIS_DIMENSIONCLASSES_H
#define DTC_COMPILER_ANALYSIS_DIMENSIONCLASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace dtc {

/// Dimensions of a program's values that belong together.
struct DimensionClass {
  /// Those that arguments have: the number of the argument and the dimension, in order.
  std::vector<std::pair<unsigned, unsigned>> arguments;
  /// The names (`dtc.axes`) of any of its dimensions.
  std::set<std::string> names;
  /// The elements that can be split. Those of a dimension that is a product are the elements of the
  /// factor that varies slowest, which is split first.
  int64_t size = 0;
  /// One value has two dimensions of the class, such as scores of attention two of the sequence:
  /// an axis can split only one of them.
  bool isTwiceInValue = false;
};

class DimensionClasses {
public:
  /// Makes the classes of the values of a function with one block.
  explicit DimensionClasses(mlir::func::FuncOp function);

  /// Those that have a dimension of an argument, in the order of these.
  const std::vector<DimensionClass> &classes() const { return found; }

  /// Whether two dimensions are of one class.
  bool areTogether(mlir::Value a, unsigned dimOfA, mlir::Value b, unsigned dimOfB) const {
    return rootOf(nodeOf(a, dimOfA)) == rootOf(nodeOf(b, dimOfB));
  }

private:
  void add(mlir::Value value);
  void unite(mlir::Operation *op);
  void collect(mlir::func::FuncOp function);
  size_t nodeOf(mlir::Value value, unsigned dim) const { return firstNode.lookup(value) + dim; }
  size_t rootOf(size_t node) const;

  std::vector<mlir::Value> values;               ///< in the order of the program
  llvm::DenseMap<mlir::Value, size_t> firstNode; ///< of dimension 0
  mutable std::vector<size_t> parents;
  std::vector<int64_t> sizes; ///< of a root: of its class
  std::vector<DimensionClass> found;
};

} // namespace dtc

#endif // DTC_COMPILER_ANALYSIS_DIMENSIONCLASSES_H
