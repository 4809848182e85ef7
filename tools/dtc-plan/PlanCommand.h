//===- PlanCommand.h - The subcommands and flags of dtc-plan --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_DTC_PLAN_PLANCOMMAND_H
#define DTC_TOOLS_DTC_PLAN_PLANCOMMAND_H

#include "support/Error.h"
#include "tools/CommandLine.h"
#include "tools/dtc-plan/Subcommands.h"

#include <string>

namespace dtc {

/// The command line of dtc-plan. Parsing it runs the subcommand.
class PlanCommand {
public:
  /// Adds the subcommands and their flags; the command outlives the parsing.
  explicit PlanCommand(CLI::App &app);

  /// Checks what is before the subcommand, and the subcommand itself, where CLI11 would not say
  /// what is wrong.
  MaybeError check(int argc, char **argv) const;

  /// Of the subcommand that has run.
  int status = 0;

private:
  MaybeError checkSubcommand(const std::string &word) const;
  MaybeError checkFlag(const std::string &text) const;

  CLI::App &app;
  PlanArguments args;
};

} // namespace dtc

#endif // DTC_TOOLS_DTC_PLAN_PLANCOMMAND_H
