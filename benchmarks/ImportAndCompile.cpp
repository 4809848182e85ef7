//===- ImportAndCompile.cpp - From a configuration to a plan --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/ImportAndCompile.h"

#include "runtime/plan/plan.pb.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>

using namespace dtc;
using namespace dtc::benchmarks;

runtime::Expected<CompiledModel>
benchmarks::importAndCompile(const std::string &configPath, const ImportOptions &importOptions,
                             const CompileOptions &compileOptions) {
  using Clock = std::chrono::steady_clock;
  auto buffer = llvm::MemoryBuffer::getFile(configPath, /*IsText=*/true);
  if (!buffer)
    return runtime::Error{configPath + ": cannot open: " + buffer.getError().message()};

  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  std::string messages;
  context.getDiagEngine().registerHandler([&](mlir::Diagnostic &diagnostic) {
    llvm::raw_string_ostream(messages) << "\n  " << diagnostic.getLocation() << ": " << diagnostic;
    return mlir::success();
  });

  Clock::time_point begin = Clock::now();
  ImportLog log;
  auto module = importModel(context, (*buffer)->getBuffer(), configPath, importOptions, log);
  for (const std::string &error : log.errors)
    messages += "\n  " + error;
  if (!module)
    return runtime::Error{configPath + ": cannot import the model" + messages};

  Clock::time_point imported = Clock::now();
  CompiledModel result;
  result.plan = std::make_shared<plan::Plan>();
  llvm::StringRef folder = llvm::sys::path::parent_path(configPath);
  if (failed(compile(*module, compileOptions, llvm::sys::path::filename(folder), *result.plan)))
    return runtime::Error{configPath + ": cannot compile the model" + messages};
  result.importSeconds = std::chrono::duration<double>(imported - begin).count();
  result.compileSeconds = std::chrono::duration<double>(Clock::now() - imported).count();
  return result;
}
