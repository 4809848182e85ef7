//===- PlannerCases.h - Small models and clusters for the planner ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_LIB_COMPILE_PLANNERCASES_H
#define DTC_TEST_LIB_COMPILE_PLANNERCASES_H

#include "compiler/import/ImportModel.h"
#include "compiler/planner/Planner.h"
#include "simulator/cluster/cluster.pb.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <cstdint>
#include <memory>
#include <string>

namespace dtc::test {

/// A context that has all of dtc's dialects and collects diagnostics.
class PlannerContext {
public:
  PlannerContext();
  mlir::MLIRContext &context() { return *mlirContext; }
  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &text);
  const std::string &diagnostics() const { return messages; }

private:
  std::string messages;
  std::unique_ptr<mlir::MLIRContext> mlirContext;
};

/// A model of a type that dtc-import knows; sizes are powers of two.
struct PlannedModel {
  const char *name = "gpt2"; ///< or "llama"
  int64_t layers = 4, hidden = 64, batch = 16, seq = 32, heads = 4, vocab = 256;

  std::string config() const; ///< config.json
  std::string str() const;
};

/// Null where the configuration is wrong.
mlir::OwningOpRef<mlir::ModuleOp> importCase(PlannerContext &compiler, const PlannedModel &model);

/// Takes the names of all dimensions out of a model.
void removeNames(mlir::ModuleOp model);

/// Nodes of devices of 64 MB and 160 GFLOP/s, on which small models take milliseconds.
cluster::Cluster smallCluster(int64_t nodes, int64_t devicesOfNode);

/// A node of smallCluster() and one whose devices, "fast", are `times` times as fast, in that
/// order.
cluster::Cluster mixedCluster(int64_t devicesOfNode, double times);

/// A model, a cluster and options that leave few strategies.
struct PlannedCase {
  uint64_t seed = 0;
  PlannedModel model;
  cluster::Cluster cluster;
  PlannerOptions options; ///< the user sets `cluster`

  std::string str() const;
};

/// From the seed alone: bandwidths, latencies, rates, memory and the number of devices, at most
/// `mostDevices`, and fixed options with which about 20 to 60 strategies remain.
PlannedCase randomCase(uint64_t seed, int64_t mostDevices);

/// The result of a search and the best strategy.
struct Regret {
  int64_t strategies = 0, compiled = 0, fitting = 0; ///< of all; that compile; and fit
  int64_t simulated = 0;                             ///< by the planner
  double chosen = 0, best = 0;                       ///< seconds of a step; 0: nothing fits
  std::string chosenStrategy, bestStrategy;

  double share() const { return best > 0 && chosen > 0 ? chosen / best - 1 : 0; }
};

/// Plans a case, and compiles and simulates every strategy.
Expected<Regret> findRegret(const PlannedCase &planned);

} // namespace dtc::test

#endif // DTC_TEST_LIB_COMPILE_PLANNERCASES_H
