//===- ImportCommand.h - The command dtc-import ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_DTC_IMPORT_IMPORTCOMMAND_H
#define DTC_TOOLS_DTC_IMPORT_IMPORTCOMMAND_H

#include "compiler/import/ImportModel.h"
#include "support/Error.h"
#include "tools/CommandLine.h"

#include <string>

namespace dtc {

/// Reads a configuration, or a captured model, and writes model IR.
class ImportCommand {
public:
  /// Adds the flags; the command outlives the parsing of the command line.
  explicit ImportCommand(CLI::App &app);

  /// Does what the flags say; the status of the process.
  int run();

private:
  /// A flag that is missing, or has no meaning for a captured model.
  MaybeError checkFlags(bool isCapture) const;

  CLI::App &app;
  std::string input, output = "-", elementType = "f32", attention = "fused", lora, balanceLoss;
  ImportOptions options;
  bool noDropout = false;
  std::optional<double> bound;
};

} // namespace dtc

#endif // DTC_TOOLS_DTC_IMPORT_IMPORTCOMMAND_H
