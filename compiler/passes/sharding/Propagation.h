//===- Propagation.h - State of the propagation in a function -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Nested strategies, each run to a fixpoint before the next may act (the idea is Shardy's):
//
//  0. Dimensions that are split over microbatches, before all others.
//  1. Priorities, the most urgent first. Requests of one priority enter together; earlier decisions
//     are kept.
//  2. Within a priority, ops that pass every dimension through (elementwise, reshapes) before those
//     that reduce one.
//  3. Last, conflicts between the tensors of an op are resolved by cost.
//
// It ends: an axis is only ever appended, to a value (each axis once) or to a factor of an op (each
// axis once), and decomposing an op replaces it by ops that do not decompose, or only where one of
// the remaining axes splits them.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_SHARDING_PROPAGATION_H
#define DTC_COMPILER_PASSES_SHARDING_PROPAGATION_H

#include "compiler/analysis/FactorMerge.h"
#include "compiler/passes/sharding/LogicalAxes.h"
#include "compiler/passes/sharding/RuleCache.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>
#include <set>

namespace dtc {

class Propagation {
public:
  Propagation(mlir::func::FuncOp function, const LinkedMesh &mesh,
              const LogicalAxisMap &logicalAxes)
      : function(function), mesh(mesh), logicalAxes(logicalAxes), planner(mesh) {}

  /// Enters the user's requests and propagates them to a fixpoint.
  mlir::LogicalResult enterRequests();
  /// Propagates what has been appended since, to a fixpoint again.
  void fixpoint();
  /// Gives every value a sharding and every op the axes of its factors (dist.factors), at the
  /// fixpoint.
  mlir::LogicalResult write();

  /// The layout that `value` has so far.
  Layout &layoutOf(mlir::Value value);
  /// From now on no axes are appended to `value`.
  void close(mlir::Value value);
  /// Appends axes to a dimension of `value`, and visits the ops around it.
  void append(mlir::Value value, unsigned dim, llvm::ArrayRef<unsigned> axes);
  /// Takes up a new op.
  void add(mlir::Operation *op);
  /// Takes up a dist.constrain that no user wrote.
  void addOwnConstraint(dist::ConstrainOp op) {
    ownConstraints.insert(op);
    add(op);
  }
  /// Visits an op again whose operands were replaced.
  void revisit(mlir::Operation *op) { enqueue(op); }

  mlir::func::FuncOp getFunction() const { return function; }
  const LinkedMesh &getMesh() const { return mesh; }

private:
  /// A request that enters with its priority.
  struct ShardingRequest {
    mlir::Value value;
    unsigned dim;
    AxisList axes;
    std::string what; ///< the value and its dimension, for diagnostics
  };
  enum Level : unsigned { PassThrough, Agreement, Resolution };

  mlir::LogicalResult seed();
  mlir::LogicalResult seedArguments();
  mlir::LogicalResult seedOps();
  mlir::LogicalResult checkResultShardings();
  void constrainExplicitResults();
  mlir::LogicalResult seedValue(mlir::Value value, mlir::ArrayAttr axisNames,
                                const llvm::Twine &what, mlir::Location loc);
  mlir::LogicalResult fix(mlir::Value value, dist::ShardingAttr sharding, const llvm::Twine &what,
                          mlir::Location loc);
  void enter(const ShardingRequest &request);
  /// Says that a dimension is padded where it is. `what` names it.
  void remarkPadding(mlir::Value value, unsigned dim, const llvm::Twine &what);
  void enqueue(mlir::Operation *op);
  void enqueueAround(mlir::Value value);
  void visitAll();
  /// Lets the dimensions that are split over microbatches take their axes before all others: what
  /// is split over devices and then over microbatches can lie in no other way, because nothing is
  /// gathered over microbatches.
  void propagateTimeFirst();
  void visit(mlir::Operation *op, Level level);
  void settle(mlir::Operation *op, const ShardingRule &rule, llvm::ArrayRef<FactorTensor> tensors,
              FactorAxes &committed);
  bool decomposeSplitOps();
  mlir::LogicalResult checkWholeFactors();
  std::vector<mlir::Value> tensorsOf(mlir::Operation *op) const;

  mlir::func::FuncOp function;
  const LinkedMesh &mesh;
  const LogicalAxisMap &logicalAxes;
  ReshardCache planner;
  RuleCache rules;
  llvm::DenseMap<mlir::Value, Layout> layouts;
  /// Dimensions to which no axes are appended; absent where all are open.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<bool, 4>> closed;
  /// Values whose sharding the user wrote, with the place.
  llvm::DenseMap<mlir::Value, mlir::Location> fixed;
  /// Constraints that stand for a sharding written on an op's result.
  llvm::DenseSet<mlir::Operation *> ownConstraints;
  /// Logical axes, with sizes, for which a warning has said that some shards are empty.
  std::set<std::pair<std::string, int64_t>> warned;
  std::map<int64_t, std::vector<ShardingRequest>> requests;
  /// The decided axes of each op.
  llvm::DenseMap<mlir::Operation *, FactorAxes> committed;
  llvm::DenseMap<mlir::Operation *, unsigned> numbers;
  std::vector<mlir::Operation *> ops;               ///< by number; null where erased
  std::set<std::pair<unsigned, unsigned>> worklist; ///< level, number
};

} // namespace dtc

#endif // DTC_COMPILER_PASSES_SHARDING_PROPAGATION_H
