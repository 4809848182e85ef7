//===- Crash.cpp - Reports that end the process --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/Crash.h"

#include "test/standin/cuda/Engine.h"
#include "test/standin/cuda/GridRunner.h"

#include <csignal>
#include <cstdlib>
#include <fmt/format.h>

#if defined(DTC_STANDIN_ADDRESS)
#include <sanitizer/common_interface_defs.h>
#endif

namespace dtc::standin {

namespace {

thread_local bool isEngineThread = false;
struct sigaction previous[2];
constexpr int kSignals[2] = {SIGSEGV, SIGBUS};

void onFault(int signal, siginfo_t *info, void *) {
  const void *address = info->si_addr;
  std::optional<std::string> where = Engine::get().memory.describe(address);
  uint64_t seed = Engine::get().settings.seed;
  if (isEngineThread && gridRunner().isBelowStack(address))
    crash(describeCurrentWork() + ": its stack overflows", seed);
  if (isEngineThread)
    crash(fmt::format("{}: accesses {}", describeCurrentWork(),
                      where ? *where : fmt::format("address {}", address)),
          seed);
  if (where)
    crash("the host accesses " + *where, seed);
  // Not ours: as if there were no handler.
  for (int i = 0; i < 2; ++i)
    if (kSignals[i] == signal)
      sigaction(signal, &previous[i], nullptr);
}

} // namespace

void crash(const std::string &message, uint64_t seed) {
  fmt::print(stderr, "cuda stand-in: {}\ncuda stand-in: DTC_CUDA_STANDIN_SEED={}\n", message, seed);
  std::fflush(stderr);
  std::abort();
}

void installCrashHandler() {
  isEngineThread = true;
  // The stack of a coroutine may be what has no room.
  static std::byte stack[64 * 1024];
  stack_t alternative = {};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof(stack);
  sigaltstack(&alternative, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = onFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int i = 0; i < 2; ++i)
    sigaction(kSignals[i], &action, &previous[i]);
#if defined(DTC_STANDIN_ADDRESS)
  __sanitizer_set_death_callback([] {
    if (isEngineThread)
      fmt::print(stderr, "cuda stand-in: in {}\ncuda stand-in: DTC_CUDA_STANDIN_SEED={}\n",
                 describeCurrentWork(), Engine::get().settings.seed);
  });
#endif
}

} // namespace dtc::standin
