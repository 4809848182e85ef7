//===- DeviceFlags.h - Flags of the devices of a plan ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_DTC_RUN_DEVICEFLAGS_H
#define DTC_TOOLS_DTC_RUN_DEVICEFLAGS_H

#include "tools/dtc-run/Devices.h"

#include <CLI/CLI.hpp>

namespace dtc {

/// They add flags that set the options, which outlive the parsing of the command line.
///
/// --device.
void addDeviceFlag(CLI::App &app, DeviceSelection &options);
/// How GPUs exchange tensors, and how they get steps.
void addExchangeFlags(CLI::App &app, DeviceSelection &options);
/// How GPUs compute.
void addGpuFlags(CLI::App &app, DeviceSelection &options);
/// Those of addGpuFlags() that change how fast a GPU computes one kernel call.
void addProductFlags(CLI::App &app, DeviceSelection &options);

} // namespace dtc

#endif // DTC_TOOLS_DTC_RUN_DEVICEFLAGS_H
