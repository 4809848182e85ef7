//===- Launch.h - Runs of several processes --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_DTC_RUN_LAUNCH_H
#define DTC_TOOLS_DTC_RUN_LAUNCH_H

#include "runtime/control/ControlConnection.h"
#include "runtime/fabrics/processes/Processes.h"
#include "support/Error.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dtc {

/// What the environment says about a launcher, such as mpirun or srun: how many processes of this
/// run it has started; 1 without one.
int64_t launchedProcesses();

/// The status of processes that end because another one was lost. Launchers give the same where a
/// process is killed, so that one status stands for both.
inline constexpr int kLostStatus = 137;

/// How a launched run has ended.
struct LaunchedRun {
  int status = 0;
  /// Whether a signal asked it to stop.
  bool stopped = false;

  /// Whether a process was lost: it was ended by a signal that nobody here has sent, or the others
  /// have missed it.
  bool hasLostProcess() const { return status >= 128 && !stopped; }
};

/// Starts so many processes of this program on this machine, by mpirun, with the arguments, and
/// waits for them. A signal that asks this one to stop asks all of them.
runtime::Expected<LaunchedRun> launchProcesses(int64_t processes,
                                               const std::vector<std::string> &arguments);

/// Whether the output of a process that a launcher has started comes to a terminal, as far as is
/// known: launchers give their processes terminals of their own.
bool outputIsTerminal();

/// What other threads call.
struct LaunchHooks {
  /// What this process is at, for messages; empty if nothing waits for it.
  std::function<std::string()> describe;
  /// The run ends, but this process is still where it was. What is returned, if anything, is called
  /// once it has been woken.
  std::function<std::function<void()>(int64_t process, const runtime::RunEnd &)> record;
};

/// The processes that a launcher has started.
class Launch {
public:
  /// Joins the others. The error says what is missing, or what the launcher and MPI disagree on.
  /// Where the others have not come within `startTimeout`, one says so, and the process ends.
  /// From now on the processes watch each other: where the run cannot go on, one of them prints
  /// why, with what the others were at, and all end.
  static runtime::Expected<std::unique_ptr<Launch>> start(const runtime::ControlOptions &control,
                                                          std::chrono::milliseconds startTimeout,
                                                          LaunchHooks hooks);
  virtual ~Launch() = default;

  virtual runtime::Processes processes() const = 0;
  /// Ends this process, which has found an error, and with it all others. The first cause is what
  /// is printed.
  [[noreturn]] virtual void fail(const runtime::Error &error) = 0;
};

} // namespace dtc

#endif // DTC_TOOLS_DTC_RUN_LAUNCH_H
