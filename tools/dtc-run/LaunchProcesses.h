//===- LaunchProcesses.h - Starts the processes of a run -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_DTC_RUN_LAUNCHPROCESSES_H
#define DTC_TOOLS_DTC_RUN_LAUNCHPROCESSES_H

#include "support/Error.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dtc {

/// In the environment of the processes: the number of the one that has started them.
inline constexpr const char *kParentVariable = "DTC_RUN_PARENT";

/// The status of processes that end because another one was lost. Launchers give the same where a
/// process is killed, so that one status stands for both.
inline constexpr int kLostStatus = 137;

/// How a launched run has ended.
struct LaunchedRun {
  int status = 0;
  /// Whether a signal asked it to stop.
  bool stopped = false;
  /// Whether processes have ended after their step and saved, since a signal asked one of them to,
  /// and all others well.
  bool interrupted = false;
  /// Processes that were ended by a signal that nobody here has sent, or had to be killed because
  /// they hung; at least 1 where one was lost.
  int64_t lost = 1;
  /// When the first one that has failed was seen to have ended.
  std::chrono::steady_clock::time_point failedAt = {};

  /// Whether a process was lost: it was ended by a signal that nobody here has sent, or the others
  /// have missed it.
  bool hasLostProcess() const { return status >= 128 && !stopped && !interrupted; }
};

/// Starts `processes` processes of this program on this machine, with the arguments, and waits for
/// them: as its own children, which find each other by RANK, WORLD_SIZE, MASTER_ADDR and
/// MASTER_PORT, or by mpirun. A signal that asks this one to stop asks all of them. The status is
/// that of the first one that fails; those that do not end after it are killed.
/// `before`: the run that these processes go on with, which had lost a process.
Expected<LaunchedRun> launchProcesses(int64_t processes, bool byMpirun,
                                      const std::vector<std::string> &arguments,
                                      const std::optional<LaunchedRun> &before = {});

/// Whether launchProcesses() has started this process, which may be the only one that is left.
bool startedByLaunch();

/// In a process that was started because another one was lost: the seconds since then.
std::optional<double> secondsSinceLoss();

/// Whether the output of a process that a launcher has started comes to a terminal, as far as is
/// known: launchers give their processes terminals of their own.
bool outputIsTerminal();

} // namespace dtc

#endif // DTC_TOOLS_DTC_RUN_LAUNCHPROCESSES_H
