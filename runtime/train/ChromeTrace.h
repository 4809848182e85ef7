//===- ChromeTrace.h - Chrome traces of a run -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_CHROMETRACE_H
#define DTC_RUNTIME_TRAIN_CHROMETRACE_H

#include "runtime/executor/Session.h"
#include "support/Error.h"

#include <string>

namespace dtc::runtime {

/// Writes the records of the session in the JSON form of Chrome's trace events, which
/// ui.perfetto.dev and chrome://tracing show. A device is a process with the threads "compute"
/// (tasks, which enclose their kernels and waits), "collectives" and "transfers"
/// (transfers that overlap are spread over more threads of that name). An arrow goes from each send
/// to its receive. The file is written whole or not at all; the error begins with its path.
MaybeError writeChromeTrace(const Session &session, const std::string &path);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_CHROMETRACE_H
