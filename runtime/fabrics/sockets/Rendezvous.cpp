//===- Rendezvous.cpp - Rendezvous of processes ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/sockets/Rendezvous.h"

#include "runtime/control/ControlAddress.h"
#include "runtime/fabrics/processes/Processes.h"
#include "runtime/fabrics/sockets/SocketAddress.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <poll.h>
#include <sstream>
#include <sys/socket.h>
#include <utility>

namespace dtc::runtime {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// Before what a process says first.
static constexpr const char *kGreeting = "dtc-run 1";
/// Most bytes of the message of a process, and of the list of all.
static constexpr size_t kMostHello = 4096, kMostList = 64 << 20;
static constexpr size_t kMostStrangers = 1024;
/// A process waits this much longer for the list of process 0 than process 0 waits for the others.
static constexpr auto kPatience = 5s;

namespace {

//===----------------------------------------------------------------------===//
// Messages of processes
//===----------------------------------------------------------------------===//

/// The first word of a process, and its entry in the list of all.
struct Hello {
  int64_t process = -1, numProcesses = 0;
  std::string key, host, address;
  int port = 0;

  std::string encode() const {
    return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n", kGreeting, process, numProcesses, key, host,
                       address, port);
  }
  static std::optional<Hello> decode(const std::string &text) {
    std::istringstream lines(text);
    Hello hello;
    std::string greeting, process, count, port;
    for (std::string *line :
         {&greeting, &process, &count, &hello.key, &hello.host, &hello.address, &port})
      if (!std::getline(lines, *line))
        return std::nullopt;
    if (greeting != kGreeting)
      return std::nullopt;
    hello.process = std::strtoll(process.c_str(), nullptr, 10);
    hello.numProcesses = std::strtoll(count.c_str(), nullptr, 10);
    hello.port = static_cast<int>(std::strtol(port.c_str(), nullptr, 10));
    return hello;
  }
};

//===----------------------------------------------------------------------===//
// Finding each other
//===----------------------------------------------------------------------===//

/// Connections at a listener that are not known yet, and the bytes that each has sent.
class Strangers {
public:
  explicit Strangers(const SocketListener &listener) : listener(listener) {}

  /// Waits for the next whole hello; none at the deadline.
  std::optional<std::pair<Hello, OwnedFile>> next(Clock::time_point deadline) {
    while (true) {
      for (auto each = waiting.begin(); each != waiting.end();) {
        auto hello = hear(*each);
        if (hello) {
          std::pair<Hello, OwnedFile> found(std::move(*hello), std::move(each->file));
          waiting.erase(each);
          return found;
        }
        each = each->isGone ? waiting.erase(each) : each + 1;
      }
      auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      if (left.count() <= 0)
        return std::nullopt;
      std::vector<pollfd> files = {{listener.file.get(), POLLIN, 0}};
      for (const Stranger &each : waiting)
        files.push_back({each.file.get(), POLLIN, 0});
      poll(files.data(), files.size(), static_cast<int>(std::min<int64_t>(left.count(), 1000)));
      while (OwnedFile file{
          accept4(listener.file.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)}) {
        if (waiting.size() >= kMostStrangers)
          waiting.erase(waiting.begin());
        waiting.push_back({std::move(file), {}, false});
      }
    }
  }

private:
  struct Stranger {
    OwnedFile file;
    std::string received;
    bool isGone = false;
  };

  static std::optional<Hello> hear(Stranger &stranger) {
    char bytes[kMostHello];
    ssize_t count = ::recv(stranger.file.get(), bytes, sizeof(bytes), 0);
    if (count > 0)
      stranger.received.append(bytes, static_cast<size_t>(count));
    stranger.isGone = count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
    auto frame = takeFramed(stranger.received, kMostHello);
    stranger.isGone |= !frame;
    if (!frame || !*frame)
      return std::nullopt;
    std::optional<Hello> hello = Hello::decode(**frame);
    stranger.isGone |= !hello;
    return hello;
  }

  const SocketListener &listener;
  std::vector<Stranger> waiting;
};

/// Why this run refuses a hello; empty if it takes it.
std::string refusal(const Hello &hello, const RendezvousOptions &options,
                    const std::vector<OwnedFile> &known) {
  if (!equalSecrets(hello.key, options.key))
    return "it has another key; DTC_RUN_KEY has to be the same in all processes";
  if (hello.numProcesses != options.numProcesses)
    return fmt::format("it was told of {} processes, process 0 of {}; WORLD_SIZE has to be the "
                       "same in all",
                       hello.numProcesses, options.numProcesses);
  if (hello.process <= 0 || hello.process >= options.numProcesses)
    return fmt::format("there is no process {} of {}; RANK is from 0 to {}", hello.process,
                       options.numProcesses, options.numProcesses - 1);
  if (known[static_cast<size_t>(hello.process)])
    return fmt::format("there is another process {}; each needs a RANK of its own", hello.process);
  return "";
}

/// "[1, 5, 7]".
std::string missing(const Rendezvous &met, int64_t own) {
  std::vector<int64_t> numbers;
  for (int64_t process = 0; process < std::ssize(met.connections); ++process)
    if (process != own && !met.connections[static_cast<size_t>(process)] && numbers.size() < 16)
      numbers.push_back(process);
  return fmt::format("{}", numbers);
}

size_t countMissing(const Rendezvous &met) {
  return static_cast<size_t>(
             std::ranges::count_if(met.connections, [](const OwnedFile &file) { return !file; })) -
         1;
}

/// Tells those that have come.
Rendezvous giveUp(const Rendezvous &met, const std::string &why) {
  for (const OwnedFile &file : met.connections)
    if (file)
      (void)sendAll(file.get(), framed("end\n" + why), Clock::now() + 1s);
  Rendezvous none;
  none.givenUp = why;
  return none;
}

Expected<Rendezvous> gather(const RendezvousOptions &options, Clock::time_point deadline) {
  auto at = [&](const std::string &why) {
    return Error{
        fmt::format("process 0 cannot listen at {} port {} (MASTER_ADDR, MASTER_PORT): {}; "
                    "choose an address of its host and a port that is free",
                    options.address, options.port, why)};
  };
  Expected<SocketListener> listener = listenAt(options.address, options.port);
  if (!listener)
    return at(listener.error().message);
  Rendezvous met;
  met.connections.resize(static_cast<size_t>(options.numProcesses));
  met.hosts.resize(met.connections.size());
  met.hosts.front() = hostName();
  std::vector<Hello> all(met.connections.size());
  all.front().host = met.hosts.front();
  Strangers strangers(*listener);
  while (countMissing(met) > 0) {
    auto next = strangers.next(deadline);
    if (!next)
      return giveUp(
          met, fmt::format("{} of {} processes have not come to {} port {} within {} s, among them "
                           "{}: they have not started, or do not reach this host; give them more "
                           "time (--start-timeout)",
                           countMissing(met), options.numProcesses, options.address, options.port,
                           options.timeout.count() / 1000, missing(met, 0)));
    auto &[hello, file] = *next;
    if (std::string why = refusal(hello, options, met.connections); !why.empty()) {
      // A process that does not know the key hears the refusal too, but nothing of the run.
      (void)sendAll(file.get(), framed("no\n" + why), Clock::now() + 1s);
      continue;
    }
    auto process = static_cast<size_t>(hello.process);
    all[process] = hello;
    met.hosts[process] = hello.host;
    met.connections[process] = std::move(file);
  }
  Expected<std::string> secret = randomSecret();
  if (!secret)
    return secret.error();
  std::string list = "yes\n";
  for (char byte : *secret)
    list += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  list += "\n";
  for (const Hello &each : all)
    list += fmt::format("{}\n{}\n{}\n", each.host, each.address, each.port);
  for (size_t process = 1; process < met.connections.size(); ++process)
    if (MaybeError error = sendAll(met.connections[process].get(), framed(list), deadline))
      return error->inContext(fmt::format("process {} on {}", process, met.hosts[process]));
  return met;
}

/// Joins a run as a process other than the first one, to which `file` is the connection.
Expected<Rendezvous> join(const RendezvousOptions &options, OwnedFile file,
                          Clock::time_point deadline) {
  auto withFirst = [&](const std::string &why) {
    return Error{fmt::format("process {}: process 0 at {} port {}: {}", options.process,
                             options.address, options.port, why)};
  };
  // By the network over which it reaches the first one, the others reach it, unless that is within
  // this host alone.
  std::string address = ownEnd(file.get()).address;
  if (isLoopback(address) && !isLoopback(options.address))
    if (Expected<std::string> ofHost = addressOfHost(""))
      address = *ofHost;
  Expected<SocketListener> listener = listenAt(address, 0);
  if (!listener)
    return withFirst("this process cannot listen: " + listener.error().message);
  Hello own{options.process, options.numProcesses,  options.key,
            hostName(),      listener->end.address, listener->end.port};
  if (MaybeError error = sendAll(file.get(), framed(own.encode()), deadline))
    return withFirst(error->message);
  // Process 0 may have begun to wait later, and says why it gives up.
  Expected<std::string> answer = receiveFramed(file.get(), kMostList, deadline + kPatience);
  if (!answer)
    return withFirst(answer.error().message);
  if (answer->starts_with("no\n"))
    return withFirst(answer->substr(3));
  if (answer->starts_with("end\n")) {
    Rendezvous none;
    none.givenUp = answer->substr(4);
    return none;
  }
  if (!answer->starts_with("yes\n"))
    return withFirst("it is no dtc-run of this version");
  std::istringstream lines(*answer);
  std::string word, secret, host, port;
  std::getline(lines, word);
  std::getline(lines, secret);
  Rendezvous met;
  met.connections.resize(static_cast<size_t>(options.numProcesses));
  met.connections.front() = std::move(file);
  RendezvousOptions inner = options;
  inner.key = secret;
  for (int64_t process = 0; process < options.numProcesses; ++process) {
    std::getline(lines, host);
    std::getline(lines, address);
    std::getline(lines, port);
    met.hosts.push_back(host);
    if (process == 0 || process >= options.process)
      continue;
    auto connected =
        connectTo(address, static_cast<int>(std::strtol(port.c_str(), nullptr, 10)), deadline);
    auto with = [&](const std::string &why) {
      return Error{fmt::format("process {}: process {} on {} at {} port {}: {}", options.process,
                               process, host, address, port, why)};
    };
    if (!connected)
      return with(connected.error().message);
    own.key = secret;
    if (MaybeError error = sendAll(connected->get(), framed(own.encode()), deadline))
      return with(error->message);
    met.connections[static_cast<size_t>(process)] = std::move(*connected);
  }
  Strangers strangers(*listener);
  while (countMissing(met) > 0) {
    auto next = strangers.next(deadline);
    if (!next)
      return Error{fmt::format("process {}: others have not connected to it within {} s, among "
                               "them {}; are their hosts able to reach {} on {}?",
                               options.process, options.timeout.count() / 1000,
                               missing(met, options.process), listener->end.address, hostName())};
    if (refusal(next->first, inner, met.connections).empty())
      met.connections[static_cast<size_t>(next->first.process)] = std::move(next->second);
  }
  return met;
}

} // namespace

/// A key that would not come through, so that the others would be waited for in vain.
static MaybeError checkKey(const std::string &key) {
  if (key.size() > kMostKeyBytes)
    return Error{
        fmt::format("DTC_RUN_KEY has {} bytes, expected at most {}; give all processes the "
                    "same shorter key",
                    key.size(), kMostKeyBytes)};
  if (key.find('\n') != std::string::npos)
    return Error{
        "DTC_RUN_KEY has more than one line, expected one; give all processes a key without "
        "a line feed"};
  return std::nullopt;
}

Expected<Rendezvous> meet(const RendezvousOptions &options) {
  if (MaybeError error = checkKey(options.key))
    return *error;
  Clock::time_point deadline = Clock::now() + options.timeout;
  if (options.process == 0)
    return gather(options, deadline);
  Expected<OwnedFile> first = connectTo(options.address, options.port, deadline);
  if (!first)
    return Error{fmt::format("process {} cannot reach process 0 at {} port {} (MASTER_ADDR, "
                             "MASTER_PORT): {}",
                             options.process, options.address, options.port,
                             first.error().message)};
  return join(options, std::move(*first), deadline);
}

} // namespace dtc::runtime
