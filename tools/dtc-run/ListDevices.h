//===- ListDevices.h - What dtc-run can run on ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_DTC_RUN_LISTDEVICES_H
#define DTC_TOOLS_DTC_RUN_LISTDEVICES_H

#include <string>
#include <vector>

namespace dtc {

/// A line for the CPU, one for each GPU and one for each library that GPUs need; or why there are
/// none.
std::vector<std::string> listDevices();

} // namespace dtc

#endif // DTC_TOOLS_DTC_RUN_LISTDEVICES_H
