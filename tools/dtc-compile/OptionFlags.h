//===- OptionFlags.h - The options of a compilation as flags --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_DTC_COMPILE_OPTIONFLAGS_H
#define DTC_TOOLS_DTC_COMPILE_OPTIONFLAGS_H

#include "compiler/driver/OptionTable.h"

#include <CLI/CLI.hpp>

namespace dtc {

/// Adds a flag for each option of the table, which sets it. A value that cannot be is an error of
/// the command line.
void addOptionFlags(CLI::App &app, CompileOptions &options);

} // namespace dtc

#endif // DTC_TOOLS_DTC_COMPILE_OPTIONFLAGS_H
