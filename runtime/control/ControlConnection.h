//===- ControlConnection.h - Control connection between processes ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The processes of a run watch each other over TCP, whatever network their tensors take. Process 0
// listens, the others connect to it; both ends send a heartbeat about once a second. A connection
// that is closed without a goodbye, and one on which nothing comes for a time, means that a process
// is lost. Process 0 finds the first cause, prints it, and tells all that the run ends. When it is
// lost itself, the others turn to the process with the lowest number that they reach.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CONTROL_CONTROLCONNECTION_H
#define DTC_RUNTIME_CONTROL_CONTROLCONNECTION_H

#include "runtime/control/Findings.h"
#include "support/Error.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dtc::runtime {

struct ControlOptions {
  /// Where it listens: see addressOfHost().
  std::string network;
  /// All processes are on this host: it listens on its loopback address, if `network` is empty.
  bool isOneHost = false;
  /// A process is lost after this time without a word. Heartbeats come five times as often, or once
  /// a second.
  std::chrono::milliseconds heartbeatTimeout{10000};
  /// How long a process has to end by itself once the run ends.
  std::chrono::milliseconds grace{3000};
};

/// Functions that the thread of the connection calls; each may be empty. None may block for long.
struct ControlHooks {
  /// Describes the current work of this process, for the others to print; empty if nothing waits
  /// for it.
  std::function<std::string()> describe;
  /// The progress of this process in the work that all do in the same order. Where another process
  /// has found an error that this one, which decides, may still find too, this one waits for that:
  /// an error that all find is reported as this one's own.
  std::function<int64_t()> point;
  /// The run ends. Called in the one process that speaks for all, before the others are told.
  std::function<void(const RunEnd &)> speak;
  /// The run ends: makes what waits for other processes give up. In each process, once.
  std::function<void(const RunEnd &)> end;
  /// This process has not ended within ControlOptions::grace.
  std::function<void(const RunEnd &)> leave;
};

/// The end of one process. All processes open theirs together.
class ControlConnection {
public:
  /// Gives each process the texts of all, by process: the way in which they meet before they are
  /// connected.
  using Exchange = std::function<Expected<std::vector<std::string>>(const std::string &)>;

  static Expected<std::unique_ptr<ControlConnection>> open(int64_t process, const std::string &host,
                                                           const ControlOptions &options,
                                                           ControlHooks hooks,
                                                           const Exchange &exchange);
  /// Says goodbye: the others do not take it for lost.
  ~ControlConnection();
  ControlConnection(const ControlConnection &) = delete;
  ControlConnection &operator=(const ControlConnection &) = delete;

  /// Tells all that this process has found an error, which ends the run. From any thread. `point`
  /// is ControlHooks::point() where it was found.
  void report(const std::string &error, int64_t point = 0);
  /// Waits for the end of the run, as some process has decided it; none if there is none yet.
  std::optional<RunEnd> awaitEnd(std::chrono::milliseconds atMost) const;

private:
  class Loop;
  explicit ControlConnection(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CONTROL_CONTROLCONNECTION_H
