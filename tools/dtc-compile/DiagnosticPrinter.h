//===- DiagnosticPrinter.h - Diagnostics of MLIR for people ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_DTC_COMPILE_DIAGNOSTICPRINTER_H
#define DTC_TOOLS_DTC_COMPILE_DIAGNOSTICPRINTER_H

#include "tools/PrintableStream.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <deque>
#include <string>

namespace dtc {

/// Prints the diagnostics of a context while it lives: with the name of the layer where there is
/// one, without what a terminal would take for commands, and remarks only where they are asked for.
class DiagnosticPrinter {
public:
  /// `sources` has the text of the model, whose lines are shown.
  DiagnosticPrinter(llvm::SourceMgr &sources, mlir::MLIRContext &context, bool printsRemarks,
                    llvm::raw_ostream &os = llvm::errs());

private:
  // The handler that was made last is asked first.
  PrintableStream errors;
  mlir::SourceMgrDiagnosticHandler sourceHandler;
  mlir::ScopedDiagnosticHandler nameHandler, remarkHandler, printableHandler;
  std::deque<std::string> texts; // of the diagnostic that is being printed
};

} // namespace dtc

#endif // DTC_TOOLS_DTC_COMPILE_DIAGNOSTICPRINTER_H
