//===- Findings.h - First cause of the end of a run -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CONTROL_FINDINGS_H
#define DTC_RUNTIME_CONTROL_FINDINGS_H

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dtc::runtime {

/// The end of a run that some process could not go on with.
struct RunEnd {
  std::string reason;
  /// Whether a process was lost, so that the run can go on when it is started again; else one has
  /// found an error.
  bool hasLostProcess = false;
};

/// Everything that the process that decides why a run ends has heard of the others.
class Findings {
public:
  using Clock = std::chrono::steady_clock;

  /// By process: its host.
  explicit Findings(std::vector<std::string> hosts) : hosts(std::move(hosts)) {}

  /// A process was lost; `how` says what was seen of it. The first word on a process holds.
  void lose(int64_t process, const std::string &how);
  /// A process has found an error. Of several texts the one holds that contains the first. `point`
  /// says how far it has come in what all processes do in the same order.
  void fail(int64_t process, const std::string &text, int64_t point = 0);
  /// Sets the current work of a process; empty: nothing that others could wait for.
  void setPlace(int64_t process, const std::string &text, Clock::time_point when);

  bool isEmpty() const { return losses.empty() && failures.empty(); }
  bool hasLosses() const { return !losses.empty(); }
  bool isLost(int64_t process) const;
  bool hasFailed(int64_t process) const;
  /// The point of the error that decide() names. There is one.
  int64_t firstPoint() const;

  /// The first cause: a loss rather than an error, which may follow from it; then that of the
  /// earlier point, then the one that came earlier. And what the other processes were at.
  RunEnd decide() const;

private:
  struct Word {
    int64_t process = 0;
    std::string text;
    Clock::time_point when;
    int64_t point = 0;
  };
  struct Place {
    std::string text;
    Clock::time_point when;
  };
  std::string name(int64_t process) const;
  std::string describeLoss(const Word &loss) const;
  const Word &firstFailure() const;
  std::string describeFailure() const;

  std::vector<std::string> hosts;
  std::vector<Word> losses, failures; // in the order in which they came
  std::map<int64_t, Place> places;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CONTROL_FINDINGS_H
