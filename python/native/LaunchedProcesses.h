//===- LaunchedProcesses.h - The processes that a launcher has started ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PYTHON_NATIVE_LAUNCHEDPROCESSES_H
#define DTC_PYTHON_NATIVE_LAUNCHEDPROCESSES_H

#include "runtime/executor/RunWatch.h"
#include "runtime/fabrics/processes/Processes.h"
#include "support/Error.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dtc::python {

/// Names and values that have to be equal in all processes. A long value is given by its checksum.
using Alike = std::vector<std::pair<std::string, std::string>>;

/// The connections to the other processes that the sessions of this process need.
struct JoinedProcesses {
  runtime::Processes processes;
  std::shared_ptr<runtime::RunWatch> watch; // null: one process
  std::function<void(const Error &)> fail;  // ends all; null: one process

  /// Whether all processes make the call of this name and give the same with it, and none has an
  /// error, which is then that of all. Sessions can go on after what it returns.
  MaybeError agree(const std::string &call, const MaybeError &error, const Alike &alike = {}) const;
  /// After an error that only this process may have: ends all. Returns the error.
  MaybeError failTogether(const Error &error) const;
};

/// Joins the processes that mpirun, torchrun or srun have started, as dtc-run does; the same ones
/// at each call. From the first call on they watch each other: when one is lost, one of the others
/// prints why, and all end. Without a launcher this process is the only one.
Expected<JoinedProcesses> joinProcesses();

/// Leaves the others at the end of this process, when no session is left. `error`: what ends it;
/// empty if it has done its work. Then it returns when all others have come to their end too. With
/// an error, and where another one makes a call instead, all processes end, this one within the
/// call.
void leaveProcesses(const std::string &error);

} // namespace dtc::python

#endif // DTC_PYTHON_NATIVE_LAUNCHEDPROCESSES_H
