//===- StopSignals.cpp - Signals that end a run ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-run/StopSignals.h"

#include <csignal>

static std::atomic<bool> stopped = false;
static std::atomic<int> stopSignal = 0; // the first one that asked
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "set from a signal handler");

void dtc::stopOnSignals() {
  struct sigaction action = {};
  action.sa_handler = [](int signal) {
    int none = 0;
    stopSignal.compare_exchange_strong(none, signal);
    stopped = true;
  };
  sigemptyset(&action.sa_mask);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1}) {
    action.sa_flags = SA_RESTART | (signal == SIGINT || signal == SIGTERM ? SA_RESETHAND : 0);
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
