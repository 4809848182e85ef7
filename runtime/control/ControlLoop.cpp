//===- ControlLoop.cpp - The thread of a control connection ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/control/ControlLoop.h"

#include "support/StartThread.h"

#include <algorithm>
#include <ctime>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace dtc::runtime {

using namespace std::chrono_literals;

/// Peers that have not said who they are, and how long they have to.
static constexpr size_t kMostStrangers = 64;
static constexpr auto kStrangerTime = 5s;
/// How long the next process has to answer once the one that decided is lost.
static constexpr auto kSuccessionTime = 2s;
/// How long other processes may take to report the same error.
static constexpr auto kSettleTime = 300ms;
/// How long this process may take to come to the point where another one has found an error.
static constexpr auto kOwnErrorTime = 15s;
static constexpr size_t kMostFrame = kControlTextBytes + 64;

/// "23:41:07 UTC".
static std::string clockTime(std::chrono::steady_clock::duration ago = {}) {
  std::time_t time =
      std::time(nullptr) - std::chrono::duration_cast<std::chrono::seconds>(ago).count();
  std::tm parts = {};
  gmtime_r(&time, &parts);
  return fmt::format("{:02}:{:02}:{:02} UTC", parts.tm_hour, parts.tm_min, parts.tm_sec);
}

static std::string closedText() {
  return fmt::format("its control connection was closed without a goodbye at {}: it was killed, or "
                     "it crashed",
                     clockTime());
}

static std::string silentText(std::chrono::steady_clock::duration silent) {
  return fmt::format("nothing has come from it for {:.1f} s, since {}: it is stopped or hangs, or "
                     "its host or the network to it is down (--heartbeat-timeout)",
                     std::chrono::duration<double>(silent).count(), clockTime(silent));
}

ControlConnection::Loop::Loop(int64_t process, ControlListener theListener,
                              std::vector<ControlMember> theMembers, const ControlOptions &options,
                              ControlHooks hooks)
    : process(process), listener(std::move(theListener)), members(std::move(theMembers)),
      options(options), hooks(std::move(hooks)), wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      findings([&] {
        std::vector<std::string> hosts;
        for (const ControlMember &member : members)
          hosts.push_back(member.host);
        return hosts;
      }()),
      now(Clock::now()),
      interval(std::min<std::chrono::milliseconds>(
          1s, std::max<std::chrono::milliseconds>(1ms, options.heartbeatTimeout / 5))) {
  thread = startThread("the control connection", [this] { run(); });
}

ControlConnection::Loop::~Loop() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  eventfd_write(wake.get(), 1);
  thread.join();
}

void ControlConnection::Loop::report(const std::string &error, int64_t point) {
  {
    std::lock_guard lock(mutex);
    ownReports.push_back({ControlFrame::Report, false, process, error, point});
  }
  eventfd_write(wake.get(), 1);
}

std::optional<RunEnd> ControlConnection::Loop::awaitEnd(std::chrono::milliseconds atMost) const {
  std::unique_lock lock(mutex);
  changed.wait_for(lock, atMost, [&] { return outcome.has_value(); });
  return outcome;
}

//===----------------------------------------------------------------------===//
// The thread
//===----------------------------------------------------------------------===//

void ControlConnection::Loop::run() {
  if (decides())
    decideFromNow();
  else
    connectAbove("");
  while (true) {
    flush();
    wait();
    Clock::time_point last = std::exchange(now, Clock::now());
    // This process was stopped, or had no core: the messages of the others are still to be read.
    if (now - last > options.heartbeatTimeout / 2) {
      for (auto &[number, child] : children)
        child.lastHeard = now;
      if (parent)
        parent->lastHeard = now;
    }
    if (mayLeave())
      break;
    takeOwnReports();
    accept();
    meetStrangers();
    hearChildren();
    hearParent();
    beat();
    decide();
    if (ended && !hasLeft && now - endedAt > options.grace) {
      hasLeft = true;
      if (hooks.leave)
        hooks.leave(*outcome);
    }
  }
  sayGoodbye();
}

/// Once all processes that connect to this one have done so, and it to its own: they are to hear
/// its goodbye. Those that never do are lost in the end.
bool ControlConnection::Loop::mayLeave() const {
  {
    std::lock_guard lock(mutex);
    if (!stopping)
      return false;
  }
  if (ended)
    return true;
  if (!decides())
    return !parent || parent->hasSpoken;
  return std::ranges::all_of(
      children, [](const auto &each) { return each.second.isDone || each.second.socket; });
}

/// Waits until something comes or is due.
void ControlConnection::Loop::wait() {
  std::vector<pollfd> files = {{wake.get(), POLLIN, 0}, {listener.file.get(), POLLIN, 0}};
  auto add = [&](const ControlSocket &socket) {
    files.push_back(
        {socket.file(), static_cast<short>(socket.hasOutput() ? POLLIN | POLLOUT : POLLIN), 0});
  };
  for (const auto &[number, child] : children)
    if (child.socket)
      add(*child.socket);
  for (const Stranger &stranger : strangers)
    add(stranger.socket);
  if (parent)
    add(parent->socket);
  auto most = isAsking && !ended ? std::min<std::chrono::milliseconds>(interval, 20ms) : interval;
  poll(files.data(), files.size(), static_cast<int>(std::max<int64_t>(most.count() / 2, 1)));
  eventfd_t count = 0;
  if (files.front().revents != 0)
    eventfd_read(wake.get(), &count);
}

void ControlConnection::Loop::flush() {
  for (auto &[number, child] : children)
    if (child.socket)
      (void)child.socket->flush(); // a broken connection is found by reading
  if (parent)
    (void)parent->socket.flush();
  for (ControlSocket &former : formerParents)
    (void)former.flush();
}

void ControlConnection::Loop::sayGoodbye() {
  ControlFrame goodbye{ControlFrame::Goodbye, false, process};
  sendToChildren(goodbye);
  if (parent)
    parent->socket.send(goodbye);
  flush();
}

void ControlConnection::Loop::sendToChildren(const ControlFrame &frame) {
  for (auto &[number, child] : children)
    if (child.socket)
      child.socket->send(frame);
}

void ControlConnection::Loop::beat() {
  if (now - lastBeat < interval)
    return;
  lastBeat = now;
  ControlFrame heartbeat{ControlFrame::Heartbeat, false, process, describe()};
  sendToChildren(heartbeat);
  if (parent)
    parent->socket.send(heartbeat);
}

//===----------------------------------------------------------------------===//
// Processes that connect to this one
//===----------------------------------------------------------------------===//

void ControlConnection::Loop::accept() {
  // However many come, the processes of the run are heard in between.
  for (size_t accepted = 0; accepted < kMostStrangers; ++accepted) {
    OwnedFile file = listener.accept();
    if (!file)
      return;
    Stranger stranger{ControlSocket(std::move(file)), now};
    if (!welcome(stranger))
      continue;
    if (strangers.size() >= kMostStrangers)
      strangers.erase(strangers.begin());
    strangers.push_back(std::move(stranger));
  }
}

void ControlConnection::Loop::meetStrangers() {
  std::vector<Stranger> left;
  for (Stranger &stranger : strangers)
    if (welcome(stranger))
      left.push_back(std::move(stranger));
  strangers = std::move(left);
}

/// Whether it stays a stranger. One that is not of this run is closed, and nobody is told.
bool ControlConnection::Loop::welcome(Stranger &stranger) {
  bool isOpen = stranger.socket.receive();
  auto frame = stranger.socket.takeFrame(kControlHelloBytes);
  if (!frame)
    return false;
  if (!*frame)
    return isOpen && now - stranger.since < kStrangerTime;
  const ControlFrame &hello = **frame;
  if (hello.kind != ControlFrame::Hello || !equalSecrets(hello.text, members.front().secret) ||
      hello.process >= static_cast<int64_t>(members.size()) || hello.process == process)
    return false;
  Child &child = children[hello.process];
  if (child.socket || child.isDone)
    return false;
  child.socket = std::move(stranger.socket);
  child.lastHeard = now;
  child.socket->send({ControlFrame::Heartbeat, false, process});
  if (isAsking)
    child.socket->send({ControlFrame::StateRequest, false, process});
  if (ended)
    child.socket->send({ControlFrame::End, outcome->hasLostProcess, process, outcome->reason});
  return false;
}

void ControlConnection::Loop::hearChildren() {
  for (auto &[number, child] : children)
    if (!child.isDone || child.socket)
      hearChild(number, child);
}

void ControlConnection::Loop::hearChild(int64_t number, Child &child) {
  bool isOpen = !child.socket || child.socket->receive();
  while (child.socket) {
    auto frame = child.socket->takeFrame(kMostFrame);
    if (!frame)
      isOpen = false;
    if (!frame || !*frame)
      break;
    child.lastHeard = now;
    const ControlFrame &heard = **frame;
    if (heard.kind == ControlFrame::Goodbye)
      child.isDone = true;
    else if (heard.kind == ControlFrame::Report &&
             heard.process < static_cast<int64_t>(members.size()))
      tell(heard);
    else if (heard.kind == ControlFrame::End)
      end({heard.text, heard.flag});
    else if (heard.kind == ControlFrame::Heartbeat || heard.kind == ControlFrame::State)
      findings.setPlace(number, heard.text, now);
    child.hasAnswered |= heard.kind == ControlFrame::State;
  }
  if (!isOpen)
    child.socket.reset();
  bool isSilent = now - child.lastHeard > options.heartbeatTimeout;
  if (child.isDone || (isOpen && !isSilent))
    return;
  // Its connection stays, should it only sleep: it is to hear of the end.
  child.isDone = true;
  tell({ControlFrame::Report, true, number,
        isOpen ? silentText(now - child.lastHeard) : closedText()});
}

//===----------------------------------------------------------------------===//
// The process that this one is connected to
//===----------------------------------------------------------------------===//

/// Turns to the process that decides: the first one, or, where that was lost in this way, the next.
void ControlConnection::Loop::connectAbove(const std::string &how) {
  for (std::string lost = how;;) {
    if (parent)
      formerParents.push_back(std::move(parent->socket));
    parent.reset();
    if (!lost.empty()) {
      reports.push_back({ControlFrame::Report, true, above, lost});
      ++above;
    }
    if (decides())
      return decideFromNow();
    MaybeError error = greetAbove(now);
    if (!error)
      return;
    lost = error->message;
  }
}

/// `since`: when it was last heard of.
MaybeError ControlConnection::Loop::greetAbove(Clock::time_point since) {
  auto socket = ControlSocket::connect(members[static_cast<size_t>(above)].endpoint);
  if (!socket)
    return socket.error();
  parent.emplace(Parent{std::move(*socket), since});
  parent->socket.send({ControlFrame::Hello, false, process, members.front().secret});
  for (const ControlFrame &report : reports)
    parent->socket.send(report);
  if (!reports.empty())
    parent->socket.send({ControlFrame::State, false, process, describe()});
  return std::nullopt;
}

/// Processes that have not connected yet have as long to do so as one that is silent.
void ControlConnection::Loop::decideFromNow() {
  for (int64_t other = process + 1; other < static_cast<int64_t>(members.size()); ++other)
    if (!children.count(other))
      children[other].lastHeard = now;
  for (const ControlFrame &report : reports)
    find(report);
}

void ControlConnection::Loop::hearParent() {
  if (!parent)
    return;
  bool isOpen = parent->socket.receive();
  while (true) {
    auto frame = parent->socket.takeFrame(kMostFrame);
    if (!frame)
      isOpen = false;
    if (!frame || !*frame)
      break;
    parent->lastHeard = now;
    parent->hasSpoken = true;
    const ControlFrame &heard = **frame;
    if (heard.kind == ControlFrame::Goodbye)
      parentIsDone = true;
    else if (heard.kind == ControlFrame::Heartbeat)
      findings.setPlace(above, heard.text, now);
    else if (heard.kind == ControlFrame::StateRequest)
      parent->socket.send({ControlFrame::State, false, process, describe()});
    else if (heard.kind == ControlFrame::End)
      end({heard.text, heard.flag});
  }
  if (!isOpen && (parentIsDone || ended)) {
    parent.reset();
    return;
  }
  auto silent = now - parent->lastHeard;
  Clock::duration limit = options.heartbeatTimeout;
  if (above > 0 && !parent->hasSpoken)
    limit = std::min<Clock::duration>(limit, kSuccessionTime);
  if (ended || (isOpen && silent <= limit))
    return;
  // The other end counts whom it has not heard yet as strangers, and turns some away where there
  // are many.
  if (!isOpen && silent <= limit && !parent->hasSpoken && !parent->socket.wasRefused() &&
      !greetAbove(parent->lastHeard))
    return;
  // The others notice that a connection was closed when this one does, but silence when it is due.
  window = isOpen ? 2500ms : 700ms;
  connectAbove(isOpen ? silentText(silent) : closedText());
}

//===----------------------------------------------------------------------===//
// The end of the run
//===----------------------------------------------------------------------===//

void ControlConnection::Loop::takeOwnReports() {
  std::vector<ControlFrame> taken;
  {
    std::lock_guard lock(mutex);
    taken.swap(ownReports);
  }
  for (const ControlFrame &report : taken) {
    if (!parent && !decides()) { // it has said goodbye
      above = process;
      decideFromNow();
    }
    tell(report);
  }
}

/// Passes a report on to the process that decides.
void ControlConnection::Loop::tell(const ControlFrame &report) {
  if (ended)
    return;
  reports.push_back(report);
  if (decides())
    find(report);
  else if (parent)
    parent->socket.send(report);
}

void ControlConnection::Loop::find(const ControlFrame &report) {
  // Others do not reach this one, which lives.
  if (report.flag && report.process == process)
    return;
  if (report.flag)
    findings.lose(report.process, report.text);
  else
    findings.fail(report.process, report.text, report.point);
  if (report.flag)
    children[report.process].isDone = true;
}

/// Whether this process is still on the way to the point where another has found an error.
bool ControlConnection::Loop::mayFindTheSame() const {
  return hooks.point && !findings.hasLosses() && !findings.hasFailed(process) &&
         now - askedAt < kOwnErrorTime && hooks.point() <= findings.firstPoint() &&
         describe().empty(); // in a step devices may wait for those of the other
}

void ControlConnection::Loop::decide() {
  if (ended || !decides() || findings.isEmpty())
    return;
  if (!isAsking) {
    isAsking = true;
    askedAt = now;
    sendToChildren({ControlFrame::StateRequest, false, process});
  }
  bool haveAllAnswered = std::ranges::all_of(
      children, [](const auto &each) { return each.second.isDone || each.second.hasAnswered; });
  if (now - askedAt < window &&
      !(haveAllAnswered && (findings.hasLosses() || now - askedAt > kSettleTime)))
    return;
  if (mayFindTheSame())
    return;
  findings.setPlace(process, describe(), now);
  for (const auto &[number, child] : children)
    if (!child.isDone && !child.socket)
      findings.setPlace(number, "is not connected", now);
  RunEnd reason = findings.decide();
  if (hooks.speak)
    hooks.speak(reason);
  end(reason);
}

void ControlConnection::Loop::end(const RunEnd &reason) {
  if (std::exchange(ended, true))
    return;
  endedAt = now;
  ControlFrame frame{ControlFrame::End, reason.hasLostProcess, process, reason.reason};
  sendToChildren(frame);
  // One that was only stopped is to hear that it need not look for the others.
  for (ControlSocket &former : formerParents)
    former.send(frame);
  flush();
  if (hooks.end)
    hooks.end(reason);
  {
    std::lock_guard lock(mutex);
    outcome = reason;
  }
  changed.notify_all();
}

} // namespace dtc::runtime
