//===- Launchers.h - Launchers of processes -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_DTC_RUN_LAUNCHERS_H
#define DTC_TOOLS_DTC_RUN_LAUNCHERS_H

#include "runtime/fabrics/sockets/Rendezvous.h"
#include "support/Error.h"

#include <cstdint>
#include <optional>

namespace dtc {

/// The variables by which `dtc-run --processes`, torchrun and scripts tell a process of its run;
/// and the key that all processes of a run know and others need not.
inline constexpr const char *kRankVariable = "RANK";
inline constexpr const char *kCountVariable = "WORLD_SIZE";
inline constexpr const char *kLocalRankVariable = "LOCAL_RANK";
inline constexpr const char *kLocalCountVariable = "LOCAL_WORLD_SIZE";
inline constexpr const char *kAddressVariable = "MASTER_ADDR";
inline constexpr const char *kPortVariable = "MASTER_PORT";
inline constexpr const char *kKeyVariable = "DTC_RUN_KEY";

/// How the processes of a run find each other.
enum class LaunchedBy {
  Nobody,   ///< one process
  Mpi,      ///< mpirun, or srun with PMIx
  Variables ///< RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT: sockets, without MPI
};

/// The launcher, from the environment. mpirun's goes before the common variables, and these before
/// srun's: a batch script may set them in the steps of srun.
LaunchedBy launchedBy();

/// Whether RANK and WORLD_SIZE say what a launcher would say, where no other launcher tells of
/// several processes: runs that take themselves for the only one would write the same files.
MaybeError checkVariables();

/// How many processes of this run the launcher has started; 1 without one.
int64_t launchedProcesses();
/// The number that the launcher has given this process; 0 if none is known.
int64_t launchedRank();

/// Reads rank, number of processes, address and port from the environment: of
/// LaunchedBy::Variables, and in a build without MPI also of LaunchedBy::Mpi, whose launcher has
/// variables of its own for the first two. The error names a variable that is missing or is no
/// number.
Expected<runtime::RendezvousOptions> rendezvousOfVariables();

/// Ends this process with the one that has started it, which has told its number; called first.
void endWithParent();

} // namespace dtc

#endif // DTC_TOOLS_DTC_RUN_LAUNCHERS_H
