//===- Strategy.h - Reading and writing parallel strategies ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PLANNER_STRATEGY_H
#define DTC_COMPILER_PLANNER_STRATEGY_H

#include "compiler/driver/PassPipeline.h"
#include "simulator/cluster/cluster.pb.h"
#include "support/Error.h"

#include <string>

namespace dtc {

/// The text form of what options say about the parallel strategy of a plan (docs/planning.md): a
/// field for each option of OptionTable.h that is one of a strategy. Options that have their
/// defaults are written too, so that a reader sees every option.
std::string formatStrategy(const CompileOptions &options);

/// Reads it into options, and replaces all that a strategy says. The error names the line, or the
/// field and what is wrong with it.
MaybeError parseStrategy(const std::string &text, CompileOptions &options);

/// The same for a file; the error names it too.
MaybeError readStrategy(const std::string &path, CompileOptions &options);

/// Checks that a model, and a cluster if there is one, has everything that a strategy from a file
/// asks for. The error names the field. `model` has one function with a body.
MaybeError checkStrategy(const CompileOptions &options, mlir::ModuleOp model,
                         const cluster::Cluster *cluster);

/// One line for tables: "pp=8 dp=2 tp=8 sp zero=1 m=32 interleaved v=3
/// recompute=selective". Options that have
/// their defaults are left out.
std::string describeStrategy(const CompileOptions &options);

} // namespace dtc

#endif // DTC_COMPILER_PLANNER_STRATEGY_H
