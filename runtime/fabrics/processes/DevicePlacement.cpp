//===- DevicePlacement.cpp - Placement of devices on processes ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/processes/DevicePlacement.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <set>

namespace dtc::runtime {

std::vector<int64_t> placeDevices(int64_t numDevices, int64_t numProcesses) {
  std::vector<int64_t> processes;
  for (int64_t process = 0; process < numProcesses; ++process)
    processes.insert(processes.end(),
                     static_cast<size_t>(numDevices / numProcesses +
                                         (process < numDevices % numProcesses ? 1 : 0)),
                     process);
  return processes;
}

/// "1, 2 or 4".
static std::string alternatives(const std::vector<int64_t> &numbers) {
  if (numbers.size() == 1)
    return std::to_string(numbers.front());
  return fmt::format("{} or {}", fmt::join(numbers.begin(), numbers.end() - 1, ", "),
                     numbers.back());
}

/// "3-5".
static std::string range(int64_t first, int64_t last) {
  return first == last ? std::to_string(first) : fmt::format("{}-{}", first, last);
}

std::vector<int64_t> devicesOfProcess(int64_t numDevices, int64_t numProcesses, int64_t process) {
  std::vector<int64_t> processes = placeDevices(numDevices, numProcesses), devices;
  for (int64_t device = 0; device < numDevices; ++device)
    if (processes[static_cast<size_t>(device)] == process)
      devices.push_back(device);
  return devices;
}

MaybeError checkProcesses(const Mesh &mesh, int64_t numProcesses) {
  int64_t devices = mesh.numDevices();
  if (devices >= numProcesses)
    return std::nullopt;
  return Error{fmt::format("the plan is for {} device{}, but there are {} processes, and each has "
                           "at least one device; start at most {}",
                           devices, devices == 1 ? "" : "s", numProcesses, devices)};
}

static std::vector<int64_t> divisors(int64_t number) {
  std::vector<int64_t> found;
  for (int64_t each = 1; each <= number; ++each)
    if (number % each == 0)
      found.push_back(each);
  return found;
}

Expected<int64_t> processesFor(const Mesh &mesh, int64_t devicesPerProcess) {
  int64_t devices = mesh.numDevices();
  if (devicesPerProcess > 0 && devices % devicesPerProcess == 0)
    return devices / devicesPerProcess;
  return Error{fmt::format("the plan's {} device{} cannot be divided into processes with {} each; "
                           "{} fit",
                           devices, devices == 1 ? "" : "s", devicesPerProcess,
                           alternatives(divisors(devices)))};
}

namespace {

/// The spatial axes, from the outermost to the innermost.
std::vector<MeshAxis> spatialAxes(const Mesh &mesh) {
  std::vector<MeshAxis> axes;
  for (const MeshAxis &axis : mesh.axes())
    if (!axis.temporal)
      axes.push_back(axis);
  return axes;
}

/// The numbers of consecutive devices that cut no axis into parts of different sizes: the last axes
/// as a whole, and of the one before them a part that divides it.
std::vector<int64_t> evenParts(const Mesh &mesh) {
  std::set<int64_t> parts = {1};
  int64_t inner = 1;
  std::vector<MeshAxis> axes = spatialAxes(mesh);
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    for (int64_t part : divisors(axis->size))
      parts.insert(inner * part);
    inner *= axis->size;
  }
  return {parts.begin(), parts.end()};
}

/// Processes and devices of a host, both consecutive.
struct Host {
  std::string name;
  int64_t firstProcess = 0, lastProcess = 0, firstDevice = 0, lastDevice = 0;
};

Expected<std::vector<Host>> hostsOf(const Mesh &mesh, const std::vector<std::string> &names,
                                    const std::vector<int64_t> &processes) {
  std::vector<Host> hosts;
  for (int64_t device = 0; device < mesh.numDevices(); ++device) {
    int64_t process = processes[static_cast<size_t>(device)];
    const std::string &name = names[static_cast<size_t>(process)];
    if (hosts.empty() || hosts.back().name != name) {
      if (std::ranges::count(hosts, name, &Host::name) > 0)
        return Error{fmt::format("the processes of host {} are not consecutive: process {} is "
                                 "there too; start those of a host one after the other (mpirun "
                                 "--map-by slot, srun --distribution=block)",
                                 name, process)};
      hosts.push_back({name, process, process, device, device});
    }
    hosts.back().lastProcess = process;
    hosts.back().lastDevice = device;
  }
  return hosts;
}

MaybeError checkHosts(const Mesh &mesh, const std::vector<Host> &hosts) {
  std::vector<int64_t> fit = evenParts(mesh);
  for (const Host &host : hosts) {
    int64_t devices = host.lastDevice - host.firstDevice + 1;
    if (hosts.size() > 1 &&
        (std::ranges::find(fit, devices) == fit.end() || host.firstDevice % devices != 0))
      return Error{fmt::format("host {} has {} device{}, from device {} on, so that an axis of the "
                               "mesh would lie across hosts in parts of different sizes; give each "
                               "host {} devices",
                               host.name, devices, devices == 1 ? "" : "s", host.firstDevice,
                               alternatives(fit))};
  }
  return std::nullopt;
}

/// Where the groups of an axis lie.
std::string describeAxis(const Mesh &mesh, const MeshAxis &axis,
                         const std::vector<std::string> &hosts,
                         const std::vector<int64_t> &processes) {
  size_t mostProcesses = 0, mostHosts = 0;
  for (int64_t device = 0; device < mesh.numDevices(); ++device) {
    std::set<int64_t> ofGroup;
    std::set<std::string> hostsOfGroup;
    for (int64_t member : mesh.group(device, {axis.name})) {
      ofGroup.insert(processes[static_cast<size_t>(member)]);
      hostsOfGroup.insert(hosts[static_cast<size_t>(processes[static_cast<size_t>(member)])]);
    }
    mostProcesses = std::max(mostProcesses, ofGroup.size());
    mostHosts = std::max(mostHosts, hostsOfGroup.size());
  }
  std::string where;
  auto size = static_cast<size_t>(axis.size);
  if (mostProcesses == 1)
    where = "in a process";
  else if (mostHosts == 1)
    where = "in a host, between processes";
  else if (mostHosts == size)
    where = "between hosts";
  else
    where = fmt::format("between {} hosts, {} in each", mostHosts, size / mostHosts);
  return fmt::format("  {}={}: {}\n", axis.name, axis.size, where);
}

} // namespace

Expected<std::string> describePlacement(const Mesh &mesh, const std::vector<std::string> &hosts) {
  auto numProcesses = std::ssize(hosts);
  if (MaybeError error = checkProcesses(mesh, numProcesses))
    return *error;
  std::vector<int64_t> processes = placeDevices(mesh.numDevices(), numProcesses);
  Expected<std::vector<Host>> found = hostsOf(mesh, hosts, processes);
  if (!found)
    return found.error();
  if (MaybeError error = checkHosts(mesh, *found))
    return *error;
  std::string text =
      fmt::format("{} device{}, {} process{}, {} host{}\n", mesh.numDevices(),
                  mesh.numDevices() == 1 ? "" : "s", numProcesses, numProcesses == 1 ? "" : "es",
                  found->size(), found->size() == 1 ? "" : "s");
  for (const Host &host : *found) {
    text += fmt::format("host {}:\n", host.name);
    for (int64_t process = host.firstProcess; process <= host.lastProcess; ++process) {
      auto first = std::ranges::find(processes, process) - processes.begin();
      auto count = std::ranges::count(processes, process);
      text += fmt::format("  process {}: device{} {}\n", process, count == 1 ? "" : "s",
                          range(first, first + count - 1));
    }
  }
  text += "axes, the last one innermost:\n";
  for (const MeshAxis &axis : spatialAxes(mesh))
    text += describeAxis(mesh, axis, hosts, processes);
  if (mesh.numDevices() % numProcesses != 0)
    text += fmt::format("note: not all processes have as many devices; {} processes would\n",
                        alternatives(divisors(mesh.numDevices())));
  return text;
}

} // namespace dtc::runtime
