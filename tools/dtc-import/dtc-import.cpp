//===- dtc-import.cpp - From a configuration to model IR -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-import/ImportCommand.h"

#include "llvm/ADT/StringExtras.h"

using namespace dtc;

static int runMain(int argc, char **argv) {
  CLI::App app(
      "Turns a Hugging Face config.json, or a PyTorch model that python -m dtc.torch "
      "captured, into model IR: one function, @loss, as one device would compute it. Model "
      "types: " +
          llvm::join(getKnownModelTypes(), ", ") + ".",
      "dtc-import");
  app.set_version_flag("--version", std::string("dtc-import ") + DTC_VERSION);
  ImportCommand command(app);
  if (auto status = parseCommandLine(app, argc, argv))
    return *status;
  return command.run();
}

int main(int argc, char **argv) { return runTool(runMain, argc, argv); }
