//===- Launchers.cpp - Launchers of processes -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-run/Launchers.h"

#include "tools/dtc-run/LaunchProcesses.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <string>
#include <sys/prctl.h>
#include <unistd.h>

namespace dtc {

using namespace dtc;
using namespace dtc::runtime;

static constexpr int64_t kMostProcesses = 1 << 16;

static const char *variable(const char *name) {
  const char *value = std::getenv(name);
  return value && *value ? value : nullptr;
}

static int64_t numberOf(const char *name, int64_t otherwise) {
  const char *value = variable(name);
  return value ? std::strtoll(value, nullptr, 10) : otherwise;
}

/// Of MPICH and its descendants; of srun, in whose steps alone there is a rank.
static int64_t countOfOtherMpi() {
  return std::max(numberOf("PMI_SIZE", 1),
                  variable("SLURM_PROCID") ? numberOf("SLURM_STEP_NUM_TASKS", 1) : 1);
}

LaunchedBy launchedBy() {
  if (numberOf("OMPI_COMM_WORLD_SIZE", 1) > 1)
    return LaunchedBy::Mpi;
  if (variable(kRankVariable) && numberOf(kCountVariable, 1) > 1)
    return LaunchedBy::Variables;
  return countOfOtherMpi() > 1 ? LaunchedBy::Mpi : LaunchedBy::Nobody;
}

int64_t launchedProcesses() {
  switch (launchedBy()) {
  case LaunchedBy::Nobody:
    return 1;
  case LaunchedBy::Variables:
    return numberOf(kCountVariable, 1);
  case LaunchedBy::Mpi:
    break;
  }
  return std::max(numberOf("OMPI_COMM_WORLD_SIZE", 1), countOfOtherMpi());
}

int64_t launchedRank() {
  if (launchedBy() == LaunchedBy::Variables)
    return numberOf(kRankVariable, 0);
  for (const char *name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (variable(name))
      return numberOf(name, 0);
  return 0;
}

static Expected<int64_t> wholeVariable(const char *name, int64_t least, int64_t most) {
  const char *value = variable(name);
  if (!value)
    return Error{fmt::format("{} is {}, but {} is not set; processes that are started without "
                             "mpirun need RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT",
                             kCountVariable, numberOf(kCountVariable, 0), name)};
  int64_t number = 0;
  auto [end, error] = std::from_chars(value, value + std::strlen(value), number);
  if (error != std::errc() || *end != '\0' || number < least || number > most)
    return Error{
        fmt::format("{} is \"{}\"; expected a number from {} to {}", name, value, least, most)};
  return number;
}

Expected<RendezvousOptions> rendezvousOfVariables() {
  RendezvousOptions options;
  // A launcher of MPI tells both in variables of its own.
  bool byMpi = launchedBy() == LaunchedBy::Mpi;
  Expected<int64_t> count =
      byMpi ? launchedProcesses() : wholeVariable(kCountVariable, 1, kMostProcesses);
  if (!count)
    return count.error();
  Expected<int64_t> rank = byMpi ? launchedRank() : wholeVariable(kRankVariable, 0, *count - 1);
  if (!rank)
    return rank.error();
  Expected<int64_t> port = wholeVariable(kPortVariable, 1, 65535);
  if (!port)
    return port.error();
  const char *address = variable(kAddressVariable);
  if (!address)
    return wholeVariable(kAddressVariable, 0, 0).error();
  options.process = *rank;
  options.numProcesses = *count;
  options.address = address;
  options.port = static_cast<int>(*port);
  // torchrun itself may listen at the port that it names.
  if (const char *taken = variable("TORCHELASTIC_USE_AGENT_STORE");
      taken && std::string(taken) == "True")
    ++options.port;
  if (const char *key = variable(kKeyVariable))
    options.key = key;
  return options;
}

MaybeError checkVariables() {
  const char *rank = variable(kRankVariable), *count = variable(kCountVariable);
  if (launchedBy() != LaunchedBy::Nobody || (!rank && !count))
    return std::nullopt;
  if (!rank || !count) {
    const char *set = rank ? kRankVariable : kCountVariable;
    return Error{fmt::format(
        "{} is \"{}\", but {} is not set, so that this may be one of several processes or the only "
        "one; set both and MASTER_ADDR and MASTER_PORT for several, or unset {} for one",
        set, rank ? rank : count, rank ? kCountVariable : kRankVariable, set)};
  }
  Expected<int64_t> processes = wholeVariable(kCountVariable, 1, kMostProcesses);
  if (!processes)
    return processes.error();
  Expected<int64_t> process = wholeVariable(kRankVariable, 0, *processes - 1);
  return process ? MaybeError() : process.error();
}

void endWithParent() {
  if (numberOf(kParentVariable, -1) != getppid())
    return;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (numberOf(kParentVariable, -1) != getppid()) // it has ended meanwhile
    std::raise(SIGTERM);
}

} // namespace dtc
