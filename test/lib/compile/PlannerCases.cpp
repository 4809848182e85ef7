//===- PlannerCases.cpp - Small models and clusters for the planner -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/lib/compile/PlannerCases.h"

#include "compiler/driver/CandidateSearch.h"
#include "compiler/planner/Strategy.h"
#include "simulator/Simulation.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"

#include <array>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <random>

using namespace dtc;
using namespace dtc::test;

PlannerContext::PlannerContext() {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlirContext =
      std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
  mlirContext->getDiagEngine().registerHandler([this](mlir::Diagnostic &diagnostic) {
    llvm::raw_string_ostream(messages) << diagnostic.getLocation() << ": " << diagnostic << "\n";
    return mlir::success();
  });
}

mlir::OwningOpRef<mlir::ModuleOp> PlannerContext::parse(const std::string &text) {
  return mlir::parseSourceString<mlir::ModuleOp>(text, mlirContext.get());
}

std::string PlannedModel::config() const {
  if (std::string_view(name) == "llama")
    return fmt::format(R"({{"model_type": "llama", "vocab_size": {}, "hidden_size": {},
      "intermediate_size": {}, "num_hidden_layers": {}, "num_attention_heads": {},
      "num_key_value_heads": {}, "max_position_embeddings": {}, "rms_norm_eps": 1e-5,
      "tie_word_embeddings": false}})",
                       vocab, hidden, 2 * hidden, layers, heads, heads / 2, seq);
  return fmt::format(R"({{"model_type": "gpt2", "vocab_size": {}, "n_positions": {},
    "n_embd": {}, "n_layer": {}, "n_head": {}, "attn_pdrop": 0, "embd_pdrop": 0,
    "resid_pdrop": 0}})",
                     vocab, seq, hidden, layers, heads);
}

std::string PlannedModel::str() const {
  return fmt::format("{} layers={} hidden={} batch={} seq={}", name, layers, hidden, batch, seq);
}

mlir::OwningOpRef<mlir::ModuleOp> dtc::test::importCase(PlannerContext &compiler,
                                                        const PlannedModel &model) {
  ImportOptions options;
  options.batch = model.batch;
  options.seq = model.seq;
  ImportLog log;
  return importModel(compiler.context(), model.config(), "config.json", options, log);
}

void dtc::test::removeNames(mlir::ModuleOp model) {
  for (auto function : model.getOps<mlir::func::FuncOp>())
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      function.removeArgAttr(i, "dtc.axes");
  model.walk([](mlir::Operation *op) { op->removeAttr("dtc.axes"); });
}

cluster::Cluster dtc::test::smallCluster(int64_t nodes, int64_t devicesOfNode) {
  cluster::Cluster cluster;
  cluster.set_name("small");
  cluster::DeviceKind *device = cluster.add_devices();
  device->set_name("chip");
  device->set_memory_bytes(64e6);
  device->set_memory_bandwidth(20e9);
  device->set_launch_seconds(2e-6);
  cluster::MatrixRate *rate = device->add_matrix();
  rate->set_dtype("f32");
  rate->set_flops(200e9);
  rate->set_sustained(0.8);
  cluster::NodeKind *node = cluster.add_node_kinds();
  node->set_name("board");
  node->set_device("chip");
  node->set_devices(devicesOfNode);
  node->mutable_link()->set_bandwidth(4e9);
  node->mutable_link()->set_latency(2e-6);
  node->set_device_network_bandwidth(1e9);
  cluster::NodeGroup *group = cluster.add_nodes();
  group->set_node("board");
  group->set_count(nodes);
  cluster.mutable_network()->set_latency(1e-5);
  return cluster;
}

cluster::Cluster dtc::test::mixedCluster(int64_t devicesOfNode, double times) {
  cluster::Cluster cluster = smallCluster(1, devicesOfNode);
  cluster::DeviceKind &fast = *cluster.add_devices();
  fast = cluster.devices(0);
  fast.set_name("fast");
  fast.set_memory_bandwidth(times * fast.memory_bandwidth());
  fast.set_launch_seconds(fast.launch_seconds() / times);
  fast.mutable_matrix(0)->set_flops(times * fast.matrix(0).flops());
  cluster::NodeKind &node = *cluster.add_node_kinds();
  node = cluster.node_kinds(0);
  node.set_name("fast board");
  node.set_device("fast");
  cluster::NodeGroup *group = cluster.add_nodes();
  group->set_node("fast board");
  group->set_count(1);
  return cluster;
}

std::string PlannedCase::str() const {
  std::string fixed;
  for (const auto &[axis, size] : options.axes)
    fixed += fmt::format(" {}={}", axis, size);
  for (const std::string &option : options.fixed)
    fixed += " " + option;
  const cluster::NodeKind &node = cluster.node_kinds(0);
  return fmt::format("seed {}: {}, {} x {} devices of {:.1f} MB, link {:.2g} GB/s, network {:.2g} "
                     "GB/s, fixed:{}",
                     seed, model.str(), cluster.nodes(0).count(), node.devices(),
                     cluster.devices(0).memory_bytes() / 1e6, node.link().bandwidth() / 1e9,
                     node.device_network_bandwidth() / 1e9, fixed);
}

/// Fixes options, in an order that the seed says, until few strategies remain.
static void fixOptions(PlannerOptions &options, const ModelProperties &traits,
                       const std::function<int64_t(uint64_t)> &below) {
  auto fix = [&](const char *option, auto set) {
    PlannerOptions tried = options;
    tried.fixed.insert(option);
    set(tried.base);
    size_t left = enumerateStrategies(tried, traits).size();
    if (left >= 8)
      options = tried;
  };
  for (int step = 0; step < 40 && enumerateStrategies(options, traits).size() > 60; ++step)
    switch (below(6)) {
    case 0:
      fix("recompute", [&](CompileOptions &o) {
        o.recompute =
            std::array{Recompute::None, Recompute::Selective, Recompute::Full}[size_t(below(3))];
      });
      break;
    case 1:
      fix("zero", [&](CompileOptions &o) { o.zero = below(4); });
      break;
    case 2:
      fix("microbatches", [&](CompileOptions &o) { o.microbatches = int64_t(1) << below(3); });
      break;
    case 3:
      fix("sequence_parallel", [&](CompileOptions &o) { o.sequenceParallel = below(2) > 0; });
      break;
    case 4:
      fix("schedule", [&](CompileOptions &o) {
        o.schedule = std::array{"gpipe", "1f1b", "interleaved", "zb-h1", "zb-v"}[size_t(below(5))];
      });
      break;
    default:
      fix("bucket_bytes",
          [&](CompileOptions &o) { o.bucketBytes = int64_t(1) << (14 + below(10)); });
    }
}

PlannedCase dtc::test::randomCase(uint64_t seed, int64_t mostDevices) {
  // Only integers are drawn: the standard fixes those of mt19937_64, but not its distributions.
  std::mt19937_64 random(seed);
  auto below = [&](uint64_t count) { return int64_t(random() % count); };
  auto between = [&](double least, double most) { // in the logarithm
    return least * std::pow(most / least, double(below(1000)) / 999);
  };
  PlannedCase result;
  result.seed = seed;
  PlannedModel &model = result.model;
  model.name = below(2) ? "gpt2" : "llama";
  model.layers = int64_t(2) << below(2);
  model.hidden = int64_t(32) << below(3);
  model.batch = int64_t(8) << below(2);
  model.seq = int64_t(16) << below(3);

  int64_t devices = 2;
  while (devices * 2 <= mostDevices && below(3) > 0)
    devices *= 2;
  int64_t inNode = devices;
  while (inNode > 1 && below(3) == 0)
    inNode /= 2;
  result.cluster = smallCluster(devices / inNode, inNode);
  cluster::DeviceKind &device = *result.cluster.mutable_devices(0);
  device.mutable_matrix(0)->set_flops(between(2e10, 2e12));
  device.set_memory_bandwidth(between(5e9, 2e11));
  device.set_launch_seconds(between(5e-7, 1e-5));
  // From little less than the smallest plans need.
  device.set_memory_bytes(between(1e6, 64e6));
  cluster::NodeKind &node = *result.cluster.mutable_node_kinds(0);
  node.mutable_link()->set_bandwidth(between(2e8, 2e10));
  node.mutable_link()->set_latency(between(1e-6, 2e-5));
  node.set_device_network_bandwidth(node.link().bandwidth() / between(1, 20));
  result.cluster.mutable_network()->set_latency(between(2e-6, 5e-5));

  PlannerOptions &options = result.options;
  options.cluster = &result.cluster;
  ModelProperties traits{.batch = model.batch,
                         .hasBatch = true,
                         .samplePositions = model.seq,
                         .layers = model.layers,
                         .hasTensorAxes = true,
                         .hasSequenceAxis = true};
  fixOptions(options, traits, below);
  options.cluster = nullptr;
  return result;
}

Expected<Regret> dtc::test::findRegret(const PlannedCase &planned) {
  PlannerContext compiler;
  auto model = importCase(compiler, planned.model);
  if (!model)
    return Error{"the model cannot be imported: " + compiler.diagnostics()};
  PlannerOptions options = planned.options;
  options.cluster = &planned.cluster;
  auto choice = Planner(*model, "test", options).run();
  if (!choice)
    return choice.error();
  Regret regret;
  regret.simulated = choice->progress.simulated;
  auto nameOf = [&](const ParallelStrategy &strategy) {
    return describeStrategy(strategy.toOptions(options.base));
  };
  if (!choice->best.empty()) {
    regret.chosen = choice->best.front().seconds();
    regret.chosenStrategy = nameOf(choice->best.front().strategy);
  }
  double memory = planned.cluster.devices(0).memory_bytes();
  CostProbe probe(*model, options.base, planned.cluster, planned.model.batch);
  ModelProperties traits = findProperties(*model, probe.numLayers());
  mlir::ScopedDiagnosticHandler quiet(&compiler.context(),
                                      [](mlir::Diagnostic &) { return mlir::success(); });
  for (const ParallelStrategy &strategy : enumerateStrategies(options, traits)) {
    ++regret.strategies;
    CandidateSearch search(*model, "test");
    std::optional<Candidate> candidate = search.run(optionsOf(strategy, options));
    if (!candidate)
      continue;
    auto simulation = simulateOnCluster(candidate->plan, planned.cluster);
    if (!simulation)
      return simulation.error();
    ++regret.compiled;
    if (double(candidate->peak()) > memory)
      continue;
    ++regret.fitting;
    if (regret.best == 0 || simulation->stepSeconds < regret.best) {
      regret.best = simulation->stepSeconds;
      regret.bestStrategy = nameOf(strategy);
    }
  }
  return regret;
}
