//===- StrategySearch.cpp - A search as its user asks for it --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/StrategySearch.h"

#include "compiler/planner/PlannerReport.h"
#include "dialects/dist/Dist.h"
#include "simulator/cluster/ClusterReader.h"
#include "simulator/cluster/HostTime.h"
#include "support/NearestName.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <fmt/format.h>

using namespace dtc;

bool dtc::hasOneBody(mlir::ModuleOp module) {
  auto functions = module.getOps<mlir::func::FuncOp>();
  return llvm::hasSingleElement(functions) && !(*functions.begin()).isDeclaration();
}

bool dtc::hasOwnMesh(mlir::ModuleOp module) { return !module.getOps<dist::MeshOp>().empty(); }

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

MaybeError dtc::checkSearch(const SearchRequest &request, const CompileOptions &options) {
  bool isFlag = request.spelling == OptionSpelling::Flag;
  if (options.mode == CompileMode::Generate)
    return Error{fmt::format("{}: for generation nothing is searched; give {}",
                             spell("cluster", request.spelling), spell("mesh", request.spelling))};
  for (const Option &option : getOptions())
    if (option.needsMesh && request.given.contains(option.name.str()))
      return Error{fmt::format("{}: the search chooses the mesh that it would be for; give {}, or "
                               "leave it out",
                               spell(option.name, request.spelling),
                               isFlag ? "--mesh" : "the axes and sizes of the mesh")};
  return std::nullopt;
}

MaybeError dtc::checkDevices(const MeshSizes &mesh, const SearchRequest &request) {
  int64_t ofMesh = 1;
  bool isLarger = false; // than any number of devices that may be asked for
  for (const auto &[name, size] : mesh)
    isLarger |= llvm::MulOverflow(ofMesh, size, ofMesh);
  if (!isLarger && ofMesh == request.devices)
    return std::nullopt;
  std::string has = isLarger ? "more" : std::to_string(ofMesh);
  if (request.spelling == OptionSpelling::Flag)
    return Error{fmt::format("--devices: the mesh has {} devices, not {}; leave the flag out, or "
                             "search without a mesh",
                             has, request.devices)};
  return Error{fmt::format("devices is {}, but the mesh has {}; leave devices out, or search a "
                           "mesh for them with mesh=\"auto\"",
                           request.devices, has)};
}

//===----------------------------------------------------------------------===//
// The request for a search
//===----------------------------------------------------------------------===//

MaybeError dtc::fitCluster(cluster::Cluster &cluster, const SearchRequest &request,
                           int64_t memoryLimit) {
  if (MaybeError error = extendCluster(cluster, request.devices))
    return error->inContext(spell("devices", request.spelling));
  // The limit is that of devices, and hosts may be of their kind.
  for (cluster::NodeKind &node : *cluster.mutable_node_kinds())
    if (!node.host().empty())
      node.set_host_memory_bytes(usableHostBytes(cluster, node));
  for (cluster::DeviceKind &device : *cluster.mutable_devices())
    if (memoryLimit > 0 && usableBytes(device) > double(memoryLimit)) {
      device.set_memory_bytes(double(memoryLimit));
      device.set_usable_memory(1);
    }
  return std::nullopt;
}

/// The axes whose sizes can be fixed.
static constexpr const char *kSearchedAxes[] = {"dp", "fsdp", "ep", "cp", "tp", "pp"};

/// Fixes the size of an axis or an option.
static MaybeError setFixedOption(llvm::StringRef text, PlannerOptions &options) {
  auto [key, value] = text.split('=');
  std::string name = key.str();
  if (options.fixed.contains(name) || options.axes.contains(name))
    return Error{name + " is given twice"};
  if (llvm::is_contained(kSearchedAxes, name)) {
    constexpr int64_t most = int64_t(1) << 31;
    int64_t size = 0;
    if (value.getAsInteger(10, size) || size < 1 || size > most)
      return Error{fmt::format("{} is \"{}\", expected 1 to {}", name, value.str(), most)};
    options.axes[name] = size;
    return std::nullopt;
  }
  const Option *option = findOption(name);
  if (!option || !option->isSearched) {
    std::vector<std::string> names(std::begin(kSearchedAxes), std::end(kSearchedAxes));
    for (const Option &each : getOptions())
      if (each.isSearched)
        names.push_back(each.name.str());
    return Error{fmt::format("there is no searched option \"{}\"{}; the searched options are {}",
                             name, didYouMean(name, names), quoteNames(names))};
  }
  if (auto error = setOption(*option, value, options.base, OptionSpelling::Field, /*isFixed=*/true))
    return error;
  options.fixed.insert(name);
  return std::nullopt;
}

static Expected<PlannerOptions> toPlannerOptions(const SearchRequest &request,
                                                 const CompileOptions &options,
                                                 const cluster::Cluster &cluster) {
  PlannerOptions planner;
  planner.cluster = &cluster;
  planner.devices = request.devices;
  planner.base = options;
  planner.spelling = request.spelling;
  for (const Option &option : getOptions())
    if (option.isSearched && request.given.contains(option.name.str()))
      planner.fixed.insert(option.name.str());
  // A search looks at what "auto" stands for beside the other ways to recompute.
  if (options.recompute == Recompute::Auto) {
    planner.fixed.erase("recompute");
    planner.base.recompute = Recompute::None;
  }
  for (const std::string &text : request.set)
    if (MaybeError error = setFixedOption(text, planner))
      return error->inContext(spell("set", request.spelling));
  return planner;
}

Expected<StrategyChoice> dtc::searchStrategy(mlir::ModuleOp model, llvm::StringRef name,
                                             const CompileOptions &options,
                                             const SearchRequest &request,
                                             const cluster::Cluster &cluster,
                                             const ProgressCallback &report) {
  Expected<PlannerOptions> asked = toPlannerOptions(request, options, cluster);
  if (!asked)
    return asked.error();
  Expected<PlannerResult> result = Planner(model, name, *asked).run(report);
  if (!result)
    return result.error();
  std::string text = formatChoice(*result, *asked, request.alternatives);
  if (result->best.empty())
    return Error{std::move(text)};
  return StrategyChoice{std::move(*result), std::move(*asked), std::move(text)};
}
