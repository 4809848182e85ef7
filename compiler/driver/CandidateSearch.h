//===- CandidateSearch.h - Search for the fastest candidate that fits -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_DRIVER_CANDIDATESEARCH_H
#define DTC_COMPILER_DRIVER_CANDIDATESEARCH_H

#include "compiler/driver/EntryPoints.h"
#include "compiler/driver/PassPipeline.h"
#include "compiler/passes/recompute/RecomputeActivations.h"
#include "plan/plan.pb.h"
#include "simulator/Simulation.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/STLExtras.h"

#include <atomic>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace dtc {

class KnownTrials;

/// Runs passes over a module and verifies what comes out.
mlir::LogicalResult runPasses(mlir::ModuleOp module,
                              llvm::function_ref<void(mlir::OpPassManager &)> addPasses);

/// Takes a model to the local view of the whole function. `verifies`: the result is verified.
mlir::LogicalResult partitionModel(mlir::ModuleOp model, const ResolvedOptions &options,
                                   bool verifies = true);

/// Takes the local view of an entry point to exec IR; null after errors. The values kept for the
/// backward pass are added to `keeps`; `keepBytes`: see dtc-recompute-activations. `verifies`: the
/// result is verified.
mlir::OwningOpRef<mlir::ModuleOp>
lowerEntryPoint(const EntryPoint &entry, mlir::OwningOpRef<mlir::ModuleOp> module, bool plansMemory,
                llvm::ArrayRef<int64_t> keepBytes, std::vector<DeviceSavedBytes> &keeps,
                bool verifies = true);

/// The first line of the first error of some diagnostics, after its place in a file or else the
/// name there; where none is an error, that a pass failed.
std::string firstErrorOf(llvm::ArrayRef<mlir::Diagnostic> diagnostics);

/// Writes into a plan what the model, as it is before any pass, says of itself.
void describeModel(mlir::ModuleOp model, const CompileOptions &options, plan::Plan &plan);

/// The exec IR of one combination of options: the programs of all entry points that a plan of the
/// mode cannot do without, their memory planned together.
struct Candidate {
  ResolvedOptions options;
  std::vector<int64_t> keepBytes; ///< see dtc-recompute-activations
  /// Null while it is only a trial: see CandidateSearch::withModule().
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<int64_t> arenas; ///< of each program, bytes
  std::vector<DeviceSavedBytes>
      keeps; ///< of each device of a pipeline, where something is recomputed
  std::vector<mlir::Diagnostic> diagnostics;
  // Only candidates that were measured have:
  plan::Plan plan;
  double seconds = 0;                   ///< of a step of that plan, by simulation
  std::optional<Simulation> simulation; ///< on the cluster, if there is one

  int64_t peak() const { return *llvm::max_element(arenas); }
};

/// Compiles a model to exec IR. The memory of a candidate is known after memory planning, and its
/// time after simulation. So choices that depend on either are made by compiling the candidates,
/// from the local view on, which they share. Options that leave no choice have one candidate.
class CandidateSearch {
public:
  /// Steps are simulated on `cluster`, which outlives the search, or without one by the estimates
  /// of the plans.
  CandidateSearch(mlir::ModuleOp model, llvm::StringRef name,
                  const cluster::Cluster *cluster = nullptr)
      : model(model), name(name.str()), cluster(cluster) {}

  /// The best candidate; nullopt, with `closest` set where something compiled, where none fits.
  /// Only where candidates are compared by their time, they are measured.
  std::optional<Candidate> choose(const ResolvedOptions &options);
  /// The same, measured.
  std::optional<Candidate> run(const ResolvedOptions &options);

  /// The candidate with its module; nullopt after an error.
  std::optional<Candidate> withModule(Candidate candidate);

  /// Emits the diagnostics of the candidate, and adds the entry points that a plan can do without.
  /// A warning says why one is left out that does not compile or does not fit. The search makes no
  /// more candidates.
  mlir::LogicalResult complete(Candidate &candidate);

  /// Emits why nothing compiled.
  void emitFailure();

  /// Where a candidate that recomputes is of use only if its step takes fewer seconds: the search
  /// ends with none, and with `leastSeconds`, where the step takes as long without recomputation.
  double slowest = std::numeric_limits<double>::infinity();
  std::optional<double> leastSeconds;
  /// The seconds without recomputation in any case, where `slowest` is finite and that plan is too
  /// large.
  std::optional<double> boundSeconds;
  /// Where it falls to `boundSeconds` while the search recomputes, the search ends as `slowest` has
  /// it.
  const std::atomic<double> *slowestNow = nullptr;
  /// Whether run() proves that a runtime would take the plan, which its user must do otherwise.
  bool provesPlan = true;
  /// Whether modules are verified once passes have made them. If not, the user of a candidate must
  /// verify its module.
  bool verifies = true;
  /// Where it becomes true the search ends soon, with no candidate and no reason.
  const std::atomic<bool> *isEnding = nullptr;

  /// Of those that do not fit, the one that needs least. It may be without a module.
  std::optional<Candidate> closest;
  std::vector<mlir::Diagnostic> failure; ///< of the first that did not compile

private:
  /// The local view of an entry point, shared by the candidates that differ in what follows.
  struct PartitionedModel {
    bool isMade = false;
    mlir::OwningOpRef<mlir::ModuleOp> module; ///< null where it did not compile
    std::vector<mlir::Diagnostic> diagnostics;
  };

  PartitionedModel &partitionedModelOf(const ResolvedOptions &options) {
    return partitionedModels[{chunksOf(options), options.recompute != Recompute::None,
                              options.decodes}];
  }
  /// Makes it where it is not made; null where it does not compile.
  mlir::ModuleOp partitioned(const ResolvedOptions &options);
  std::optional<Candidate> lower(const ResolvedOptions &options,
                                 llvm::ArrayRef<int64_t> keepBytes = {});
  /// A trial: what lower() makes, but the module. Lowers only the devices whose functions are not
  /// known.
  std::optional<Candidate> tryKeeping(const ResolvedOptions &options,
                                      llvm::ArrayRef<int64_t> keepBytes, KnownTrials &knownTrials);
  /// Adds an entry point that the plan can do without, unless it returns why not.
  mlir::FailureOr<MaybeError> addOptional(Candidate &candidate, const EntryPoint &entry);
  /// Adds the plan; false, with `failure` set, where there is none.
  bool addPlan(Candidate &candidate);
  /// Adds how long the plan takes.
  void addSeconds(Candidate &candidate);
  /// Adds the plan and how long it takes. False, with `failure` set, where no runtime would take
  /// it.
  bool measure(Candidate &candidate);
  /// Whether the step of the candidate, which recomputes least, takes too long.
  bool isTooSlow(Candidate &candidate);
  std::optional<Candidate> fit(const ResolvedOptions &options);
  std::optional<Candidate> recomputeLeast(const ResolvedOptions &options);
  std::optional<Candidate> chooseSchedule(const ResolvedOptions &options);
  std::optional<Candidate> keepIfFits(std::optional<Candidate> candidate);
  /// Keeps what was said of the first candidate that did not compile.
  void recordFailure(Candidate &candidate);

  mlir::ModuleOp model;
  std::string name;
  const cluster::Cluster *cluster;
  /// By chunks, whether something is recomputed, and whether it decodes.
  std::map<std::tuple<int64_t, bool, bool>, PartitionedModel> partitionedModels;
  PartitionedModel *failedModel = nullptr; ///< of the first entry point of what failed
};

/// Does the rest of what compile() does with a candidate: completes it, puts it in the place of the
/// model in `module` and writes the plan. `search`, which made it from `module`, makes no more.
mlir::LogicalResult finishCompile(mlir::ModuleOp module, CandidateSearch &search,
                                  Candidate &candidate, llvm::StringRef modelName,
                                  plan::Plan &plan);

} // namespace dtc

#endif // DTC_COMPILER_DRIVER_CANDIDATESEARCH_H
