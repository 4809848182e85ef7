//===- StopSignals.cpp - Signals that end a run ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-run/StopSignals.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <iterator>

/// Launchers send SIGTERM more than once, such as Slurm at the end of the time to each process and
/// to srun, which passes it on. In these seconds it is the same request.
static constexpr int64_t kRepeatSeconds = 5;

static constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1};

static std::atomic<bool> stopped = false;
static std::atomic<int> stopSignal = 0;    // the first one that asked
static std::atomic<int64_t> stoppedAt = 0; // seconds of the monotonic clock, plus 1
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free &&
                  std::atomic<int64_t>::is_always_lock_free,
              "set from a signal handler");

static void onSignal(int signal) {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  // Another thread may run this at the same time: the time decides which signal is the first.
  int64_t seconds = now.tv_sec + 1, first = 0;
  if (stoppedAt.compare_exchange_strong(first, seconds)) {
    stopSignal = signal;
    stopped = true;
  } else if (signal == SIGTERM && seconds - first > kRepeatSeconds) {
    std::signal(SIGTERM, SIG_DFL);
    std::raise(SIGTERM); // comes when this handler has returned
  }
}

void dtc::stopOnSignals() {
  struct sigaction action = {};
  action.sa_handler = onSignal;
  sigemptyset(&action.sa_mask);
  for (int signal : kStopSignals) {
    action.sa_flags = SA_RESTART | (signal == SIGINT ? SA_RESETHAND : 0);
    struct sigaction before = {};
    // nohup asks for a run that outlives its terminal.
    if (signal == SIGHUP && sigaction(signal, nullptr, &before) == 0 &&
        before.sa_handler == SIG_IGN)
      continue;
    sigaction(signal, &action, nullptr);
  }
  // A file that may not grow any more is an error as a full disk is.
  action.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &action, nullptr);
}

const std::atomic<bool> &dtc::stopRequested() { return stopped; }

int dtc::interruptedStatus() { return 128 + stopSignal; }

bool dtc::isInterruptedStatus(int status) {
  return std::ranges::find(kStopSignals, status - 128) != std::end(kStopSignals);
}
