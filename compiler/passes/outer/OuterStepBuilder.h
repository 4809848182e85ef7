//===- OuterStepBuilder.h - Building the outer step of replicas ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_OUTER_OUTERSTEPBUILDER_H
#define DTC_COMPILER_PASSES_OUTER_OUTERSTEPBUILDER_H

#include "compiler/analysis/Layout.h"
#include "compiler/passes/outer/OuterPasses.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <optional>

namespace dtc {

/// A parameter that trains. The weights are its master weights, or the parameter itself.
struct TrainedWeights {
  mlir::StringAttr name;
  mlir::BlockArgument parameter, weights;
  int64_t fragment = 0;                    ///< of the outer steps that take turns
  unsigned update = 0;                     ///< the result that is the new value of the weights
  std::optional<unsigned> parameterUpdate; ///< that of the parameter, if it has master weights
  llvm::SmallVector<mlir::BlockArgument, 4> optimizerStates; ///< of the inner optimizer
};

/// The fragment of each parameter that trains, by name: the layers of all functions of the module,
/// in the order of their names, take turns, and other parameters go where least has been put so
/// far. It is the same for all layouts of a model. Fails with a diagnostic where there are fewer
/// layers and other parameters than fragments.
mlir::FailureOr<llvm::StringMap<int64_t>> assignFragments(mlir::ModuleOp module, int64_t fragments);

/// Makes the outer step of one device of a pipeline. `fragmentOf` is what assignFragments() gives.
/// `measured` are the parameters whose changes
/// the steps of the devices before it measure: those that stages share are counted once.
class OuterStepBuilder {
public:
  OuterStepBuilder(mlir::func::FuncOp function, const LinkedMesh &mesh,
                   const BuildOuterStepPassOptions &options,
                   const llvm::StringMap<int64_t> &fragmentOf, unsigned number,
                   llvm::StringSet<> &measured)
      : function(function), mesh(mesh), options(options), fragmentOf(fragmentOf), number(number),
        measured(measured), builder(function.getContext()), ret(function.front().getTerminator()) {}

  mlir::LogicalResult run();

private:
  bool hasMomentum() const { return options.step == "nesterov"; }
  bool hasMoments() const { return options.step != "mean" && !hasMomentum(); }
  void findWeights();
  mlir::BlockArgument addState(const TrainedWeights &trained, llvm::StringRef name);
  void update(mlir::BlockArgument state, mlir::Value value);
  mlir::Value splat(mlir::Value like, double value);
  mlir::Value everywhere(mlir::Value scalar, mlir::Value like);
  mlir::Value addScalarInput(llvm::StringRef name, int64_t size, const Layout &layout);
  void addClientInputs();
  mlir::Value givenFor(mlir::Value like, mlir::Value given);
  mlir::Value unlessNone(mlir::Value updated, mlir::Value old);
  mlir::Value noiseOf(const TrainedWeights &trained);
  mlir::Value averaged(const TrainedWeights &trained, mlir::Value value);
  mlir::Value meanOf(const TrainedWeights &trained, mlir::BlockArgument outer);
  mlir::Value nesterov(const TrainedWeights &trained, mlir::BlockArgument outer, mlir::Value mean);
  mlir::Value adaptive(const TrainedWeights &trained, mlir::BlockArgument outer, mlir::Value mean);
  void begin(const TrainedWeights &trained, mlir::BlockArgument outer);
  mlir::Value blended(const TrainedWeights &trained, mlir::Value outer);
  void build(const TrainedWeights &trained);
  mlir::Value squaresOf(const TrainedWeights &trained);
  void addCheck(llvm::StringRef name, mlir::Value value);
  void buildCheck();
  mlir::LogicalResult eraseRest();

  mlir::func::FuncOp function;
  const LinkedMesh &mesh;
  const BuildOuterStepPassOptions &options;
  const llvm::StringMap<int64_t> &fragmentOf;
  unsigned number; ///< of the function in the module
  llvm::StringSet<> &measured;
  mlir::OpBuilder builder;
  mlir::Operation *ret;
  mlir::Value clientWeight,
      anyClient;          ///< scalars of clients: the replica's weight; whether one has some
  mlir::Value noiseScale; ///< a scalar; null without noise
  llvm::SmallVector<TrainedWeights> weights;
  llvm::DenseMap<mlir::Attribute, mlir::BlockArgument> outerParameters; ///< those of the train step
  llvm::SmallVector<mlir::Value> results;
  llvm::SmallVector<mlir::DictionaryAttr> resultAttrs;
};

} // namespace dtc

#endif // DTC_COMPILER_PASSES_OUTER_OUTERSTEPBUILDER_H
