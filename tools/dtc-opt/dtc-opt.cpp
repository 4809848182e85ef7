//===- dtc-opt.cpp - Passes over IR, single ones or all ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/PassPipeline.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/float8/Float8Passes.h"
#include "compiler/passes/offload/OffloadPasses.h"
#include "compiler/passes/outer/OuterPasses.h"
#include "compiler/passes/parts/PartsPasses.h"
#include "compiler/passes/privacy/PrivacyPasses.h"
#include "support/AtomicFile.h"
#include "support/CommandFiles.h"
#include "support/Printable.h"
#include "support/ReadText.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#ifdef DTC_TEST_PASSES
#include "test/lib/passes/TestPasses.h"
#endif

static int fail(const std::string &message) {
  llvm::errs() << "error: " << dtc::printableMessage(message) << "\n";
  return 1;
}

/// The same IR without comments such as "expected-error": MLIR 22 reports those that no diagnostic
/// meets, although only --verify-diagnostics asks for it.
static std::string withoutExpectations(std::string text) {
  constexpr llvm::StringRef word = "expected-";
  bool inString = false, inComment = false;
  for (size_t i = 0; i < text.size(); ++i) {
    llvm::StringRef rest = llvm::StringRef(text).substr(i);
    if (rest.front() == '\n')
      inString = inComment = false; // neither goes on in the next line
    else if (inComment && rest.starts_with(word))
      text[i + word.size() - 1] = ' ';
    else if (inString && rest.front() == '\\')
      ++i;
    else if (!inComment && rest.front() == '"')
      inString = !inString;
    else if (!inString && rest.starts_with("//"))
      inComment = true;
  }
  return text;
}

/// mlir-opt, except that a file is written whole or not at all, that the input has an end, and that
/// --verify-diagnostics alone looks at what a file expects: mlir-opt empties its output before it
/// reads its input, and removes it where a pass fails.
int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  dtc::registerDialects(registry);
  dtc::registerDtcPasses();
  dtc::registerDtcOuterPasses();
  dtc::registerDtcFloat8Passes();
  dtc::registerDtcOffloadPasses();
  dtc::registerDtcPartsPasses();
  dtc::registerDtcPrivacyPasses();
  dtc::registerCompilePipeline();
  mlir::registerTransformsPasses();
#ifdef DTC_TEST_PASSES
  dtc::test::registerTestPasses();
#endif
  auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv,
      "Runs passes over IR: single ones, or with --dtc-compile all "
      "that dtc-compile runs.\n",
      registry);
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, input, output, registry));

  dtc::CommandFiles files;
  files.reads("the input", input == "-" ? "/dev/stdin" : input);
  files.writes("-o", output == "-" ? "/dev/stdout" : output);
  if (auto problem = files.check())
    return fail(problem->message);
  auto read = dtc::readText(input);
  if (!read)
    return fail(read.error().message);
  std::string text = std::move(*read);
  if (!config.shouldVerifyDiagnostics() && !mlir::isBytecode(llvm::MemoryBufferRef(text, input)))
    text = withoutExpectations(std::move(text));
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(text, input == "-" ? "<stdin>" : input);
  if (output == "-")
    return mlir::asMainReturnCode(
        mlir::MlirOptMain(llvm::outs(), std::move(buffer), registry, config));
  auto file = dtc::AtomicFile::create(output);
  if (!file)
    return fail(file.error().message);
  std::string result;
  llvm::raw_string_ostream stream(result);
  if (failed(mlir::MlirOptMain(stream, std::move(buffer), registry, config)))
    return 1;
  auto problem = file->write(result);
  if (!problem)
    problem = file->commit();
  return problem ? fail(problem->message) : 0;
}
