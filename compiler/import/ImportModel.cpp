//===- ImportModel.cpp - From a configuration to model IR -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/ImportModel.h"

#include "compiler/import/Family.h"

#include "mlir/IR/Verifier.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <cmath>

using namespace dtc;

/// Reports a batch of more elements than tensors may have.
static void checkBatch(const ImportOptions &options, llvm::StringRef samples,
                       llvm::StringRef positions, ImportLog &log) {
  if (options.batch < 1 || options.seq < 1 || options.batch > kMaxTokens / options.seq)
    log.errors.push_back("a batch of " + std::to_string(options.batch) + " " + samples.str() +
                         " of " + std::to_string(options.seq) + " " + positions.str() +
                         ", expected from 1 to " + std::to_string(kMaxTokens) + " " +
                         positions.str() + " in a batch");
}

int64_t ImportOptions::expertCapacity(int64_t experts, int64_t selected) const {
  if (!capacityFactor)
    return seq;
  double even = double(seq) * double(selected) / double(experts);
  return std::clamp(int64_t(std::ceil(*capacityFactor * even)), int64_t{1}, seq);
}

std::vector<llvm::StringRef> dtc::getKnownModelTypes() {
  std::vector<llvm::StringRef> names;
  for (const Family &family : allFamilies())
    names.push_back(family.modelType);
  return names;
}

mlir::OwningOpRef<mlir::ModuleOp> dtc::importModel(mlir::MLIRContext &context,
                                                   llvm::StringRef config, llvm::StringRef fileName,
                                                   const ImportOptions &options, ImportLog &log) {
  ConfigReader reader(config, fileName, log);
  if (options.seq != 0)
    checkBatch(options, "sequences", "tokens", log);
  if (reader.hasErrors())
    return nullptr;

  std::string known = llvm::join(getKnownModelTypes(), ", ");
  if (!reader.has("model_type")) {
    reader.error("'model_type' is missing, expected one of " + known);
    return nullptr;
  }
  std::string name = reader.getString("model_type", "");
  if (reader.hasErrors())
    return nullptr;
  const auto *family =
      llvm::find_if(allFamilies(), [&](const Family &each) { return each.modelType == name; });
  if (family == allFamilies().end()) {
    reader.error("'model_type' is \"" + name + "\", which is not known, expected one of " + known +
                 "; a model of another type can be written by hand as model IR");
    return nullptr;
  }

  if (family->input == InputKind::Tokens && options.seq == 0) {
    reader.error("models of type \"" + name +
                 "\" read tokens, and the number of tokens in a "
                 "sequence is not given; give it with --seq");
    return nullptr;
  }

  ImportOptions complete = options;
  TransformerConfig decoder = readTransformer(reader, *family, complete);
  if (family->input == InputKind::Images)
    checkBatch(complete, "images", "positions", log);
  if (options.capacityFactor && !decoder.experts)
    reader.error("models of type \"" + name + "\" have no experts; leave " +
                 (options.mustFit ? "--expert-bound" : "--expert-capacity") + " out");
  if (options.expertMetrics && !decoder.experts)
    reader.error("models of type \"" + name + "\" have no experts; leave --expert-metrics out");
  if (options.balanceLoss && !decoder.experts)
    reader.error("models of type \"" + name + "\" have no experts; leave --balance-loss out");
  mlir::OwningOpRef<mlir::ModuleOp> module;
  if (!reader.hasErrors())
    module = buildTransformer(context, reader, *family, decoder, complete);
  reader.warnAboutUnknownFields();
  if (module && failed(mlir::verify(*module))) {
    reader.error("the imported model is not valid; this is a bug of dtc-import");
    return nullptr;
  }
  return module;
}
