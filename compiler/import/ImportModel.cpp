//===- ImportModel.cpp - From a configuration to model IR -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/ImportModel.h"

#include "compiler/import/ModelTypes.h"

#include "mlir/IR/Verifier.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace dtc;
using nlohmann::json;

namespace {

struct ModelType {
  llvm::StringLiteral name;
  ModelImporter *import;
};

} // namespace

static constexpr ModelType kModelTypes[] = {
    {"gpt2", importGpt2},
    {"llama", importLlama},
};

std::vector<llvm::StringRef> dtc::getKnownModelTypes() {
  std::vector<llvm::StringRef> names;
  for (const ModelType &type : kModelTypes)
    names.push_back(type.name);
  return names;
}

mlir::OwningOpRef<mlir::ModuleOp> dtc::importModel(mlir::MLIRContext &context,
                                                   llvm::StringRef config, llvm::StringRef fileName,
                                                   const ImportOptions &options, ImportLog &log) {
  ConfigReader reader(config, fileName, log);
  if (options.batch < 1 || options.seq < 1 || options.batch > kMaxTokens / options.seq)
    log.errors.push_back("a batch of " + std::to_string(options.batch) + " sequences of " +
                         std::to_string(options.seq) + " tokens, expected from 1 to " +
                         std::to_string(kMaxTokens) + " tokens in a batch");
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
  const auto *type = llvm::find_if(kModelTypes, [&](const ModelType &t) { return t.name == name; });
  if (type == std::end(kModelTypes)) {
    reader.error("'model_type' is \"" + name + "\", which is not known, expected one of " + known +
                 "; a model of another type can be written by hand as model IR");
    return nullptr;
  }

  mlir::OwningOpRef<mlir::ModuleOp> module = type->import(context, reader, options);
  reader.warnAboutMisspellings();
  if (module && failed(mlir::verify(*module))) {
    reader.error("the imported model is not valid; this is a bug of dtc-import");
    return nullptr;
  }
  return module;
}

//===----------------------------------------------------------------------===//
// Fields that model types share
//===----------------------------------------------------------------------===//

int64_t dtc::checkHeadSize(ConfigReader &reader, llvm::StringRef embedField, int64_t embed,
                           llvm::StringRef headsField, int64_t heads) {
  if (embed % heads == 0)
    return embed / heads;
  reader.error(reader.quote(embedField) + " is " + std::to_string(embed) +
               ", which is not a multiple of " + reader.quote(headsField) + " (" +
               std::to_string(heads) + "); every head has the same size");
  return 2;
}

void dtc::checkSequence(ConfigReader &reader, llvm::StringRef positionsField, int64_t positions,
                        const ImportOptions &options) {
  if (options.seq > positions)
    reader.error(reader.quote(positionsField) + " is " + std::to_string(positions) +
                 ", less than the sequence length " + std::to_string(options.seq) +
                 "; choose a shorter one with --seq");
}

Activation dtc::readActivation(ConfigReader &reader, llvm::StringRef field,
                               llvm::StringRef fallback) {
  return reader.getChoice<Activation>(field, fallback,
                                      {{"gelu_new", Activation::GeluTanh},
                                       {"gelu_pytorch_tanh", Activation::GeluTanh},
                                       {"gelu_fast", Activation::GeluTanh},
                                       {"gelu", Activation::Gelu},
                                       {"relu", Activation::Relu},
                                       {"silu", Activation::Silu},
                                       {"swish", Activation::Silu},
                                       {"tanh", Activation::Tanh},
                                       {"sigmoid", Activation::Sigmoid}});
}

void dtc::checkCommonFields(ConfigReader &reader, llvm::ArrayRef<llvm::StringRef> architectures) {
  reader.requireAnyOf("architectures", architectures);
  reader.requireOneOf("add_cross_attention", {false});
  reader.requireOneOf("is_encoder_decoder", {false});
  reader.requireOneOf("pruned_heads", {json::object()});
  reader.requireOneOf("quantization_config", {});
}
