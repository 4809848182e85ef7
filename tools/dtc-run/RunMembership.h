//===- RunMembership.h - Runs of several processes --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_DTC_RUN_RUNMEMBERSHIP_H
#define DTC_TOOLS_DTC_RUN_RUNMEMBERSHIP_H

#include "runtime/control/ControlConnection.h"
#include "runtime/fabrics/processes/Processes.h"
#include "support/Error.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace dtc {

/// Functions for other threads.
struct MembershipHooks {
  /// Describes the current work of this process, for messages; empty if nothing waits for it.
  std::function<std::string()> describe;
  /// The run ends, but this process is still where it was. What is returned, if anything, is called
  /// once it has been woken.
  std::function<std::function<void()>(int64_t process, const runtime::RunEnd &)> record;
};

/// The processes that a launcher has started.
class RunMembership {
public:
  /// Joins the others. The error says what is missing, or what the launcher and MPI disagree on.
  /// Where the others have not come within `startTimeout`, one says so, and the process ends.
  /// From now on the processes watch each other: where the run cannot go on, one of them prints
  /// why, with the work that the others were at, and all end.
  static Expected<std::unique_ptr<RunMembership>> join(const runtime::ControlOptions &control,
                                                       std::chrono::milliseconds startTimeout,
                                                       MembershipHooks hooks);
  virtual ~RunMembership() = default;

  virtual runtime::Processes processes() const = 0;
  /// Ends this process, which has found an error, and with it all others. The first cause is what
  /// is printed.
  [[noreturn]] virtual void fail(const Error &error) = 0;
};

} // namespace dtc

#endif // DTC_TOOLS_DTC_RUN_RUNMEMBERSHIP_H
