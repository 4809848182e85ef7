//===- SearchArguments.h - The devices and the search of dtc.compile() ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PYTHON_NATIVE_SEARCHARGUMENTS_H
#define DTC_PYTHON_NATIVE_SEARCHARGUMENTS_H

#include "compiler/planner/StrategySearch.h"
#include "python/native/CompileModel.h"
#include "simulator/cluster/cluster.pb.h"
#include "support/Error.h"

#include <optional>
#include <string>

namespace dtc::python {

/// The options of a request, and what its mesh, devices and cluster ask for.
struct CompileArguments {
  CompileOptions options;
  bool searches = false; ///< the mesh is "auto"
  SearchRequest search;
  /// The cluster that a search is for, or on which the plan of a given mesh is simulated.
  std::optional<cluster::Cluster> cluster;
};

/// Reads the options in their order, and the cluster. The error names the argument.
Expected<CompileArguments> readArguments(const CompileRequest &request);

/// Checks them against each other and against the model.
MaybeError checkArguments(const CompileArguments &arguments, mlir::ModuleOp module);

/// Describes the result of a search, in some lines: its devices, the choice with its time and
/// memory (formatChoice()), and the chosen options. `cluster`: the file; empty for virtual
/// devices.
std::string describeChoice(const StrategyChoice &choice, const std::string &cluster);

} // namespace dtc::python

#endif // DTC_PYTHON_NATIVE_SEARCHARGUMENTS_H
