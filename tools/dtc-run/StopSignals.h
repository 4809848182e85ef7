//===- StopSignals.h - Signals that end a run ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_DTC_RUN_STOPSIGNALS_H
#define DTC_TOOLS_DTC_RUN_STOPSIGNALS_H

#include <atomic>

namespace dtc {

/// From now on the first SIGINT, SIGTERM, SIGHUP, SIGPIPE or SIGUSR1, which launchers of several
/// processes pass on, asks the run to end after its step and save. A second SIGINT ends the
/// process, and so does a SIGTERM some seconds after the first signal; a terminal that is closed
/// sends more than one SIGHUP, and a pipe that nobody reads a SIGPIPE for each line.
void stopOnSignals();

/// Whether a signal has come.
const std::atomic<bool> &stopRequested();

/// The status of a run that a signal has ended, as a shell reports it.
int interruptedStatus();
/// Whether interruptedStatus() may be that in a process of this program.
bool isInterruptedStatus(int status);

} // namespace dtc

#endif // DTC_TOOLS_DTC_RUN_STOPSIGNALS_H
