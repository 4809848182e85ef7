//===- CompileModel.h - From the text of a model to a plan ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PYTHON_NATIVE_COMPILEMODEL_H
#define DTC_PYTHON_NATIVE_COMPILEMODEL_H

#include "compiler/planner/SearchProgress.h"
#include "plan/plan.pb.h"
#include "support/Error.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dtc::python {

/// The request that dtc-import and dtc-compile would get as flags.
struct CompileRequest {
  std::string text;      ///< a captured PyTorch model, or model IR
  std::string fileName;  ///< of the text, for messages
  std::string modelName; ///< that of the plan
  /// Names of options in OptionTable.h, such as "microbatches", and their values as the flags have
  /// them. A list is separated by commas, or has its name several times. The mesh "auto" is
  /// searched; "set" and "alternatives" then have the meaning of a search's flags.
  std::vector<std::pair<std::string, std::string>> options;
  /// How many devices there are. 0: as many as the mesh or the cluster has, or without both
  /// `processes`, those that a launcher has started.
  int64_t devices = 0, processes = 1;
  /// The file of the cluster that the plan is for; empty: none, and a search is for virtual devices
  /// (examples/clusters/virtual-cpu.textproto).
  std::string cluster;
};

struct CompiledModel {
  std::shared_ptr<const plan::Plan> plan;
  /// The other messages that the tools would print, a line each.
  std::vector<std::string> warnings, remarks;
  /// The time and the memory of the plan on the cluster, by a search or a simulation; empty without
  /// both.
  std::string onCluster;
  /// Of a search: the strategies considered, as dtc-compile prints them, and the chosen one,
  /// as a file for dtc-compile --strategy. Else empty.
  std::string search, strategy;
};

/// Imports the text if it is a captured model, and compiles it, with a mesh that a search may have
/// chosen, which `report` is told of and may end. The error has the diagnostics, with the places in
/// the model, as the tools print them.
Expected<CompiledModel> compileModel(const CompileRequest &request, const ProgressCallback &report);

} // namespace dtc::python

#endif // DTC_PYTHON_NATIVE_COMPILEMODEL_H
