//===- GivenFlags.h - What was given on the command line ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_DTC_RUN_GIVENFLAGS_H
#define DTC_TOOLS_DTC_RUN_GIVENFLAGS_H

#include <CLI/CLI.hpp>

#include <string>

namespace dtc {

/// The contents of the command line: a line for the command, "command dtc-run train", and one for
/// each option, "--steps 3".
std::string describeGiven(const CLI::App &app);

/// The first option that is not the same in two texts of describeGiven(), as it is in both:
/// "--steps 3 and --steps 4", "no --lr and --lr 0.1"; empty where there is none.
std::string firstDifference(const std::string &first, const std::string &second);

} // namespace dtc

#endif // DTC_TOOLS_DTC_RUN_GIVENFLAGS_H
