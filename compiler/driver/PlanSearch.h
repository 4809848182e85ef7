//===- PlanSearch.h - The fastest plan that fits --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_DRIVER_PLANSEARCH_H
#define DTC_COMPILER_DRIVER_PLANSEARCH_H

#include "compiler/driver/Pipeline.h"
#include "compiler/passes/recompute/RecomputeActivations.h"
#include "plan/plan.pb.h"
#include "simulator/Simulation.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/STLExtras.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dtc {

/// Runs passes over a module and verifies what comes out.
mlir::LogicalResult runPasses(mlir::ModuleOp module,
                              llvm::function_ref<void(mlir::OpPassManager &)> addPasses);

/// The first line of the first error of some diagnostics, after its place in a file or else the
/// name there; where none is an error, that a pass failed.
std::string firstErrorOf(llvm::ArrayRef<mlir::Diagnostic> diagnostics);

/// Writes into a plan what the model, as it is before any pass, says of itself.
void describeModel(mlir::ModuleOp model, const CompileOptions &options, plan::Plan &plan);

/// A program that was taken the whole road.
struct Candidate {
  ResolvedOptions options;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<int64_t> arenas;    ///< of each program, bytes
  std::vector<DeviceKeeps> keeps; ///< of each device of a pipeline, where something is recomputed
  std::vector<mlir::Diagnostic> diagnostics;
  plan::Plan plan;                               ///< of those that run() returns
  double seconds = 0;                            ///< of a step of that plan, by simulation
  std::optional<runtime::Simulation> simulation; ///< on the cluster, if there is one

  int64_t peak() const { return *llvm::max_element(arenas); }
};

/// What a plan needs is known once memory is planned, and how long it takes once it is simulated.
/// So choices that depend on either are made by compiling the candidates: from the local view on,
/// which they share.
class PlanSearch {
public:
  /// Steps are simulated on `cluster`, which outlives the search, or without one by the estimates
  /// of the plans.
  PlanSearch(mlir::ModuleOp model, llvm::StringRef name, const cluster::Cluster *cluster = nullptr)
      : model(model), name(name.str()), cluster(cluster) {}
  /// The best candidate; nullopt, with `closest` set where something compiled, where none fits.
  std::optional<Candidate> run(const ResolvedOptions &options);

  std::optional<Candidate> closest;      ///< of those that do not fit, the one that needs least
  std::vector<mlir::Diagnostic> failure; ///< of what did not compile
  /// What was said of a program before it was lowered.
  std::vector<mlir::Diagnostic> &partitionDiagnostics(const ResolvedOptions &options) {
    return frontOf(options).diagnostics;
  }

  /// The local view that a candidate with these options was lowered from. After it, no more
  /// candidates are.
  mlir::OwningOpRef<mlir::ModuleOp> takePartitioned(const ResolvedOptions &options) {
    return std::move(frontOf(options).module);
  }

private:
  /// The local view, shared by what differs in what follows; null where it did not compile.
  mlir::ModuleOp partitioned(const ResolvedOptions &options);
  /// Takes it to planned memory.
  std::optional<Candidate> lower(const ResolvedOptions &options,
                                 llvm::ArrayRef<int64_t> keepBytes = {});
  /// Adds the plan and how long it takes.
  std::optional<Candidate> finish(std::optional<Candidate> candidate);
  std::optional<Candidate> fit(const ResolvedOptions &options);
  std::optional<Candidate> recomputeLeast(const ResolvedOptions &options);
  std::optional<Candidate> keepIfFits(std::optional<Candidate> candidate);

  mlir::ModuleOp model;
  std::string name;
  const cluster::Cluster *cluster;
  struct Front {
    bool isMade = false;
    mlir::OwningOpRef<mlir::ModuleOp> module;
    std::vector<mlir::Diagnostic> diagnostics;
  };
  Front &frontOf(const ResolvedOptions &options) {
    return fronts[{chunksOf(options), options.recompute != Recompute::None}];
  }
  /// Keeps what was said of the first candidate that did not compile.
  void noteFailure(std::vector<mlir::Diagnostic> &diagnostics) {
    if (failure.empty())
      failure = std::move(diagnostics);
  }
  /// By chunks, and whether something is recomputed.
  std::map<std::pair<int64_t, bool>, Front> fronts;
};

/// Does the rest of what compile() does with a candidate's options, which is most of the work: puts
/// the candidate, which `search` made, in the place of the model in `module`, adds its evaluation
/// and writes the plan. `search` makes no more candidates.
mlir::LogicalResult finishCompile(mlir::ModuleOp module, PlanSearch &search, Candidate &candidate,
                                  llvm::StringRef modelName, plan::Plan &plan);

} // namespace dtc

#endif // DTC_COMPILER_DRIVER_PLANSEARCH_H
