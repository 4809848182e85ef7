//===- ControlLoop.h - The thread of a control connection ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CONTROL_CONTROLLOOP_H
#define DTC_RUNTIME_CONTROL_CONTROLLOOP_H

#include "runtime/control/ControlConnection.h"
#include "runtime/control/ControlSocket.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace dtc::runtime {

/// The data that each process gives the others before they are connected.
struct ControlMember {
  std::string endpoint, host, secret; // that of process 0 counts

  std::string encode() const { return endpoint + '\n' + host + '\n' + secret; }
  static Expected<ControlMember> decode(const std::string &text);
};

class ControlConnection::Loop {
public:
  Loop(int64_t process, ControlListener listener, std::vector<ControlMember> members,
       const ControlOptions &options, ControlHooks hooks);
  ~Loop();

  void report(const std::string &error, int64_t point);
  std::optional<RunEnd> awaitEnd(std::chrono::milliseconds atMost) const;

private:
  using Clock = ControlSocket::Clock;

  /// A process that has connected to this one.
  struct Child {
    std::optional<ControlSocket> socket; // none: it has not connected yet, or is gone
    Clock::time_point lastHeard;
    bool isDone = false;      // has said goodbye, or is lost
    bool hasAnswered = false; // with its current work, since the end is being decided
  };
  /// A connection of an unknown process.
  struct Stranger {
    ControlSocket socket;
    Clock::time_point since;
  };
  /// The process that this one is connected to, and those before, which may wake again.
  struct Parent {
    ControlSocket socket;
    Clock::time_point lastHeard;
    bool hasSpoken = false;
  };

  bool decides() const { return above == process; }
  bool mayLeave() const;

  void run();
  void wait();
  void takeOwnReports();
  void accept();
  void meetStrangers();
  bool welcome(Stranger &stranger);
  void hearChildren();
  void hearChild(int64_t number, Child &child);
  void hearParent();
  void connectAbove(const std::string &how);
  MaybeError greetAbove(Clock::time_point since);
  void decideFromNow();
  void tell(const ControlFrame &report);
  void find(const ControlFrame &report);
  void beat();
  bool mayFindTheSame() const;
  void decide();
  void end(const RunEnd &reason);
  void sendToChildren(const ControlFrame &frame);
  void flush();
  void sayGoodbye();
  std::string describe() const { return hooks.describe ? hooks.describe() : ""; }

  const int64_t process;
  const ControlListener listener;
  const std::vector<ControlMember> members;
  const ControlOptions options;
  const ControlHooks hooks;
  OwnedFile wake;

  // Used by the thread alone.
  Findings findings;
  int64_t above = 0; // the process that decides, as far as is known
  std::optional<Parent> parent;
  std::vector<ControlSocket> formerParents;
  bool parentIsDone = false; // has said goodbye
  std::map<int64_t, Child> children;
  std::vector<Stranger> strangers;
  std::vector<ControlFrame> reports; // all of this process and those that came through it
  Clock::time_point now, lastBeat, askedAt, endedAt;
  std::chrono::milliseconds interval, window{500};
  bool isAsking = false, ended = false, hasLeft = false;

  mutable std::mutex mutex; // of what follows
  mutable std::condition_variable changed;
  std::vector<ControlFrame> ownReports;
  std::optional<RunEnd> outcome;
  bool stopping = false;

  std::thread thread; // last: it uses the others
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CONTROL_CONTROLLOOP_H
