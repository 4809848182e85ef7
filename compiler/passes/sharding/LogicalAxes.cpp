//===- LogicalAxes.cpp - Axis maps ----------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/sharding/LogicalAxes.h"

#include "compiler/passes/sharding/ArgumentDims.h"
#include "dialects/dtc/DtcOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <set>

using namespace mlir;
using namespace dtc;

static LogicalResult parseEntry(Location loc, const LinkedMesh &mesh, StringRef entry,
                                LogicalAxis &result) {
  auto [axes, priority] = entry.split('=').second.split('@');
  bool hasPriority = entry.contains('@');
  if (hasPriority && (priority.getAsInteger(10, result.priority) || result.priority < 0))
    return emitError(loc) << "shard: '" << entry << "' has the priority '" << priority
                          << "', expected a number of at least 0";
  SmallVector<StringRef> names;
  axes.split(names, '+', -1, /*KeepEmpty=*/false);
  for (StringRef name : names) {
    AxisList found = mesh.findAll(name);
    if (found.empty()) {
      auto diagnostic = emitError(loc) << "shard: '" << entry << "' names the mesh axis '" << name
                                       << "', which does not exist; the mesh has ";
      if (mesh.axes.empty())
        return diagnostic << "no axes; give it some with --mesh";
      llvm::interleaveComma(mesh.axes, diagnostic,
                            [&](const LinkedAxis &a) { diagnostic << a.name; });
      return diagnostic;
    }
    for (unsigned axis : found) {
      if (mesh.axes[axis].pipeline)
        return emitError(loc) << "shard: '" << entry << "' splits tensors over '" << name
                              << "', the pipeline, along which devices have different layers";
      if (llvm::is_contained(result.axes, axis))
        return emitError(loc) << "shard: '" << entry << "' names axis '" << name << "' twice";
      result.axes.push_back(axis);
    }
  }
  return success();
}

LogicalResult dtc::parseLogicalAxes(Location loc, const LinkedMesh &mesh,
                                    ArrayRef<std::string> entries, bool asked,
                                    LogicalAxisMap &map) {
  for (StringRef entry : entries) {
    StringRef logical = entry.split('=').first;
    if (logical.empty() || !entry.contains('='))
      return emitError(loc) << "shard: '" << entry << "' is not of the form logical=axis+axis";
    if (map.contains(logical)) {
      if (asked)
        return emitError(loc) << "shard: '" << entry << "' maps '" << logical
                              << "' a second time; several axes of one are written as " << logical
                              << "=axis+axis";
      continue;
    }
    LogicalAxis result;
    result.asked = result.mustSplit = asked;
    if (failed(parseEntry(loc, mesh, entry, result)))
      return failure();
    map[logical] = result;
  }
  return success();
}

LogicalResult dtc::completeBatch(ModuleOp module, Location loc, const LinkedMesh &mesh,
                                 ArrayRef<std::string> axes, LogicalAxisMap &map) {
  if (auto it = map.find(kBatchAxisName); it != map.end())
    it->second.isBatch = true;
  // Of a model that names its batch, other inputs need have none.
  std::optional<int64_t> samples;
  auto forInputs = [&](auto visit) {
    for (auto function : module.getOps<func::FuncOp>())
      for (unsigned i = 0, e = function.getNumArguments(); i < e; ++i) {
        auto names = function.getArgAttrOfType<ArrayAttr>(i, DtcDialect::kAxesAttrName);
        auto type = dyn_cast<RankedTensorType>(function.getArgumentTypes()[i]);
        if (names && !names.empty() && type && type.getRank() > 0 &&
            function.getArgAttr(i, DtcDialect::kInputAttrName))
          visit(cast<StringAttr>(names[0]).getValue(), type.getDimSize(0));
      }
  };
  forInputs([&](StringRef first, int64_t size) {
    if (first == kBatchAxisName)
      samples = size;
  });
  forInputs([&](StringRef first, int64_t size) {
    if (auto it = map.find(first);
        it != map.end() && namesArgumentDims(first) && (!samples || *samples == size))
      it->second.isBatch = true;
  });
  for (const std::string &name : axes) {
    AxisList found = mesh.findAll(name);
    if (found.empty())
      return emitError(loc) << "the batch is split over the mesh axis '" << name
                            << "', which does not exist";
    for (auto &entry : map)
      if (entry.second.isBatch)
        for (unsigned axis : found)
          if (!llvm::is_contained(entry.second.axes, axis))
            entry.second.axes.push_back(axis);
  }
  return success();
}

LogicalResult dtc::checkLogicalAxesExist(ModuleOp module, Location loc, const LogicalAxisMap &map) {
  std::set<StringRef> known; // sorted, for the message
  auto collect = [&](ArrayAttr names) {
    if (names)
      for (auto name : names.getAsRange<StringAttr>())
        if (!name.empty())
          known.insert(name.getValue());
  };
  for (auto function : module.getOps<func::FuncOp>()) {
    for (unsigned i = 0, e = function.getNumArguments(); i < e; ++i)
      collect(function.getArgAttrOfType<ArrayAttr>(i, "dtc.axes"));
    function.walk([&](Operation *op) { collect(op->getAttrOfType<ArrayAttr>("dtc.axes")); });
  }
  std::set<StringRef> unknown;
  for (const auto &entry : map)
    if (entry.second.asked && !known.count(entry.first()))
      unknown.insert(entry.first());
  for (StringRef name : unknown) {
    auto diagnostic = emitError(loc) << "shard: the model has no logical axis '" << name << "'";
    if (known.empty()) {
      diagnostic << "; it names none (dtc.axes names the dimensions of parameters and inputs)";
      continue;
    }
    diagnostic << "; it has ";
    llvm::interleaveComma(known, diagnostic, [&](StringRef other) { diagnostic << other; });
  }
  return success(unknown.empty());
}
