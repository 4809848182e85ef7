//===- PropagateShardings.cpp - Propagate shardings -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/Passes.h"
#include "compiler/passes/sharding/Propagation.h"
#include "compiler/passes/sharding/ZeroSharding.h"
#include "support/MeshAxes.h"

#include "llvm/ADT/StringSet.h"

namespace dtc {
#define GEN_PASS_DEF_PROPAGATESHARDINGSPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

/// Adds the names of the axes that split a value.
static void collectAxes(Value value, llvm::StringSet<> &names) {
  if (auto sharding = dist::getSharding(value))
    for (auto dim : sharding.getDims().getAsRange<ArrayAttr>())
      for (auto axis : dim.getAsRange<StringAttr>())
        names.insert(axis.getValue());
}

/// Emits a warning for each axis that splits no value of the module.
static void warnOfUnusedAxes(ModuleOp module, Location loc, const LinkedMesh &mesh) {
  llvm::StringSet<> used;
  auto collect = [&](Value value) { collectAxes(value, used); };
  module.walk([&](Operation *op) {
    llvm::for_each(op->getResults(), collect);
    if (auto function = dyn_cast<func::FuncOp>(op); function && !function.isExternal())
      llvm::for_each(function.getArguments(), collect);
  });
  for (const LinkedAxis &axis : mesh.axes) {
    if (axis.size == 1 || axis.pipeline || used.contains(axis.name))
      continue;
    // A user knows the axis that this one may be a part of.
    StringRef name = axis.subAxisOf.empty() ? axis.name : axis.subAxisOf;
    auto warning = emitWarning(loc);
    if (axis.subAxisOf.empty())
      warning << "mesh axis '" << name << "' of size " << axis.size << " splits no tensor, so ";
    else
      warning << "a part of size " << axis.size << " of mesh axis '" << name
              << "' splits no tensor, so ";
    warning << (axis.temporal ? "there are no microbatches"
                              : "all devices along it do the same work")
            << "; map a logical axis to it (--shard logical=" << name << ") or leave it out";
  }
}

/// Warns where a train step without ZeRO has the axis of sharded data parallelism, and that splits
/// neither a parameter nor another state: it does what dp does.
static void warnOfCopiedStates(func::FuncOp function, Location loc, const LinkedMesh &mesh) {
  AxisList axes = mesh.findAll(kShardedDataAxis);
  if (mesh.product(axes) == 1 || function.front().getOps<OptimizerOpInterface>().empty())
    return;
  llvm::StringSet<> used;
  for (BlockArgument arg : function.getArguments())
    if (!function.getArgAttr(arg.getArgNumber(), DtcDialect::kInputAttrName))
      collectAxes(arg, used);
  if (llvm::none_of(axes, [&](unsigned axis) { return used.contains(mesh.axes[axis].name); }))
    emitWarning(loc) << "mesh axis \"" << kShardedDataAxis
                     << "\" splits only the batch with --zero 0: parameters and states are copied "
                        "over it; add --zero 3";
}

namespace {
struct PropagateShardingsPass : dtc::impl::PropagateShardingsPassBase<PropagateShardingsPass> {
  using Base::Base;

  LogicalResult readZero(Location loc, const LinkedMesh &mesh, ZeroOptions &zero) {
    zero.stage = zeroStage;
    if (zero.stage < 0 || zero.stage > 3)
      return emitError(loc) << "zero-stage is " << zero.stage << ", expected 0 to 3";
    if (zero.stage == 0)
      return success();
    for (const std::string &name : zeroAxes) {
      AxisList found = mesh.findAll(name);
      if (found.empty())
        return emitError(loc) << "ZeRO stage " << zero.stage << " is over the mesh axis '" << name
                              << "', which does not exist; name an axis that splits the batch";
      for (unsigned axis : found)
        if (llvm::is_contained(zero.axes, axis))
          return emitError(loc) << "ZeRO stage " << zero.stage << " names the mesh axis '" << name
                                << "' twice; name each axis once";
      for (unsigned axis : found)
        if (mesh.isTemporal(axis) || mesh.axes[axis].pipeline)
          return emitError(loc) << "ZeRO stage " << zero.stage << " is over the axis '" << name
                                << "', which is "
                                << (mesh.isTemporal(axis) ? "temporal" : "the pipeline")
                                << "; states are split over devices with the same layers";
      zero.axes.append(found);
    }
    if (zero.axes.empty())
      return emitError(loc) << "ZeRO stage " << zero.stage << " has no axes; name some";
    return success();
  }

  void runOnOperation() override {
    FailureOr<dist::MeshOp> meshOp = findMesh(getOperation());
    if (failed(meshOp))
      return signalPassFailure();
    LinkedMesh mesh = getMesh(*meshOp);
    LogicalAxisMap map;
    ZeroOptions zero;
    Location loc = meshOp->getLoc();
    if (failed(parseLogicalAxes(loc, mesh, shard, /*asked=*/true, map)) ||
        failed(checkLogicalAxesExist(getOperation(), loc, map)) ||
        failed(completeBatch(getOperation(), loc, mesh, batchAxes, map)) ||
        failed(parseLogicalAxes(loc, mesh, defaultShard, /*asked=*/false, map)) ||
        failed(readZero(loc, mesh, zero)))
      return signalPassFailure();
    for (const std::string &logical : mustSplit)
      if (auto it = map.find(logical); it != map.end())
        it->second.mustSplit = true;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      Propagation propagation(function, mesh, map);
      if (failed(propagation.enterRequests()) || failed(enterZero(propagation, zero)))
        return signalPassFailure();
      propagation.fixpoint();
      if (failed(propagation.write()))
        return signalPassFailure();
      if (zero.stage == 0)
        warnOfCopiedStates(function, loc, mesh);
    }
    warnOfUnusedAxes(getOperation(), loc, mesh);
  }
};
} // namespace
