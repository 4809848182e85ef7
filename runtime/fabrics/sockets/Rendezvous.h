//===- Rendezvous.h - Rendezvous of processes -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_SOCKETS_RENDEZVOUS_H
#define DTC_RUNTIME_FABRICS_SOCKETS_RENDEZVOUS_H

#include "runtime/control/ControlSocket.h"
#include "support/Error.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dtc::runtime {

/// Most bytes of a key.
inline constexpr size_t kMostKeyBytes = 2048;

/// The data that each process has before it has found the others: launchers put it into RANK,
/// WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
struct RendezvousOptions {
  int64_t process = 0;
  int64_t numProcesses = 1;
  std::string address; ///< of process 0, which listens there: a name or a number
  int port = 0;
  /// A line that all processes of a run know and others need not: a process that gives another one
  /// is not let in.
  std::string key;
  std::chrono::milliseconds timeout{60000};
};

/// A connection to each other process, by process; of this one there is none.
struct Rendezvous {
  std::vector<OwnedFile> connections;
  std::vector<std::string> hosts; // their names
  /// Not empty: others have not come, and process 0 has given up; all that have come hear why, and
  /// there are no connections.
  std::string givenUp;
};

/// All processes call it together. Process 0 listens; the others connect to it, and hear from it
/// where they reach each other. A connection that does not send the expected message is closed, and
/// others go on.
Expected<Rendezvous> meet(const RendezvousOptions &options);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_SOCKETS_RENDEZVOUS_H
