//===- CompileCommand.h - The command dtc-compile -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_DTC_COMPILE_COMPILECOMMAND_H
#define DTC_TOOLS_DTC_COMPILE_COMPILECOMMAND_H

#include "compiler/driver/CompileOptions.h"
#include "plan/plan.pb.h"
#include "report/html/SimulationPage.h"
#include "simulator/cluster/cluster.pb.h"
#include "support/Error.h"
#include "tools/dtc-compile/PlannerFlags.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/SourceMgr.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace dtc {

/// One run of dtc-compile: its flags, and the work that they ask for. Its own error comes after the
/// diagnostics of the model; where it fails, no plan is written.
class CompileCommand {
public:
  /// Adds the flags, which set what run() works with.
  explicit CompileCommand(CLI::App &app);

  MaybeError run();

private:
  bool isGiven(const std::string &flag) const { return app.count(flag) > 0; }
  MaybeError readFiles();
  MaybeError nameOutputs();
  MaybeError checkOptions(mlir::ModuleOp module) const;
  Expected<PlannerResult> search(mlir::ModuleOp module);
  MaybeError compileModule(mlir::ModuleOp module, plan::Plan &plan);
  MaybeError checkBudget(const plan::Plan &plan) const;
  MaybeError reportOnCluster(const plan::Plan &plan) const;
  struct ElasticPlan {
    std::string path;
    plan::Plan plan;
  };
  MaybeError compileForFewer(mlir::ModuleOp model, std::vector<ElasticPlan> &plans);

  CLI::App &app;
  std::string input, output, budgetText;
  std::string alsoForText, elasticFolder; // --also-for, and where its plans go
  bool printsIr = false, printsTiming = false, printsRemarks = false;
  CompileOptions options;
  PlannerArguments planning;
  bool searches = false; // a strategy
  std::optional<cluster::Cluster> cluster;
  SimulationPageOptions page;
};

} // namespace dtc

#endif // DTC_TOOLS_DTC_COMPILE_COMPILECOMMAND_H
