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

/// The plan and the flags of `dtc-run train`.
void addTrainFlags(CLI::App &app, runtime::TrainOptions &options);

/// Those of `dtc-run evaluate`: a run without steps, whose data are those to evaluate on.
void addEvaluateFlags(CLI::App &app, runtime::TrainOptions &options);

/// Those of `dtc-run generate`; `run` gets what it shares with training.
void addGenerateFlags(CLI::App &app, runtime::TrainOptions &run, runtime::GenerateOptions &options);

void addThreadFlag(CLI::App &app, runtime::TrainOptions &options);

} // namespace dtc

#endif // DTC_TOOLS_DTC_RUN_RUNFLAGS_H
