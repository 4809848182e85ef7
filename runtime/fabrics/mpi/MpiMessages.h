//===- MpiMessages.h - Processes that MPI has started ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_MPI_MPIMESSAGES_H
#define DTC_RUNTIME_FABRICS_MPI_MPIMESSAGES_H

#include "runtime/fabrics/processes/Messages.h"

#include <memory>
#include <string>

namespace dtc::runtime {

/// MPI in this process, from its start to its end: one object, made once, on the main thread. All
/// processes make and destroy theirs together.
class Mpi {
public:
  /// Starts MPI, for calls from many threads. An error says what is missing.
  static Expected<std::unique_ptr<Mpi>> start();
  /// Waits for the other processes, unless a network has been aborted: these may have ended.
  ~Mpi();
  Mpi(const Mpi &) = delete;
  Mpi &operator=(const Mpi &) = delete;

  int64_t process() const;
  int64_t numProcesses() const;

  /// A network of all processes, which open it together. It ends before this object.
  Expected<std::shared_ptr<Messages>> openMessages();

private:
  Mpi() = default;
};

/// "Open MPI v4.1.4".
std::string describeMpi();

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_MPI_MPIMESSAGES_H
