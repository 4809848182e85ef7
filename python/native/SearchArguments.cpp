//===- SearchArguments.cpp - The devices and the search of dtc.compile() --===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "python/native/SearchArguments.h"

#include "compiler/planner/PlannerReport.h"
#include "python/native/VirtualDevices.h"
#include "simulator/cluster/ClusterReader.h"
#include "simulator/cluster/Topology.h"
#include "support/Format.h"
#include "support/MeshAxes.h"
#include "support/NearestName.h"

#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace dtc;
using namespace dtc::python;

/// The mesh that is searched.
static constexpr const char *kAutoMesh = "auto";

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static Error unknownOption(const std::string &name) {
  std::vector<std::string> names = {"devices", "cluster", "set", "alternatives"};
  for (const Option &option : getOptions())
    names.push_back(option.name.str());
  std::string meant = didYouMean(name, names);
  return Error{fmt::format("there is no option \"{}\"{} the options are those of dtc-compile "
                           "(docs/reference.md), with _ for -",
                           name, meant.empty() ? ";" : meant + " All of")};
}

/// Sets an option of the compilation.
static MaybeError setCompileOption(const std::string &name, llvm::StringRef text,
                                   CompileArguments &arguments) {
  const Option *option = findOption(name);
  if (!option)
    return unknownOption(name);
  llvm::SmallVector<llvm::StringRef> values{text};
  if (option->isList() && !option->hasCommas) {
    values.clear();
    text.split(values, ',');
  }
  for (llvm::StringRef value : values)
    if (MaybeError error = setOption(*option, value, arguments.options)) {
      if (name == "mesh" && !value.contains('='))
        error->message += fmt::format(", or \"{}\", which searches it{}", kAutoMesh,
                                      didYouMean(text.str(), std::vector<std::string>{kAutoMesh}));
      return error;
    }
  arguments.search.given.insert(name);
  return std::nullopt;
}

/// Sets an option of the compilation or of the search.
static MaybeError setArgument(const std::string &name, llvm::StringRef text,
                              CompileArguments &arguments) {
  if (name == "mesh" && text == kAutoMesh) {
    arguments.searches = true;
    return std::nullopt;
  }
  if (name == "set") {
    for (llvm::StringRef each : llvm::split(text, ','))
      arguments.search.set.push_back(each.str());
    return std::nullopt;
  }
  if (name != "alternatives")
    return setCompileOption(name, text, arguments);
  constexpr size_t most = size_t{1} << 20;
  if (text.getAsInteger(10, arguments.search.alternatives) || arguments.search.alternatives > most)
    return Error{fmt::format("alternatives is \"{}\", expected 0 to {}", text.str(), most)};
  arguments.search.given.insert(name);
  return std::nullopt;
}

static Expected<cluster::Cluster> readDevices(const CompileRequest &request, int64_t devices) {
  if (!request.cluster.empty()) {
    Expected<cluster::Cluster> read = readCluster(request.cluster);
    if (!read)
      return read.error().inContext("cluster");
    return read;
  }
  Expected<cluster::Cluster> machine = parseCluster(kVirtualDevices);
  if (!machine)
    return machine.error().inContext("the virtual devices");
  machine->mutable_node_kinds(0)->set_devices(devices);
  return machine;
}

Expected<CompileArguments> dtc::python::readArguments(const CompileRequest &request) {
  CompileArguments arguments;
  arguments.search.spelling = OptionSpelling::Field;
  for (const auto &[name, text] : request.options)
    if (MaybeError error = setArgument(name, text, arguments))
      return *error;
  constexpr int64_t most = int64_t(1) << 31;
  if (request.devices > most)
    return Error{fmt::format("devices is {}, expected 1 to {}", request.devices, most)};
  arguments.search.devices = request.devices;
  if (arguments.searches && request.cluster.empty() && request.devices == 0)
    arguments.search.devices = request.processes;
  if (!arguments.searches && request.cluster.empty())
    return arguments;
  Expected<cluster::Cluster> cluster = readDevices(request, arguments.search.devices);
  if (!cluster)
    return cluster.error();
  if (MaybeError error = fitCluster(*cluster, arguments.search,
                                    arguments.searches ? arguments.options.memoryLimit : 0))
    return *error;
  arguments.cluster = std::move(*cluster);
  return arguments;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static MaybeError checkSearchArguments(const CompileArguments &arguments, mlir::ModuleOp module) {
  if (!arguments.options.mesh.empty())
    return Error{fmt::format("mesh is \"{}\" and has axes too, expected one of both", kAutoMesh)};
  if (hasOwnMesh(module))
    return Error{fmt::format("mesh is \"{}\", but the model declares a mesh of its own; leave it "
                             "out",
                             kAutoMesh)};
  return checkSearch(arguments.search, arguments.options);
}

/// Checks the arguments beside a mesh that is not searched.
static MaybeError checkMeshArguments(const CompileArguments &arguments) {
  const SearchRequest &search = arguments.search;
  if (!search.set.empty() || search.given.contains("alternatives"))
    return Error{fmt::format("{}: nothing is searched; give mesh=\"{}\", or leave it out",
                             search.set.empty() ? "alternatives" : "set", kAutoMesh)};
  if (search.devices == 0)
    return std::nullopt;
  if (arguments.options.mesh.empty())
    return Error{
        fmt::format("devices is {}, but there is no mesh; give mesh=\"{}\", which searches "
                    "one for them, or its axes and sizes",
                    search.devices, kAutoMesh)};
  return checkDevices(arguments.options.mesh, search);
}

MaybeError dtc::python::checkArguments(const CompileArguments &arguments, mlir::ModuleOp module) {
  bool ownMesh = hasOwnMesh(module);
  if (MaybeError error = arguments.searches ? checkSearchArguments(arguments, module)
                                            : checkMeshArguments(arguments))
    return error;
  if (MaybeError error = findConflict(arguments.options, OptionSpelling::Field,
                                      arguments.searches ? MeshSource::Search
                                      : ownMesh          ? MeshSource::Model
                                                         : MeshSource::Options))
    return error;
  if (arguments.search.given.contains("schedule") && !arguments.searches && !ownMesh &&
      !arguments.options.hasAxis(kPipelineAxis))
    return Error{fmt::format("schedule is given, but the mesh has no axis \"{}\" to lay stages "
                             "over; add one",
                             kPipelineAxis)};
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// The choice of the search
//===----------------------------------------------------------------------===//

/// "8 virtual devices, each assumed to ..."
static std::string describeDevices(const PlannerOptions &asked, const std::string &file) {
  const cluster::Cluster &cluster = *asked.cluster;
  int64_t count = usedDevices(cluster, asked.devices);
  const char *plural = count == 1 ? "" : "s";
  if (!file.empty())
    return fmt::format("{} device{} of the cluster \"{}\" ({})", count, plural, cluster.name(),
                       file);
  const cluster::NodeKind &host = cluster.node_kinds(0);
  const cluster::DeviceKind &device = cluster.devices(0);
  return fmt::format("{} virtual device{}, each assumed to be a core of {:.0f} GFLOP/s (f32) with "
                     "{:.1f} GB/s to its memory, linked by {:.1f} GB/s and {}; give a cluster for "
                     "other devices",
                     count, plural, device.matrix(0).flops() / 1e9, device.memory_bandwidth() / 1e9,
                     host.link().bandwidth() / 1e9, formatDuration(host.link().latency()));
}

std::string dtc::python::describeChoice(const StrategyChoice &choice, const std::string &cluster) {
  std::vector<std::string> searched, given;
  for (const StrategyItem &item : pageOptions(choice.result, choice.asked, 0).strategy)
    (item.reason == "searched" ? searched : given).push_back(item.name + "=" + item.value);
  std::string text = fmt::format("searched for {}\n", describeDevices(choice.asked, cluster));
  text += formatChoice(choice.result, choice.asked, /*alternatives=*/0);
  text += fmt::format("  chosen by the search: {}\n", fmt::join(searched, ", "));
  if (!given.empty())
    text += fmt::format("  given: {}\n", fmt::join(given, ", "));
  return text;
}
