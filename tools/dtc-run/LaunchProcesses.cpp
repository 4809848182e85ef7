//===- LaunchProcesses.cpp - Starts the processes of a run -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-run/LaunchProcesses.h"

#include "runtime/control/ControlSocket.h"
#include "tools/CommandLine.h"
#include "tools/dtc-run/ErrorRelay.h"
#include "tools/dtc-run/Launchers.h"
#include "tools/dtc-run/StopSignals.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <memory>
#include <spawn.h>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

namespace dtc {

using namespace dtc;
using namespace dtc::runtime;

/// In the environment of the processes: whether the output of the one that started them, to which
/// theirs goes, is a terminal.
static constexpr const char *kTerminalVariable = "DTC_OUTPUT_IS_TERMINAL";

/// When a process was lost that these were started for: nanoseconds of the steady clock, which all
/// processes of a machine have in common.
static constexpr const char *kLostVariable = "DTC_RUN_LOST_AT";

/// How long the others have to end once one has failed: they notice it, and end by themselves.
static constexpr std::chrono::seconds kEndTime(6);

bool outputIsTerminal() {
  const char *value = std::getenv(kTerminalVariable);
  return value && std::string(value) == "1";
}

bool startedByLaunch() { return std::getenv(kTerminalVariable) != nullptr; }

std::optional<double> secondsSinceLoss() {
  const char *value = std::getenv(kLostVariable);
  if (!value)
    return std::nullopt;
  std::chrono::nanoseconds then(std::strtoll(value, nullptr, 10));
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch() - then)
      .count();
}

/// The command that starts all of them.
static std::vector<std::string> mpirunCommand(const std::string &program, int64_t processes,
                                              const std::vector<std::string> &arguments) {
  std::vector<std::string> words;
  // Of a single machine mpirun needs no ssh, which need not be installed.
  for (const char *word : {"mpirun", "--oversubscribe", "--bind-to", "none", "--quiet", "--mca",
                           "plm", "isolated", "-n"})
    words.emplace_back(word);
  words.push_back(std::to_string(processes));
  if (geteuid() == 0)
    words.emplace_back("--allow-run-as-root");
  words.push_back(program);
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

static std::vector<char *> pointersTo(std::vector<std::string> &words) {
  std::vector<char *> pointers;
  for (std::string &word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Runs a command in a process group of its own, so that signals that a terminal sends to all come
/// here alone, and without an input, which a program in the background may not read.
static Expected<pid_t> spawn(std::vector<std::string> words, std::vector<std::string> environment,
                             int errors, const sigset_t &oldMask) {
  std::vector<char *> pointers = pointersTo(words), variables = pointersTo(environment);
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t files;
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&attributes, &oldMask);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, errors, STDERR_FILENO);
  pid_t child = -1;
  int code = posix_spawnp(&child, pointers.front(), &files, &attributes, pointers.data(),
                          variables.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (code != 0)
    return Error{std::strerror(code)};
  return child;
}

/// That of this process, with other values of some variables.
static std::vector<std::string>
environmentWith(const std::map<std::string, std::string> &variables) {
  std::vector<std::string> environment;
  for (char **each = environ; *each; ++each) {
    std::string_view text = *each;
    if (!variables.count(std::string(text.substr(0, text.find('=')))))
      environment.emplace_back(text);
  }
  for (const auto &[name, value] : variables)
    environment.push_back(fmt::format("{}={}", name, value));
  return environment;
}

namespace {

/// The processes, or the launcher that has them.
class Children {
  using Clock = std::chrono::steady_clock;

public:
  Children(int64_t processes, bool byMpirun, const std::vector<std::string> &arguments,
           const std::optional<LaunchedRun> &before)
      : processes(processes), byMpirun(byMpirun), arguments(arguments), before(before) {
    sigemptyset(&signals);
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD})
      sigaddset(&signals, signal);
    sigprocmask(SIG_BLOCK, &signals, &oldMask);
  }
  ~Children() { sigprocmask(SIG_SETMASK, &oldMask, nullptr); }

  MaybeError start(int errors) {
    char program[4096] = {};
    if (readlink("/proc/self/exe", program, sizeof(program) - 1) < 0)
      return Error{
          fmt::format("--processes: this program cannot be found: {}", std::strerror(errno))};
    std::map<std::string, std::string> variables = {
        {kTerminalVariable, isatty(STDOUT_FILENO) ? "1" : "0"}};
    if (before)
      variables[kLostVariable] =
          std::to_string(std::chrono::nanoseconds(before->failedAt.time_since_epoch()).count());
    if (byMpirun) {
      Expected<pid_t> child = spawn(mpirunCommand(program, processes, arguments),
                                    environmentWith(variables), errors, oldMask);
      if (!child)
        return Error{fmt::format("--processes: mpirun cannot be started: {}; Debian has it in "
                                 "openmpi-bin; --network tcp needs none",
                                 child.error().message)};
      running[*child] = 0;
      return std::nullopt;
    }
    return startAll(program, std::move(variables), errors);
  }

  /// Waits for all; the status of the first one that has failed.
  LaunchedRun wait() {
    while (!running.empty()) {
      timespec pause = {0, 200'000'000};
      int signal = sigtimedwait(&signals, nullptr, &pause);
      if (signal > 0 && signal != SIGCHLD) {
        // mpirun kills its processes when it gets a signal that ends programs, but passes SIGUSR1
        // on.
        sendAll(stopSignal == 0 ? SIGUSR1 : SIGTERM);
        stopSignal = stopSignal == 0 ? signal : stopSignal;
      }
      reap();
      // One that is stopped, or that waits for others at its start, does not notice.
      if (!byMpirun && status != 0 && !isKilling && Clock::now() - failedAt > kEndTime) {
        isKilling = true;
        lost += std::ssize(running);
        sendAll(SIGKILL);
      }
    }
    return {stopSignal != 0 && status != 0 ? 128 + stopSignal : status, stopSignal != 0,
            status != 0 && !hasFailed, std::max<int64_t>(lost, 1), failedAt};
  }

  /// Names the process, or mpirun, that ended without a message.
  std::string describeFailure() const {
    return byMpirun ? "mpirun" : fmt::format("process {} of {}", failed, processes);
  }

private:
  MaybeError startAll(const std::string &program, std::map<std::string, std::string> variables,
                      int errors) {
    Expected<std::string> port = freePort();
    Expected<std::string> secret = randomSecret();
    if (!port || !secret)
      return port ? secret.error() : port.error();
    std::string key; // who comes to the port without it is not let in
    for (char byte : *secret)
      key += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    variables[kAddressVariable] = "127.0.0.1";
    variables[kPortVariable] = *port;
    variables[kKeyVariable] = key;
    variables[kParentVariable] = std::to_string(getpid());
    variables[kCountVariable] = variables[kLocalCountVariable] = std::to_string(processes);
    std::vector<std::string> words = {program};
    words.insert(words.end(), arguments.begin(), arguments.end());
    for (int64_t process = 0; process < processes; ++process) {
      variables[kRankVariable] = variables[kLocalRankVariable] = std::to_string(process);
      Expected<pid_t> child = spawn(words, environmentWith(variables), errors, oldMask);
      if (!child) {
        sendAll(SIGKILL);
        (void)wait();
        return Error{fmt::format("--processes: process {} cannot be started: {}", process,
                                 child.error().message)};
      }
      running[*child] = process;
    }
    return std::nullopt;
  }

  /// One that is free now: the first process will listen there.
  static Expected<std::string> freePort() {
    Expected<ControlListener> listener = ControlListener::open("127.0.0.1");
    if (!listener)
      return listener.error();
    return listener->endpoint.substr(listener->endpoint.find(' ') + 1);
  }

  void sendAll(int signal) const {
    for (const auto &[child, process] : running)
      kill(child, signal);
  }

  void reap() {
    for (auto each = running.begin(); each != running.end();) {
      int ended = 0;
      if (waitpid(each->first, &ended, WNOHANG) != each->first) {
        ++each;
        continue;
      }
      int code = WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
      // One that a signal has ended by force has the status of one that has saved before.
      bool fails = code != 0 && !(WIFEXITED(ended) && isInterruptedStatus(code));
      if ((status == 0 && code != 0) || (fails && !hasFailed)) {
        status = code;
        failed = each->second;
        failedAt = Clock::now();
      }
      hasFailed |= fails;
      lost += WIFSIGNALED(ended) && !isKilling;
      each = running.erase(each);
    }
  }

  const int64_t processes;
  const bool byMpirun;
  const std::vector<std::string> &arguments;
  const std::optional<LaunchedRun> &before;
  sigset_t signals, oldMask;
  std::map<pid_t, int64_t> running; // their numbers in the run
  int status = 0, stopSignal = 0;
  int64_t failed = 0, lost = 0;
  Clock::time_point failedAt;
  bool isKilling = false, hasFailed = false;
};

} // namespace

Expected<LaunchedRun> launchProcesses(int64_t processes, bool byMpirun,
                                      const std::vector<std::string> &arguments,
                                      const std::optional<LaunchedRun> &before) {
  Children children(processes, byMpirun, arguments, before);
  Expected<std::unique_ptr<ErrorRelay>> relay = ErrorRelay::open();
  if (!relay)
    return relay.error();
  if (MaybeError error = children.start((*relay)->input()))
    return *error;
  LaunchedRun run = children.wait();
  bool hasError = (*relay)->finish();
  // mpirun ends with the status of a process whether a signal has ended it or it has saved.
  run.interrupted &= !byMpirun || !hasError;
  if (run.hasLostProcess() && !hasError)
    fail(fmt::format("{} has ended with status {}, and no process has said why: one was killed, or "
                     "it crashed, before the processes had met",
                     children.describeFailure(), run.status));
  return run;
}

} // namespace dtc
