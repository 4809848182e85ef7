//===- DiagnosticPrinter.cpp - Diagnostics of MLIR for people -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-compile/DiagnosticPrinter.h"

#include "compiler/analysis/DescribeLocation.h"
#include "support/Printable.h"

using namespace dtc;

/// Writes out what is not printable in a diagnostic's arguments. Their texts are kept in `texts`.
/// The handlers after this one print it.
static void makePrintable(mlir::Diagnostic &diagnostic, std::deque<std::string> &texts) {
  using Kind = mlir::DiagnosticArgument::DiagnosticArgumentKind;
  for (mlir::DiagnosticArgument &argument : diagnostic.getArguments())
    if (argument.getKind() == Kind::String)
      argument = mlir::DiagnosticArgument(
          llvm::StringRef(texts.emplace_back(printable(argument.getAsString()))));
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    makePrintable(note, texts);
}

/// Whether a location says a line of a file.
static bool hasPlace(mlir::Location loc) {
  return loc
      ->walk([](mlir::Location part) {
        return llvm::isa<mlir::FileLineColLoc>(part) ? mlir::WalkResult::interrupt()
                                                     : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

/// Prints a diagnostic of an op with a name, such as that of a layer, with the name:
/// "model.mlir:7:8: error: h.0.attn: ...", or without a place where it has none.
static llvm::LogicalResult printNamedDiagnostic(mlir::SourceMgrDiagnosticHandler &handler,
                                                mlir::Diagnostic &diagnostic,
                                                llvm::raw_ostream &os) {
  std::string name = printable(nameOf(diagnostic.getLocation()).str());
  if (name.empty())
    return llvm::failure();
  std::string message = diagnostic.str();
  if (!llvm::StringRef(message).contains(name))
    message = name + ": " + message;
  auto print = [&](mlir::Location loc, const std::string &text, mlir::DiagnosticSeverity severity) {
    if (hasPlace(loc))
      // Not the line: the signature of a model is one.
      return handler.emitDiagnostic(loc, text, severity, /*displaySourceLine=*/false);
    const char *word = severity == mlir::DiagnosticSeverity::Error     ? "error"
                       : severity == mlir::DiagnosticSeverity::Warning ? "warning"
                       : severity == mlir::DiagnosticSeverity::Remark  ? "remark"
                                                                       : "note";
    os << word << ": " << text << "\n";
  };
  print(diagnostic.getLocation(), message, diagnostic.getSeverity());
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    print(note.getLocation(), note.str(), note.getSeverity());
  return llvm::success();
}

DiagnosticPrinter::DiagnosticPrinter(llvm::SourceMgr &sources, mlir::MLIRContext &context,
                                     bool printsRemarks, llvm::raw_ostream &os)
    : errors(os), sourceHandler(sources, &context, errors),
      nameHandler(&context,
                  [this, &os](mlir::Diagnostic &diagnostic) {
                    return printNamedDiagnostic(sourceHandler, diagnostic, os);
                  }),
      remarkHandler(&context,
                    [printsRemarks](mlir::Diagnostic &diagnostic) {
                      return llvm::success(!printsRemarks && diagnostic.getSeverity() ==
                                                                 mlir::DiagnosticSeverity::Remark);
                    }),
      printableHandler(&context, [this](mlir::Diagnostic &diagnostic) {
        texts.clear();
        makePrintable(diagnostic, texts);
        return llvm::failure();
      }) {}
