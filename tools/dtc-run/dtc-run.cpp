//===- dtc-run.cpp - Runs a plan -------------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanReader.h"
#include "tools/CommandLine.h"
#include "tools/dtc-run/Launchers.h"
#include "tools/dtc-run/RunCommand.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

using namespace dtc;

namespace {
struct Command {
  const char *name;
  RunKind kind;
  const char *description;
};
} // namespace

static constexpr Command kCommands[] = {
    {"train", RunKind::Train,
     "Trains the model of a plan, or computes the outputs of one that does not train."},
    {"evaluate", RunKind::Evaluate, "Computes the loss of a model on data, and trains nothing."},
    {"generate", RunKind::Generate, "Generates tokens after prompts."},
    {"calibrate", RunKind::Calibrate,
     "Measures this machine, in up to five minutes, and writes what it does to a file, a cluster."},
    {"links", RunKind::Links,
     "Measures the links between processes, and names those that are slow."},
    {"placement", RunKind::Placement,
     "Prints which process has which devices of a plan, and where each axis of the mesh lies."},
    {"devices", RunKind::Devices, "Prints the devices and the libraries for GPUs that are found."}};

/// The command that the first word names, or training where it is none.
static const Command &commandOf(std::string_view word) {
  const auto *found = std::ranges::find(kCommands, word, &Command::name);
  return found == std::end(kCommands) ? kCommands[0] : *found;
}

/// Refuses a first word that is neither a command nor a file, and that is near to a command or the
/// beginning of one.
static MaybeError checkFirstWord(const std::string &word) {
  if (word.starts_with("-") || std::filesystem::exists(word))
    return std::nullopt;
  std::vector<std::string> names;
  for (const Command &command : kCommands)
    names.emplace_back(command.name);
  std::string meant = didYouMean(word, names);
  auto begins = [&](const std::string &name) { return word.size() > 1 && name.starts_with(word); };
  if (auto found = std::ranges::find_if(names, begins); meant.empty() && found != names.end())
    meant = fmt::format("; did you mean \"{}\"?", *found);
  if (meant.empty())
    return std::nullopt;
  return Error{fmt::format("{}: neither a command nor a plan{} See dtc-run --help", word, meant)};
}

/// Below the flags of training, where no command was named.
static std::string listCommands() {
  std::string text = "Commands:\n";
  for (const Command &command : kCommands)
    text += fmt::format("  {:<28}{}\n", command.name, command.description);
  return text + "\nWithout a command dtc-run trains. Each has a --help.";
}

static int runMain(int argc, char **argv) {
  endWithParent();
  std::string word = argc > 1 ? argv[1] : "";
  const Command &command = commandOf(word);
  bool isNamed = word == command.name;
  CLI::App app{command.description, isNamed ? fmt::format("dtc-run {}", word) : "dtc-run"};
  app.set_version_flag("--version",
                       fmt::format("dtc-run {} (plan version {})", DTC_VERSION, dtc::kPlanVersion));
  if (!isNamed)
    app.footer(listCommands());
  RunCommand run(command.kind, app, std::vector<std::string>(argv + 1, argv + argc));
  auto failed = [&](const std::string &message) { return run.failTogether(message); };
  if (!isNamed)
    if (MaybeError error = checkFirstWord(word))
      return failed(error->message);
  if (auto status = parseCommandLine(app, argc - isNamed, argv + isNamed, failed))
    return *status;
  return run.run();
}

int main(int argc, char **argv) { return runTool(runMain, argc, argv); }
