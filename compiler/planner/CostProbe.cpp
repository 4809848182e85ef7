//===- CostProbe.cpp - Costs of a model for all strategies ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/CostProbe.h"

#include "compiler/passes/sharding/ArgumentDims.h"
#include "compiler/planner/SearchProgress.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Threading.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <atomic>
#include <thread>

using namespace mlir;
using namespace dtc;

/// No more threads than this: each has its copy of the model and of the program that is split for a
/// key.
static constexpr size_t kMostWorkers = 16;

/// A prober, with the context of its model if that is a copy.
struct CostProbe::Worker {
  std::unique_ptr<MLIRContext> context;
  OwningOpRef<ModuleOp> copy;
  ModelProber prober;

  Worker(ModuleOp model, const ProbeSetting &setting) : prober(model, setting) {}
  Worker(std::unique_ptr<MLIRContext> context, OwningOpRef<ModuleOp> copy,
         const ProbeSetting &setting)
      : context(std::move(context)), copy(std::move(copy)), prober(*this->copy, setting) {}
};

/// Probes have a stage of a pipeline for each of a few layers, also where the cluster is too small
/// for these. So they are made on one that has enough nodes, all of one kind.
static cluster::Cluster enlarge(cluster::Cluster cluster, const cluster::NodeKind &kind,
                                int64_t times) {
  int64_t devices = countDevices(cluster);
  cluster.clear_nodes();
  cluster::NodeGroup *group = cluster.add_nodes();
  group->set_node(kind.name());
  group->set_count(times * devices);
  // Where there is one node, nothing says what is between nodes. Messages between stages are left
  // out of the costs.
  for (cluster::NodeKind &node : *cluster.mutable_node_kinds())
    if (node.network_bandwidth() == 0 && node.device_network_bandwidth() == 0)
      node.set_device_network_bandwidth(std::max(node.link().bandwidth(), 1e9));
  return cluster;
}

CostProbe::CostProbe(ModuleOp model, const CompileOptions &options, const cluster::Cluster &cluster,
                     int64_t batch, int64_t devices, std::vector<std::string> batchDims)
    : shortened(removeRepeatedLayers(model, 3)) {
  setting.options = options;
  setting.batch = batch;
  setting.batchDims = std::move(batchDims);
  setting.mixesSamples = dtc::mixesSamples(*shortened.module, setting);
  if (setting.mixesSamples) {
    shortened = {};
    shortened.module = model.clone();
  }
  setting.prefix = shortened.prefix;
  setting.layers = shortened.layers;
  setting.keptLayers = shortened.keptLayers;
  // Requests of the user for single layers that are taken out do not apply to the layers that stay.
  auto function = *shortened.module->getOps<func::FuncOp>().begin();
  llvm::erase_if(setting.options.shard, [&](StringRef entry) {
    StringRef key = entry.split('=').first;
    return namesArgumentDims(key) && !findArgumentDims(function, key);
  });
  for (const cluster::NodeKind *kind : kindsOfNodes(cluster, devices))
    setting.clusters.push_back(enlarge(cluster, *kind, std::max<int64_t>(shortened.keptLayers, 1)));
  workers.push_back(std::make_unique<Worker>(*shortened.module, setting));
}

CostProbe::~CostProbe() = default;

size_t CostProbe::workerOf(const CostKey &key) const {
  auto it = partitionedBy.find(ModelProber::partitionKeyOf(key));
  return it == partitionedBy.end() ? 0 : it->second;
}

ArrayRef<ModelCosts> CostProbe::find(const CostKey &key) {
  auto it = known.find(key);
  if (it == known.end()) {
    size_t worker = workerOf(key);
    it = known.emplace(key, mayGoOn() ? probeWith(worker, key) : Error{kSearchEnded}).first;
    partitionedBy.emplace(ModelProber::partitionKeyOf(key), worker);
  }
  return it->second ? ArrayRef(*it->second) : ArrayRef<ModelCosts>();
}

bool CostProbe::mayGoOn() {
  if (!isEnded && goesOn && !goesOn())
    isEnded = true;
  return !isEnded;
}

Expected<std::vector<ModelCosts>> CostProbe::probeWith(size_t worker, const CostKey &key) {
  if (isEnded)
    return Error{kSearchEnded};
  auto found = workers[worker]->prober.probe(key);
  ++numMade;
  return found;
}

void CostProbe::expect(ArrayRef<CostKey> keys) {
  expected = numMade;
  for (const CostKey &key : keys)
    expected += !known.contains(key);
}

void CostProbe::addWorkers(size_t count) {
  if (workers.size() >= count)
    return;
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  if (failed(writeBytecodeToFile(*shortened.module, stream)))
    return;
  while (workers.size() < count) {
    auto context = std::make_unique<MLIRContext>(
        shortened.module->getContext()->getDialectRegistry(), MLIRContext::Threading::DISABLED);
    ScopedDiagnosticHandler quiet(context.get(), [](Diagnostic &) { return success(); });
    OwningOpRef<ModuleOp> copy =
        parseSourceString<ModuleOp>(bytes, ParserConfig(context.get(), /*verifyAfterParse=*/false));
    if (!copy)
      return;
    workers.push_back(std::make_unique<Worker>(std::move(context), std::move(copy), setting));
  }
}

void CostProbe::findAll(ArrayRef<CostKey> keys) {
  // Keys that split the program in the same way are for one worker.
  struct Group {
    std::optional<size_t> worker;
    std::vector<CostKey> keys;
    std::vector<Expected<std::vector<ModelCosts>>> found;
  };
  std::vector<Group> groups;
  std::map<ModelProber::PartitionKey, size_t> groupOf;
  for (const CostKey &key : keys) {
    if (known.contains(key))
      continue;
    ModelProber::PartitionKey partition = ModelProber::partitionKeyOf(key);
    auto [it, fresh] = groupOf.try_emplace(partition, groups.size());
    if (fresh) {
      auto owner = partitionedBy.find(partition);
      groups.emplace_back();
      if (owner != partitionedBy.end())
        groups.back().worker = owner->second;
    }
    Group &group = groups[it->second];
    if (!llvm::is_contained(group.keys, key))
      group.keys.push_back(key);
  }
  addWorkers(std::min(
      {groups.size(), kMostWorkers, size_t(llvm::hardware_concurrency().compute_thread_count())}));

  auto probe = [&](Group &group, size_t worker) {
    group.worker = worker;
    for (const CostKey &key : group.keys) {
      // The first worker has the thread of the caller.
      if (worker == 0)
        mayGoOn();
      group.found.push_back(probeWith(worker, key));
    }
  };
  std::atomic<size_t> next = 0;
  std::vector<std::vector<size_t>> own(workers.size()); // groups that only one worker can take
  std::vector<size_t> free;
  for (auto [index, group] : llvm::enumerate(groups))
    (group.worker ? own[*group.worker] : free).push_back(index);
  auto work = [&](size_t worker) {
    for (size_t index : own[worker])
      probe(groups[index], worker);
    for (size_t taken = next++; taken < free.size(); taken = next++)
      probe(groups[free[taken]], worker);
  };
  {
    std::vector<std::jthread> threads;
    for (size_t worker = 1; worker < workers.size(); ++worker)
      threads.emplace_back(work, worker);
    work(0);
  }
  for (auto &[partition, index] : groupOf) {
    Group &group = groups[index];
    partitionedBy.emplace(partition, *group.worker);
    for (auto [key, found] : llvm::zip_equal(group.keys, group.found))
      known.emplace(key, std::move(found));
  }
}
