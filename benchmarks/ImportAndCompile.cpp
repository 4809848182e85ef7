//===- ImportAndCompile.cpp - From a configuration to a plan --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/ImportAndCompile.h"

#include "plan/plan.pb.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>

using namespace dtc;
using namespace dtc::benchmarks;

static mlir::DialectRegistry allDialects() {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  return registry;
}

using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

ImportedModel::ImportedModel(const std::string &fileName, const std::string &name)
    : fileName(fileName), name(name),
      context(allDialects(), mlir::MLIRContext::Threading::DISABLED) {
  context.printOpOnDiagnostic(false); // the op may be the whole model
  context.getDiagEngine().registerHandler([this](mlir::Diagnostic &diagnostic) {
    llvm::raw_string_ostream(messages) << "\n  " << diagnostic.getLocation() << ": " << diagnostic;
    return mlir::success();
  });
}

Expected<std::unique_ptr<ImportedModel>> ImportedModel::create(const std::string &config,
                                                               const std::string &fileName,
                                                               const std::string &name,
                                                               const ImportOptions &options) {
  std::unique_ptr<ImportedModel> model(new ImportedModel(fileName, name));
  Clock::time_point begin = Clock::now();
  ImportLog log;
  model->ownedModule = importModel(model->context, config, fileName, options, log);
  model->importSeconds = secondsSince(begin);
  for (const std::string &error : log.errors)
    model->messages += "\n  " + error;
  if (!model->ownedModule)
    return Error{fileName + ": cannot import the model" + model->messages};
  return model;
}

Expected<CompiledModel> ImportedModel::compile(const CompileOptions &options) {
  CompiledModel result;
  result.plan = std::make_shared<plan::Plan>();
  result.importSeconds = importSeconds;
  Clock::time_point begin = Clock::now();
  if (failed(dtc::compile(module(), options, name, *result.plan)))
    return Error{fileName + ": cannot compile the model" + messages};
  result.compileSeconds = secondsSince(begin);
  return result;
}

Expected<CompiledModel> benchmarks::importAndCompile(const std::string &configPath,
                                                     const ImportOptions &importOptions,
                                                     const CompileOptions &compileOptions) {
  auto buffer = llvm::MemoryBuffer::getFile(configPath, /*IsText=*/true);
  if (!buffer)
    return Error{configPath + ": cannot open: " + buffer.getError().message()};
  llvm::StringRef folder = llvm::sys::path::parent_path(configPath);
  auto model = ImportedModel::create((*buffer)->getBuffer().str(), configPath,
                                     llvm::sys::path::filename(folder).str(), importOptions);
  if (!model)
    return model.error();
  return (*model)->compile(compileOptions);
}
