//===- StrategySearch.h - A search as its user asks for it ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The request for a search, from the flags of dtc-compile or the arguments of dtc.compile(), with
// its checks and its result. Planner.h searches.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PLANNER_STRATEGYSEARCH_H
#define DTC_COMPILER_PLANNER_STRATEGYSEARCH_H

#include "compiler/driver/OptionTable.h"
#include "compiler/planner/Planner.h"
#include "simulator/cluster/cluster.pb.h"
#include "support/Error.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace dtc {

/// The request of a user to a search, beside the options of the compilation.
struct SearchRequest {
  int64_t devices = 0; ///< of the cluster, the first ones; 0: all
  /// Sizes of axes and options that are fixed: "pp=4", "zero=1".
  std::vector<std::string> set;
  /// The names of the options that the user gives a value. Those that a search chooses are fixed.
  std::set<std::string> given;
  size_t alternatives = 10; ///< that the text about the choice has
  OptionSpelling spelling = OptionSpelling::Flag;
};

/// The strategy that was chosen.
struct StrategyChoice {
  PlannerResult result; ///< `best` is not empty
  PlannerOptions asked;
  std::string report; ///< formatChoice()
};

/// The only function of a model has a body. What is wrong with other models, compile() says.
bool hasOneBody(mlir::ModuleOp module);
/// The model declares its mesh, so that no options can.
bool hasOwnMesh(mlir::ModuleOp module);

/// The error of what cannot be asked for together with a search: options that are for one mesh, or
/// a mode for which nothing is searched.
MaybeError checkSearch(const SearchRequest &request, const CompileOptions &options);

/// The error of a mesh that has not as many devices as are asked for.
MaybeError checkDevices(const MeshSizes &mesh, const SearchRequest &request);

/// Gives a cluster nodes for all devices that are asked for (see extendCluster()), and limits the
/// memory that plans may use on each device to `memoryLimit` bytes; 0: no limit.
MaybeError fitCluster(cluster::Cluster &cluster, const SearchRequest &request, int64_t memoryLimit);

/// Searches the strategy of a model that hasOneBody() on a cluster that fitCluster() has made,
/// which must outlive the result, as the context of the model must. An error too if no strategy
/// fits; it has several lines then. `report` may end the search, which is an error as well. The
/// rest of the compilation is finishCompile().
Expected<StrategyChoice> searchStrategy(
    mlir::ModuleOp model, llvm::StringRef name, const CompileOptions &options,
    const SearchRequest &request, const cluster::Cluster &cluster,
    const ProgressCallback &report = [](const PlannerProgress &) { return true; });

} // namespace dtc

#endif // DTC_COMPILER_PLANNER_STRATEGYSEARCH_H
