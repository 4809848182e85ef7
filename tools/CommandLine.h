//===- CommandLine.h - Common command-line code of the tools --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_COMMANDLINE_H
#define DTC_TOOLS_COMMANDLINE_H

#include "support/Printable.h"
#include "tools/OptionChecks.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>

namespace dtc {

/// Prints an error as every tool does, and returns the exit status of a failure.
inline int fail(const std::string &message) {
  std::fprintf(stderr, "error: %s\n", printableMessage(message).c_str());
  return 1;
}

/// Runs what a tool does. Memory that cannot be had is an error as any other: a file may ask for
/// more than there is.
inline int runTool(int (*tool)(int, char **), int argc, char **argv) {
  constexpr const char *message =
      "out of memory; the input asks for more than this machine or the limits of this process "
      "(see ulimit -v) allow; try a smaller one, or a machine with more memory";
  try {
    return tool(argc, argv);
  } catch (const std::bad_alloc &) {
    return fail(message);
  } catch (const std::length_error &) { // more than a container could ever hold
    return fail(message);
  }
}

/// Parses the command line, in which no value may be empty. Returns the exit status if the tool is
/// to end at once: 0 after --help and --version, or that of failed(message) after an error, whose
/// message names the tool's --help.
template <typename Failed>
std::optional<int> parseCommandLine(CLI::App &app, int argc, char **argv, const Failed &failed) {
  refuseEmptyValues(app);
  try {
    for (int i = 1; i < argc; ++i)
      refuseEmptyAssignment(app, argv[i]);
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0)
      return app.exit(error);
    return failed(std::string(error.what()) + "; see " + app.get_name() + " --help");
  }
  return std::nullopt;
}
inline std::optional<int> parseCommandLine(CLI::App &app, int argc, char **argv) {
  return parseCommandLine(app, argc, argv, fail);
}

} // namespace dtc

#endif // DTC_TOOLS_COMMANDLINE_H
