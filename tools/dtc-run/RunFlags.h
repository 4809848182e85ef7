//===- RunFlags.h - The flags of dtc-run -----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_DTC_RUN_RUNFLAGS_H
#define DTC_TOOLS_DTC_RUN_RUNFLAGS_H

#include "runtime/generate/GenerateRun.h"
#include "runtime/train/TrainOptions.h"
#include "tools/CommandLine.h"

namespace dtc {

/// The plan and all flags of training; also those that generation shares.
void addTrainFlags(CLI::App &app, runtime::TrainOptions &options);

/// The flags of generation, which exclude those of training: call it after addTrainFlags().
void addGenerateFlags(CLI::App &app, runtime::GenerateOptions &options);

} // namespace dtc

#endif // DTC_TOOLS_DTC_RUN_RUNFLAGS_H
