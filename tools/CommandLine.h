//===- CommandLine.h - Common command-line code of the tools --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_COMMANDLINE_H
#define DTC_TOOLS_COMMANDLINE_H

#include "support/NearestName.h"
#include "support/Printable.h"
#include "tools/OptionChecks.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace dtc {

/// Prints an error as every tool does, and returns the exit status of a failure.
inline int fail(const std::string &message) {
  std::fprintf(stderr, "error: %s\n", printableMessage(message).c_str());
  return 1;
}

/// Runs the function of a tool. A failed allocation is an error like any other: a file may ask for
/// more memory than there is.
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

/// The flags of the app, and of the subcommands that were given.
inline std::vector<std::string> flagsOf(const CLI::App &app) {
  std::vector<std::string> flags;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      flags.push_back("--" + name);
  for (const CLI::App *subcommand : app.get_subcommands())
    for (std::string &flag : flagsOf(*subcommand))
      flags.push_back(std::move(flag));
  return flags;
}

/// An error with the flag that a misspelt one is near to, and the --help. After any error: a flag
/// that is required and missing may be misspelt.
inline std::string describeError(const CLI::App &app, std::string text) {
  for (const std::string &word : app.remaining(/*recurse=*/true)) {
    std::string flag = word.substr(0, word.find('='));
    std::string meant = flag.starts_with("--") ? didYouMean(flag, flagsOf(app)) : "";
    if (meant.empty())
      continue;
    if (text.find(flag) == std::string::npos)
      text += "; there is no " + flag;
    return text + meant + " See " + app.get_name() + " --help";
  }
  return text + "; see " + app.get_name() + " --help";
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
    return failed(describeError(app, error.what()));
  }
  return std::nullopt;
}
inline std::optional<int> parseCommandLine(CLI::App &app, int argc, char **argv) {
  return parseCommandLine(app, argc, argv, fail);
}

} // namespace dtc

#endif // DTC_TOOLS_COMMANDLINE_H
