//===- dtc-compile.cpp - The command dtc-compile --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/CommandLine.h"
#include "tools/dtc-compile/CompileCommand.h"

using namespace dtc;

static int runMain(int argc, char **argv) {
  CLI::App app("Compiles model IR for a mesh of devices and writes a plan for dtc-run.",
               "dtc-compile");
  app.set_version_flag("--version", std::string("dtc-compile ") + DTC_VERSION);
  CompileCommand command(app);
  if (auto status = parseCommandLine(app, argc, argv))
    return *status;
  MaybeError error = command.run();
  return error ? fail(error->message) : 0;
}

int main(int argc, char **argv) { return runTool(runMain, argc, argv); }
