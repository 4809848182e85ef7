//===- RunMembership.cpp - Runs of several processes ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-run/RunMembership.h"

#ifdef DTC_HAS_MPI
#include "runtime/fabrics/mpi/MpiMessages.h"
#endif
#include "runtime/fabrics/processes/ReportedMessages.h"
#include "runtime/fabrics/sockets/SocketMessages.h"
#include "support/StartThread.h"
#include "tools/CommandLine.h"
#include "tools/dtc-run/LaunchProcesses.h"
#include "tools/dtc-run/Launchers.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <fmt/format.h>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <unistd.h>

namespace dtc {

using namespace dtc;
using namespace dtc::runtime;

namespace {

int statusOf(const RunEnd &end) { return end.hasLostProcess ? kLostStatus : 1; }

/// Ends this process, and the others theirs, because some have not come. The first one speaks.
[[noreturn]] void endUnmet(const std::string &why) {
  if (launchedRank() == 0)
    dtc::fail(why);
  else
    std::this_thread::sleep_for(std::chrono::seconds(1));
  _exit(kLostStatus);
}

#ifdef DTC_HAS_MPI
/// Ends the process after a time, unless it is destroyed before: MPI waits for ever for a process
/// that does not come. The first process speaks; each that follows waits three seconds longer, and
/// is ended by the launcher before, unless the first does not come itself.
class StartDeadline {
public:
  explicit StartDeadline(std::chrono::milliseconds timeout)
      : thread(startThread("the start of the processes", [this, timeout] { watch(timeout); })) {}
  ~StartDeadline() {
    {
      std::lock_guard lock(mutex);
      haveMet = true;
    }
    changed.notify_one();
    thread.join();
  }

private:
  void watch(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex);
    if (changed.wait_for(lock, timeout + std::chrono::seconds(3 * launchedRank()),
                         [&] { return haveMet; }))
      return;
    dtc::fail(fmt::format("the {} processes have not met within {} s: one has not started, or it "
                          "hangs; look for a host that does not answer, or give them more time "
                          "(--start-timeout)",
                          launchedProcesses(), timeout.count() / 1000));
    _exit(kLostStatus);
  }

  std::mutex mutex;
  std::condition_variable changed;
  bool haveMet = false;
  std::thread thread; // last: it uses the others
};

#endif

/// How far this process has come in the work that all do together, for other threads.
class Progress {
public:
  void follow(const std::shared_ptr<Messages> &theMessages) {
    std::lock_guard lock(mutex);
    messages = theMessages;
    begins = true;
  }
  /// At the end it is after all errors.
  int64_t point() const {
    std::lock_guard lock(mutex);
    if (std::shared_ptr<Messages> open = messages.lock())
      return open->agreementsBegun();
    return begins ? std::numeric_limits<uint32_t>::max() : 0;
  }

private:
  mutable std::mutex mutex;
  std::weak_ptr<Messages> messages;
  bool begins = false;
};

class NetworkMembership final : public RunMembership {
public:
  /// `owner`: the object that has opened the messages, and ends after them.
  NetworkMembership(std::shared_ptr<void> owner, std::shared_ptr<Messages> messages)
      : owner(std::move(owner)), network(std::move(messages)) {}

  MaybeError watch(ControlOptions options, MembershipHooks own) {
    Processes unwatched(network);
    options.isOneHost = unwatched.onHost() == unwatched.count();
    ControlHooks hooks;
    hooks.describe = std::move(own.describe);
    hooks.point = [progress = progress] { return progress->point(); };
    hooks.speak = [](const RunEnd &end) { dtc::fail(end.reason); };
    hooks.end = [network = std::weak_ptr(network), process = unwatched.process(),
                 record = std::move(own.record)](const RunEnd &end) {
      std::function<void()> write = record(process, end);
      if (auto open = network.lock())
        open->abortHere(Error{end.reason});
      if (write)
        write();
    };
    // Code that waits for a lost process, as MPI may, waits for ever.
    hooks.leave = [](const RunEnd &end) { _exit(statusOf(end)); };
    auto opened =
        ControlConnection::open(unwatched.process(), hostName(), options, std::move(hooks),
                                [&](const std::string &own) { return unwatched.all(own); });
    if (!opened)
      return opened.error();
    patience = 2 * options.heartbeatTimeout + options.grace;
    control = std::move(*opened);
    messages = std::make_shared<ReportedMessages>(
        network, [this](const Error &error) { control->report(error.message, progress->point()); });
    progress->follow(messages);
    return std::nullopt;
  }

  Processes processes() const override { return Processes(messages ? messages : network); }

  [[noreturn]] void fail(const Error &error) override {
    messages->abort(error);
    std::optional<RunEnd> end = control->awaitEnd(patience);
    if (!end)
      dtc::fail(error.message);
    std::fflush(stdout);
    // A launcher ends the others when one has ended with an error; MPI cannot end in good order.
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    std::_Exit(end ? statusOf(*end) : 1);
  }

private:
  std::unique_ptr<ControlConnection> control; // also watches the end of the network
  std::shared_ptr<void> owner;
  std::shared_ptr<Messages> network, messages;
  std::shared_ptr<Progress> progress = std::make_shared<Progress>();
  std::chrono::milliseconds patience{0};
};

/// The messages, and what owns them.
struct Opened {
  std::shared_ptr<void> owner;
  std::shared_ptr<Messages> messages;
};

#ifdef DTC_HAS_MPI
Expected<Opened> openMpi(std::chrono::milliseconds startTimeout) {
  std::optional<StartDeadline> deadline;
  try {
    deadline.emplace(startTimeout);
  } catch (const ThreadStartError &error) {
    return Error{error.what()};
  }
  Expected<std::unique_ptr<Mpi>> mpi = Mpi::start();
  if (!mpi)
    return mpi.error();
  if (int64_t found = (*mpi)->numProcesses(); found != launchedProcesses())
    return Error{fmt::format("the launcher has started {} processes, but {} sees {}; start them by "
                             "the mpirun of that MPI, or by srun --mpi=pmix",
                             launchedProcesses(), describeMpi(), found)};
  Expected<std::shared_ptr<Messages>> messages = (*mpi)->openMessages();
  if (!messages)
    return messages.error();
  return Opened{std::shared_ptr<Mpi>(std::move(*mpi)), std::move(*messages)};
}
#endif

Expected<Opened> openSockets(std::chrono::milliseconds startTimeout) {
  Expected<RendezvousOptions> options = rendezvousOfVariables();
  if (!options)
    return options.error();
  options->timeout = startTimeout;
  Expected<Rendezvous> met = meet(*options);
  if (!met) {
    // The first one speaks. A launcher ends the others then; where it does not come, they do.
    std::this_thread::sleep_for(std::min<std::chrono::seconds>(
        std::chrono::seconds(15), options->process * std::chrono::seconds(3)));
    return met.error();
  }
  if (!met->givenUp.empty())
    endUnmet(met->givenUp);
  Expected<std::shared_ptr<Messages>> messages =
      openSocketMessages(options->process, std::move(*met));
  if (!messages)
    return messages.error();
  return Opened{nullptr, std::move(*messages)};
}

#ifndef DTC_HAS_MPI
Expected<Opened> openMpi(std::chrono::milliseconds startTimeout) {
  if (std::getenv(kAddressVariable) && std::getenv(kPortVariable))
    return openSockets(startTimeout);
  return Error{fmt::format("mpirun or srun has started {} processes, but this build of dtc has no "
                           "MPI: they exchange tensors over sockets, and meet at {} and {}; set "
                           "these in all of them (mpirun -x {}=127.0.0.1 -x {}=29500, on one "
                           "host), or build with -DDTC_MPI=ON",
                           launchedProcesses(), kAddressVariable, kPortVariable, kAddressVariable,
                           kPortVariable)};
}
#endif

} // namespace

Expected<std::unique_ptr<RunMembership>> RunMembership::join(const ControlOptions &control,
                                                             std::chrono::milliseconds startTimeout,
                                                             MembershipHooks hooks) {
  Expected<Opened> opened =
      launchedBy() == LaunchedBy::Mpi ? openMpi(startTimeout) : openSockets(startTimeout);
  if (!opened)
    return opened.error();
  auto membership = std::make_unique<NetworkMembership>(opened->owner, opened->messages);
  *opened = Opened();
  if (MaybeError error = membership->watch(control, std::move(hooks))) {
    // All know it, and end together.
    if (membership->processes().isFirst())
      return *error;
    membership.reset();
    std::_Exit(1);
  }
  return std::unique_ptr<RunMembership>(std::move(membership));
}

} // namespace dtc
