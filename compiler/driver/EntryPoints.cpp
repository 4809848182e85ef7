//===- EntryPoints.cpp - The functions that a plan offers -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/EntryPoints.h"

#include "compiler/driver/GradientCompression.h"
#include "dialects/dist/Dist.h"
#include "dialects/exec/Exec.h"
#include "support/OuterEntries.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace dtc;

std::vector<EntryPoint> dtc::entryPointsOf(const ResolvedOptions &options) {
  std::vector<EntryPoint> entries = {{"", options}};
  auto addOuter = [&](std::string name) -> ResolvedOptions & {
    entries.push_back({std::move(name), options});
    entries.back().options.isOuterStep = true;
    return entries.back().options;
  };
  if (!options.outer.empty() && !streamsOuterSteps(options))
    addOuter(kOuterStepEntry);
  for (int64_t fragment = 0; streamsOuterSteps(options) && fragment < options.outerFragments;
       ++fragment) {
    const std::string number = std::to_string(fragment);
    for (auto [name, part] :
         {std::pair(kOuterTakeEntry + number, "take"), std::pair(kOuterSendEntry + number, "send"),
          std::pair(kOuterApplyEntry + number + kOuterDelay + std::to_string(options.outerDelay),
                    "apply")}) {
      ResolvedOptions &added = addOuter(name);
      added.outerFragment = fragment;
      added.outerPart = part;
    }
  }
  const bool hasOptimizer = !options.outer.empty() && options.outerStep != "mean";
  if (hasOptimizer || streamsOuterSteps(options) || options.clients || options.proximal > 0 ||
      outerCompressionOf(options)) {
    entries.push_back({kOuterBeginEntry, options});
    entries.back().options.isOuterBegin = true;
  }
  if (options.clients) {
    entries.push_back({kOuterCheckEntry, options});
    entries.back().options.isOuterCheck = true;
  }
  if (options.mode == CompileMode::Train)
    entries.push_back({"evaluate", options, /*isEvaluation=*/true, /*isOptional=*/true});
  if (options.mode == CompileMode::Generate) {
    entries.push_back({"decode", options});
    entries.back().options.decodes = true;
  }
  return entries;
}

void dtc::addPrograms(ModuleOp module, ModuleOp from, StringRef entryPoint) {
  auto entry = StringAttr::get(module.getContext(), entryPoint);
  for (auto program : llvm::make_early_inc_range(from.getOps<exec::ProgramOp>())) {
    program.setEntryAttr(entry);
    program->moveBefore(module.getBody(), module.getBody()->end());
  }
}

MaybeError dtc::findStaleState(ModuleOp train, ModuleOp other) {
  llvm::StringSet<> updated;
  SmallVector<llvm::StringSet<>> held; // by coordinate
  for (auto program : train.getOps<exec::ProgramOp>()) {
    for (auto update : program.getOps<exec::UpdateOp>())
      updated.insert(update.getStateName());
    llvm::StringSet<> &names = held.emplace_back();
    for (auto state : program.getOps<exec::StateOp>())
      names.insert(state.getStateName());
  }
  for (auto [coordinate, program] : llvm::enumerate(other.getOps<exec::ProgramOp>()))
    for (auto state : program.getOps<exec::StateOp>())
      if (StringRef name = state.getStateName();
          coordinate < held.size() && updated.contains(name) && !held[coordinate].contains(name))
        return Error{("the loss alone needs '" + name + "' on device " + Twine(coordinate) +
                      " of the pipeline, where the train step neither has nor updates it")
                         .str()};
  return std::nullopt;
}

std::vector<int64_t> dtc::stageStartsOf(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>())
    if (auto starts = function->getAttrOfType<DenseI64ArrayAttr>(dist::kStageStartsAttrName))
      return starts.asArrayRef().vec();
  return {};
}
