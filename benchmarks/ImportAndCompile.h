//===- ImportAndCompile.h - From a configuration to a plan ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_BENCHMARKS_IMPORTANDCOMPILE_H
#define DTC_BENCHMARKS_IMPORTANDCOMPILE_H

#include "compiler/driver/PassPipeline.h"
#include "compiler/import/ImportModel.h"
#include "support/Error.h"

#include "mlir/IR/MLIRContext.h"

#include <memory>
#include <string>

namespace dtc::benchmarks {

/// A plan and what making it cost.
struct CompiledModel {
  std::shared_ptr<plan::Plan> plan;
  double importSeconds = 0;  // from the configuration's text to model IR
  double compileSeconds = 0; // from model IR to the plan
};

/// A model as it was imported, on one thread.
class ImportedModel {
public:
  /// `config` is the text of a Hugging Face configuration, `fileName` what errors call it, and
  /// `name` what plans do.
  static Expected<std::unique_ptr<ImportedModel>> create(const std::string &config,
                                                         const std::string &fileName,
                                                         const std::string &name,
                                                         const ImportOptions &options);

  mlir::ModuleOp module() { return *ownedModule; }
  /// Compiles it, once: the module does not survive.
  Expected<CompiledModel> compile(const CompileOptions &options);

private:
  ImportedModel(const std::string &fileName, const std::string &name);

  std::string fileName, name, messages;
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> ownedModule;
  double importSeconds = 0;
};

/// Imports a Hugging Face configuration file and compiles it, on one thread.
Expected<CompiledModel> importAndCompile(const std::string &configPath,
                                         const ImportOptions &importOptions,
                                         const CompileOptions &compileOptions);

} // namespace dtc::benchmarks

#endif // DTC_BENCHMARKS_IMPORTANDCOMPILE_H
