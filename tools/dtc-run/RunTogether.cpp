//===- RunTogether.cpp - dtc-run in several processes ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanReader.h"
#include "plan/PlanTypes.h"
#include "runtime/checkpoint/Checksum.h"
#include "runtime/fabrics/processes/DevicePlacement.h"
#include "runtime/fabrics/processes/LinkCheck.h"
#include "runtime/train/FlightRecord.h"
#include "support/Print.h"
#include "support/Printable.h"
#include "tools/dtc-run/ClusterNodes.h"
#include "tools/dtc-run/Elastic.h"
#include "tools/dtc-run/GivenFlags.h"
#include "tools/dtc-run/LaunchProcesses.h"
#include "tools/dtc-run/Launchers.h"
#include "tools/dtc-run/RunCommand.h"
#include "tools/dtc-run/RunMembership.h"
#include "tools/dtc-run/StopSignals.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

using namespace dtc;
using namespace dtc::runtime;

/// A time of a second to a day.
static CLI::Validator secondsOfADay() {
  return numberBetween(1.0, 86400.0, "a number from 1 to 86400")
      .description("FLOAT in [1 - 86400]");
}

/// How processes find each other, and notice that one is lost.
void RunCommand::addMeetingFlags() {
  app.add_option("--heartbeat-timeout", heartbeatTimeout,
                 "Of several processes: the seconds without a message of one of them after which "
                 "all end")
      ->check(secondsOfADay())
      ->capture_default_str();
  app.add_option("--start-timeout", startTimeout,
                 "Of several processes: the seconds after which they give up if they have not met")
      ->check(secondsOfADay())
      ->capture_default_str();
  app.add_option("--control-network", control.network,
                 "Of several processes on several hosts: the network, such as 10.1.0.0/16, or the "
                 "interface, such as eth0, over which they notice that one is lost (default: that "
                 "of the name of each host)");
}

/// How processes are started.
void RunCommand::addLaunchFlags() {
  app.add_option("--processes", numProcesses,
                 "The number of processes to start on this machine, which work together")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 16));
  app.add_option("--network", network,
                 "How the processes that --processes starts exchange tensors: over sockets (tcp), "
                 "or started by mpirun (mpi)")
      ->check(CLI::IsMember({"tcp", "mpi"}))
      ->capture_default_str();
  addMeetingFlags();
}

/// How the devices of a plan are divided among processes and hosts.
void RunCommand::addDivisionFlags() {
  app.add_option("--devices-per-process", devicesPerProcess,
                 "How many devices of the plan each process has, which says how many processes "
                 "--processes would start; a launcher has to have started as many (default: the "
                 "devices divided by the processes)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 31));
  app.add_option("--cluster", clusterPath,
                 "The cluster that the plan was made for: check that each host has the devices of "
                 "one of its nodes")
      ->type_name("FILE");
}

void RunCommand::addPlacementFlags() {
  app.add_option("plan", train.planPath, "The plan, as dtc-compile writes it")->required();
  app.add_option("--processes", numProcesses,
                 "How many processes there would be, where no launcher has started any")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 16));
  app.add_option("--processes-per-host", processesPerHost,
                 "How many processes each host would have (default: all are on this one)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 16));
  addDivisionFlags();
  addMeetingFlags();
}

void RunCommand::addProcessFlags() {
  addLaunchFlags();
  addDivisionFlags();
  app.add_flag(
      "--no-shared-memory", avoidsSharedMemory,
      "Send the tensors of collectives over the network between processes of one host too, "
      "instead of through memory that they share");
  app.add_option("--flight-record", flightPath,
                 "Of several processes: when the run fails, write to this folder what the devices "
                 "of each process were at, their last collectives and transfers, and the next ones")
      ->type_name("FOLDER");
  if (kind != RunKind::Train)
    return;
  app.add_option("--max-restarts", maxRestarts,
                 "How often --processes starts them again where one was lost, each time from the "
                 "newest checkpoint")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 16))
      ->needs(app.get_option("--checkpoint"))
      ->capture_default_str();
  app.add_option(
         "--elastic", elasticFolder,
         "A folder of plans for fewer devices, of the same batch. With --max-restarts: after "
         "processes were lost, the run goes on with the largest that the devices of the others "
         "can have. With --devices-per-process: the run has the plan for as many devices as the "
         "processes have that a launcher has started")
      ->type_name("FOLDER")
      ->excludes(app.get_option("--cluster"));
}

/// Whether all processes have the same command line and the same plan.
MaybeError RunCommand::checkSame() {
  const Processes &processes = train.processes;
  Expected<std::string> path = processes.ofFirst(train.planPath); // the same words in all
  if (!path)
    return path.error();
  std::string flags = describeGiven(app);
  Expected<std::string> others = processes.differing(checksumOf(flags));
  if (!others)
    return others.error();
  if (!others->empty()) {
    Expected<std::string> ofFirst = processes.ofFirst(flags);
    if (!ofFirst)
      return ofFirst.error();
    Expected<std::vector<std::string>> differences =
        processes.all(firstDifference(*ofFirst, flags));
    if (!differences)
      return differences.error();
    std::string difference; // of the first one that was given others
    for (const std::string &each : *differences)
      difference = difference.empty() ? each : difference;
    return Error{fmt::format("{}: process 0 was given other flags than {}: {}; give all the same",
                             *path, *others, difference)};
  }
  std::ifstream file(train.planPath, std::ios::binary);
  std::string plan(std::istreambuf_iterator<char>(file), {});
  others = processes.differing(checksumOf(plan));
  if (!others)
    return others.error();
  if (!others->empty())
    return Error{fmt::format("{}: process 0 has another plan than {}; give all the same file",
                             *path, *others)};
  return std::nullopt;
}

/// Whether the devices lie on the hosts as on the nodes of --cluster; the same in all processes.
MaybeError RunCommand::checkCluster() {
  if (clusterPath.empty())
    return std::nullopt;
  Expected<std::shared_ptr<const plan::Plan>> plan = readPlan(train.planPath);
  if (!plan)
    return plan.error();
  Mesh mesh = meshOf(**plan);
  if (MaybeError error = checkProcesses(mesh, train.processes.count()))
    return error->inContext(train.planPath);
  Expected<std::vector<std::string>> hosts = train.processes.all(hostName());
  return hosts ? checkNodes(clusterPath, mesh, *hosts) : hosts.error();
}

/// With --elastic, where a launcher has started the processes: the plan for their devices.
MaybeError RunCommand::chooseElasticPlan() {
  if (elasticFolder.empty() || maxRestarts > 0) {
    if (!elasticFolder.empty() && devicesPerProcess > 0)
      return Error{"--elastic: with --max-restarts the processes go on with as many devices as "
                   "each has had; leave --devices-per-process out"};
    return std::nullopt;
  }
  if (numProcesses > 0 || devicesPerProcess == 0)
    return Error{"--elastic is for --processes with --max-restarts, or for processes that a "
                 "launcher has started, with --devices-per-process"};
  Expected<std::shared_ptr<const plan::Plan>> plan = readPlan(train.planPath);
  if (!plan)
    return plan.error();
  int64_t devices = launchedProcesses() * devicesPerProcess;
  if (meshOf(**plan).numDevices() <= devices)
    return std::nullopt;
  Expected<std::vector<ElasticPlan>> plans = findElasticPlans(elasticFolder, train.planPath);
  if (!plans)
    return plans.error();
  std::optional<ElasticPlan> fewer = planFor(*plans, devices);
  if (!fewer || fewer->devices != devices)
    return Error{fmt::format("--elastic: {} has no plan for the {} devices of {} processes; those "
                             "that it has are for {}",
                             elasticFolder, devices, launchedProcesses(), listDevices(*plans))};
  if (launchedRank() == 0)
    printTo(stderr, "note: goes on with {} for {} devices\n", printable(fewer->path), devices);
  train.planPath = fewer->path;
  return std::nullopt;
}

/// With --devices-per-process: finds the number of processes, or checks that the launcher has
/// started that number.
MaybeError RunCommand::findProcesses() {
  if (MaybeError error = chooseElasticPlan())
    return error;
  if (devicesPerProcess == 0) {
    if (maxRestarts > 0 && numProcesses == 0)
      return Error{"--max-restarts starts the processes of --processes again; give that too"};
    return std::nullopt;
  }
  Expected<std::shared_ptr<const plan::Plan>> plan = readPlan(train.planPath);
  if (!plan)
    return plan.error();
  Expected<int64_t> count = processesFor(meshOf(**plan), devicesPerProcess);
  if (!count)
    return count.error().inContext("--devices-per-process");
  int64_t found = launchedProcesses() > 1 ? launchedProcesses() : numProcesses;
  if (found > 0 && found != *count)
    return Error{fmt::format("--devices-per-process {} takes {} processes, but there are {}",
                             devicesPerProcess, *count, found)};
  numProcesses = *count;
  return std::nullopt;
}

int RunCommand::checkLinks() {
  if (launchedProcesses() == 1)
    return numProcesses > 1 ? launch()
                            : fail("dtc-run links measures the links between processes; start "
                                   "several (--processes 4, mpirun)");
  Expected<std::unique_ptr<RunMembership>> started = meetOthers();
  if (!started)
    return fail(started.error().message);
  const Processes processes = (*started)->processes();
  Expected<LinkTimes> times = measureLinks(processes.network(), {});
  if (!times)
    (*started)->fail(times.error());
  Expected<std::vector<std::string>> hosts = processes.all(hostName());
  if (!hosts)
    (*started)->fail(hosts.error());
  if (processes.isFirst())
    printTo(stdout, "{}", printableLines(formatLinks(*times, *hosts)));
  std::fflush(stdout);
  return 0;
}

/// The names of hosts that are only thought of: "0" to "3".
static std::vector<std::string> numberedHosts(int64_t processes, int64_t perHost) {
  std::vector<std::string> hosts;
  for (int64_t process = 0; process < processes; ++process)
    hosts.push_back(std::to_string(process / perHost));
  return hosts;
}

int RunCommand::printPlacement() {
  std::unique_ptr<RunMembership> membership;
  if (launchedProcesses() > 1) {
    Expected<std::unique_ptr<RunMembership>> started = meetOthers();
    if (!started)
      return fail(started.error().message);
    membership = std::move(*started);
  }
  auto failed = [&](const Error &error) {
    if (membership)
      membership->fail(error);
    return fail(error.message);
  };
  Expected<std::shared_ptr<const plan::Plan>> plan = readPlan(train.planPath);
  if (!plan)
    return failed(plan.error());
  int64_t count = std::max<int64_t>(numProcesses, 1);
  Expected<std::vector<std::string>> hosts =
      membership ? membership->processes().all(hostName())
      : processesPerHost > 0
          ? Expected<std::vector<std::string>>(numberedHosts(count, processesPerHost))
          : std::vector<std::string>(static_cast<size_t>(count), hostName());
  if (!hosts)
    return failed(hosts.error());
  Expected<std::string> text = describePlacement(meshOf(**plan), *hosts);
  if (!text)
    return failed(text.error().inContext(train.planPath));
  if (!clusterPath.empty())
    if (MaybeError error = checkNodes(clusterPath, meshOf(**plan), *hosts))
      return failed(*error);
  if (!membership || membership->processes().isFirst())
    printTo(stdout, "{}", printableLines(*text));
  return 0;
}

/// Goes on with the devices of all processes but those that were lost.
MaybeError RunCommand::shrink(const std::vector<ElasticPlan> &plans, int64_t devices,
                              int64_t lost) {
  // As many devices as a process has had.
  int64_t each = (devices + numProcesses - 1) / numProcesses, left = devices - lost * each;
  std::optional<ElasticPlan> next = planFor(plans, left);
  if (!next)
    return Error{
        fmt::format("{} process{} with {} device{} {} lost, and --elastic has no plan for the "
                    "{} that are left; its smallest is for {}",
                    lost, lost == 1 ? "" : "es", each, each == 1 ? "" : "s",
                    lost == 1 ? "was" : "were", std::max<int64_t>(left, 0), plans.back().devices)};
  std::ranges::replace(arguments, train.planPath, next->path);
  train.planPath = next->path;
  int64_t before = std::exchange(numProcesses, (next->devices + each - 1) / each);
  printTo(stderr, "note: goes on with {} for {} device{}, in {} process{} instead of {}\n",
          printable(next->path), next->devices, next->devices == 1 ? "" : "s", numProcesses,
          numProcesses == 1 ? "" : "es", before);
  return std::nullopt;
}

int RunCommand::launch() {
  std::vector<ElasticPlan> plans;
  if (!elasticFolder.empty()) {
    Expected<std::vector<ElasticPlan>> found = findElasticPlans(elasticFolder, train.planPath);
    if (!found)
      return fail(found.error().message);
    plans = std::move(*found);
  }
  std::optional<LaunchedRun> before;
  for (int64_t restarts = 0;; ++restarts) {
    Expected<LaunchedRun> run = launchProcesses(numProcesses, network == "mpi", arguments, before);
    if (!run)
      return fail(run.error().message);
    if (!run->hasLostProcess() || restarts == maxRestarts)
      return run->status;
    before = *run;
    printTo(stderr, "note: a process was lost; restart {} of {}, from the newest checkpoint\n",
            restarts + 1, maxRestarts);
    if (restarts == 0 && !isGiven("--resume"))
      arguments.push_back("--resume");
    if (plans.empty())
      continue;
    Expected<std::shared_ptr<const plan::Plan>> plan = readPlan(train.planPath);
    MaybeError error = plan ? shrink(plans, meshOf(**plan).numDevices(), run->lost) : plan.error();
    if (error)
      return fail(error->message);
  }
}

/// Records the current work of the devices, before they are woken; the result writes it.
std::function<void()> RunCommand::recordFlight(int64_t process, const RunEnd &end) const {
  if (flightPath.empty())
    return nullptr;
  return [path = flightPath, process, reason = end.reason, devices = train.watch->flight()] {
    if (MaybeError error = writeFlightRecord(path, process, hostName(), reason, devices))
      printTo(stderr, "note: {}\n", printableMessage(error->message));
  };
}

Expected<std::unique_ptr<RunMembership>> RunCommand::meetOthers() {
  train.watch = std::make_shared<RunWatch>();
  auto milliseconds = [](double seconds) {
    return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
  };
  control.heartbeatTimeout = milliseconds(heartbeatTimeout);
  return RunMembership::join(
      control, milliseconds(startTimeout),
      {[watch = train.watch] { return watch->describe(); },
       [this](int64_t process, const RunEnd &end) { return recordFlight(process, end); }});
}

int RunCommand::failTogether(const std::string &message) {
  if (launchedProcesses() == 1)
    return fail(message);
  Expected<std::unique_ptr<RunMembership>> started = meetOthers();
  if (!started)
    return fail(message);
  (*started)->fail(Error{message});
  __builtin_unreachable(); // g++ does not see that no override returns
}

int RunCommand::runTogether() {
  Expected<std::unique_ptr<RunMembership>> started = meetOthers();
  if (!started)
    return fail(started.error().message);
  RunMembership &membership = **started;
  stopOnSignals(); // a launcher sends SIGTERM to those that are to say what has happened
  train.processes = Processes(membership.processes().network(),
                              avoidsSharedMemory ? HostSharing::Messages : HostSharing::Memory);
  const Processes &processes = train.processes;
  train.onHang = [&membership](const Error &error) { membership.fail(error); };
  train.outputIsTerminal = outputIsTerminal();
  std::FILE *nowhere = std::fopen("/dev/null", "w");
  std::FILE *out = processes.isFirst() ? stdout : nowhere;
  std::FILE *notes = processes.isFirst() ? stderr : nowhere;
  if (!nowhere)
    membership.fail(Error{"/dev/null cannot be written to"});
  if (processes.isFirst())
    fmt::print("{} processes, {} on this machine\n", processes.count(), processes.onHost());
  if (!processes.isFirst() && !train.tracePath.empty())
    train.tracePath.clear(); // the trace shows the devices of the first one
  int status = 0;
  if (MaybeError error = checkSame()) {
    membership.fail(*error);
  } else if (MaybeError other = checkCluster()) {
    membership.fail(*other);
  } else if (Expected<bool> interrupted = doRun(out, notes); !interrupted) {
    membership.fail(interrupted.error());
  } else if (*interrupted) {
    // Not each of them need have got the signal.
    status = interruptedStatus();
    if (auto all = processes.all(std::to_string(status)))
      for (const std::string &other : *all)
        status = std::max(status, static_cast<int>(std::strtol(other.c_str(), nullptr, 10)));
  }
  std::fclose(nowhere);
  std::fflush(stdout);
  train.processes = {};
  return status;
}
