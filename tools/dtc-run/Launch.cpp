//===- Launch.cpp - Runs of several processes ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-run/Launch.h"

#ifdef DTC_HAS_MPI
#include "runtime/fabrics/mpi/MpiMessages.h"
#endif
#include "runtime/fabrics/processes/ReportedMessages.h"
#include "support/StartThread.h"
#include "tools/CommandLine.h"
#include "tools/dtc-run/ErrorRelay.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <mutex>
#include <optional>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace dtc {

using namespace dtc::runtime;

/// In the environment of the processes: whether the output of the one that started them, to which
/// theirs goes, is a terminal.
static constexpr const char *kTerminalVariable = "DTC_OUTPUT_IS_TERMINAL";

bool outputIsTerminal() {
  const char *value = std::getenv(kTerminalVariable);
  return value && std::string(value) == "1";
}

int64_t launchedProcesses() {
  int64_t most = 1;
  // Of Open MPI; of MPICH and what follows it; of srun, in whose steps alone there is a rank.
  for (const char *name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const char *value = std::getenv(name);
        value && (!std::strstr(name, "SLURM") || std::getenv("SLURM_PROCID")))
      most = std::max<int64_t>(most, std::strtoll(value, nullptr, 10));
  return most;
}

/// The command that starts them.
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

/// Runs a command in a process group of its own, so that what a terminal sends to all comes here
/// alone, and without an input, which a program in the background may not read.
static Expected<pid_t> spawn(std::vector<std::string> &words, int errors, const sigset_t &oldMask) {
  std::vector<char *> pointers;
  for (std::string &word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t files;
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&attributes, &oldMask);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, errors, STDERR_FILENO);
  pid_t child = -1;
  int code = posix_spawnp(&child, pointers.front(), &files, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (code != 0)
    return Error{fmt::format("--processes: mpirun cannot be started: {}; Debian has it in "
                             "openmpi-bin",
                             std::strerror(code))};
  return child;
}

Expected<LaunchedRun> launchProcesses(int64_t processes,
                                      const std::vector<std::string> &arguments) {
  char program[4096] = {};
  if (readlink("/proc/self/exe", program, sizeof(program) - 1) < 0)
    return Error{
        fmt::format("--processes: this program cannot be found: {}", std::strerror(errno))};
  setenv(kTerminalVariable, isatty(STDOUT_FILENO) ? "1" : "0", 1);
  sigset_t signals, oldMask;
  sigemptyset(&signals);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD})
    sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, &oldMask);
  std::vector<std::string> words = mpirunCommand(program, processes, arguments);
  Expected<std::unique_ptr<ErrorRelay>> relay = ErrorRelay::open();
  if (!relay)
    return relay.error();
  Expected<pid_t> child = spawn(words, (*relay)->input(), oldMask);
  if (!child)
    return child.error();
  // mpirun kills its processes when it gets a signal that ends programs, but passes SIGUSR1 on.
  for (int first = 0;;) {
    int signal = 0;
    sigwait(&signals, &signal);
    if (signal != SIGCHLD) {
      kill(*child, first == 0 ? SIGUSR1 : SIGTERM);
      first = first == 0 ? signal : first;
      continue;
    }
    int status = 0;
    if (waitpid(*child, &status, WNOHANG) != *child)
      continue;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    bool hasError = (*relay)->finish();
    sigprocmask(SIG_SETMASK, &oldMask, nullptr);
    LaunchedRun run{first != 0 && code != 0 ? 128 + first : code, first != 0};
    if (run.hasLostProcess() && !hasError)
      fail(fmt::format("mpirun has ended with status {}, and no process has said why: one was "
                       "killed, or it crashed, before the processes had met",
                       code));
    return run;
  }
}

#ifdef DTC_HAS_MPI

namespace {

int statusOf(const RunEnd &end) { return end.hasLostProcess ? kLostStatus : 1; }

/// The number that the launcher has given this process; 0 if none is known.
int64_t launchedRank() {
  for (const char *name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const char *value = std::getenv(name))
      return std::strtoll(value, nullptr, 10);
  return 0;
}

/// Ends the process after a time, unless it is destroyed before: MPI waits for ever for a process
/// that does not come. The first process speaks; each that follows waits a second longer, and is
/// ended by the launcher before, unless the first does not come itself.
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
    if (changed.wait_for(lock, timeout + std::chrono::seconds(launchedRank()),
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

class MpiLaunch final : public Launch {
public:
  MpiLaunch(std::unique_ptr<Mpi> mpi, std::shared_ptr<Messages> messages)
      : mpi(std::move(mpi)), network(std::move(messages)) {}

  MaybeError watch(ControlOptions options, LaunchHooks own) {
    Processes unwatched(network);
    options.isOneHost = unwatched.onHost() == unwatched.count();
    ControlHooks hooks;
    hooks.describe = std::move(own.describe);
    hooks.speak = [](const RunEnd &end) { dtc::fail(end.reason); };
    hooks.end = [network = std::weak_ptr(network), process = unwatched.process(),
                 record = std::move(own.record)](const RunEnd &end) {
      std::function<void()> write = record(process, end);
      if (auto open = network.lock())
        open->abortHere(Error{end.reason});
      if (write)
        write();
    };
    // What waits for a process that is lost, as MPI may, waits for ever.
    hooks.leave = [](const RunEnd &end) { _exit(statusOf(end)); };
    auto opened =
        ControlConnection::open(unwatched.process(), hostName(), options, std::move(hooks),
                                [&](const std::string &own) { return unwatched.all(own); });
    if (!opened)
      return opened.error();
    patience = 2 * options.heartbeatTimeout + options.grace;
    control = std::move(*opened);
    messages = std::make_shared<ReportedMessages>(
        network, [this](const Error &error) { control->report(error.message); });
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
  std::unique_ptr<ControlConnection> control; // also watches the end of MPI
  std::unique_ptr<Mpi> mpi;                   // outlives the messages
  std::shared_ptr<Messages> network, messages;
  std::chrono::milliseconds patience{0};
};

} // namespace

Expected<std::unique_ptr<Launch>> Launch::start(const ControlOptions &control,
                                                std::chrono::milliseconds startTimeout,
                                                LaunchHooks hooks) {
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
  auto launch = std::make_unique<MpiLaunch>(std::move(*mpi), std::move(*messages));
  if (MaybeError error = launch->watch(control, std::move(hooks))) {
    // All know it, and end together.
    if (launch->processes().isFirst())
      return *error;
    launch.reset();
    std::_Exit(1);
  }
  return std::unique_ptr<Launch>(std::move(launch));
}

#else

Expected<std::unique_ptr<Launch>> Launch::start(const ControlOptions &, std::chrono::milliseconds,
                                                LaunchHooks) {
  return Error{"a launcher has started several processes, but dtc-run was built without MPI, since "
               "none was found (-DDTC_MPI=ON demands it)"};
}

#endif

} // namespace dtc
