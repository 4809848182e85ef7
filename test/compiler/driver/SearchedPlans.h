//===- SearchedPlans.h - Small models and their searched plans ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_COMPILER_DRIVER_SEARCHEDPLANS_H
#define DTC_TEST_COMPILER_DRIVER_SEARCHEDPLANS_H

#include "plan/plan.pb.h"
#include "test/lib/compile/CompileAndRun.h"

#include "llvm/ADT/ArrayRef.h"

#include <optional>

namespace dtc::test {

/// A model as text of the IR, or a Hugging Face configuration.
struct SearchedModel {
  const char *name;
  std::string text;
  int64_t batch = 0, seq = 0; ///< of a configuration; 0: the text is IR

  mlir::OwningOpRef<mlir::ModuleOp> load(Compiler &compiler) const;
};

void PrintTo(const SearchedModel &model, std::ostream *os);

/// The plan of dtc-compile for the model; nullopt where it refuses. That fails the test, unless
/// there is a place for the diagnostics and their notes, a line each.
std::optional<plan::Plan> compileModel(const SearchedModel &model, const CompileOptions &options,
                                       std::string *diagnostics = nullptr);

/// The same passes without a search: devices keep at most these bytes for the backward pass, or all
/// of them if there are none. Nothing is recomputed then, and stages are marked even so.
std::optional<plan::Plan> lowerModel(const SearchedModel &model, CompileOptions options,
                                     llvm::ArrayRef<int64_t> keepBytes = {});

/// The largest arena of a device.
int64_t arenaOf(const plan::Plan &plan);
/// Seconds of a step by simulation.
double secondsOf(const plan::Plan &plan);
/// Floating point operations in a step, summed over the programs.
double flopsOf(const plan::Plan &plan);

/// As strategy(), with "limit=65536" (bytes) among the parts.
CompileOptions searchedStrategy(const std::string &text);

/// Two decoder layers each.
extern const SearchedModel kGpt2, kLlama;
/// Six layers for pipelines.
extern const SearchedModel kDeepLlama;
/// Layers of a matrix and a nonlinearity, of these widths in turn. With names, locations name
/// layers.
SearchedModel chain(int64_t batch, llvm::ArrayRef<int64_t> widths, bool named = false);

} // namespace dtc::test

#endif // DTC_TEST_COMPILER_DRIVER_SEARCHEDPLANS_H
