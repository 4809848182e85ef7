//===- StepPrediction.cpp - Predicted step of a published configuration ---===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/StepPrediction.h"

#include "benchmarks/AttentionAgain.h"
#include "benchmarks/GradientKernels.h"
#include "benchmarks/ImportAndCompile.h"
#include "benchmarks/LayerOverlap.h"
#include "benchmarks/ScatteredTransfers.h"
#include "benchmarks/StoredMasks.h"
#include "benchmarks/WholeRecompute.h"
#include "compiler/planner/ClusterSpeeds.h"
#include "compiler/planner/CostProbe.h"
#include "plan/PlanTypes.h"
#include "simulator/Simulation.h"
#include "simulator/cluster/ClusterReader.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <fmt/format.h>

using namespace dtc;
using namespace dtc::benchmarks;

namespace {

/// The fields in which the configurations of a family have what a case may give.
struct Family {
  const char *type;
  const char *heads, *kvHeads, *hidden, *mlp, *layers, *vocab, *positions;
};

constexpr Family kFamilies[] = {
    {"gpt2", "n_head", nullptr, "n_embd", "n_inner", "n_layer", "vocab_size", "n_positions"},
    {"llama", "num_attention_heads", "num_key_value_heads", "hidden_size", "intermediate_size",
     "num_hidden_layers", "vocab_size", "max_position_embeddings"}};

const Family *findFamily(llvm::StringRef type) {
  for (const Family &family : kFamilies)
    if (type == family.type)
      return &family;
  return nullptr;
}

} // namespace

/// A configuration of the family that lacks nothing but sizes.
static llvm::json::Object defaultsOf(const Family &family) {
  llvm::json::Object config;
  config["model_type"] = family.type;
  config["tie_word_embeddings"] = std::string(family.type) == "gpt2";
  if (std::string(family.type) == "gpt2")
    config["activation_function"] = "gelu_new";
  else
    config["hidden_act"] = "silu";
  return config;
}

static Expected<llvm::json::Object> readConfig(const PublishedCase &row,
                                               const std::string &folder) {
  if (const Family *family = findFamily(row.config)) {
    for (auto [name, size] : {std::pair("heads", row.heads),
                              {"hidden", row.hidden},
                              {"layers", row.layers},
                              {"vocab", row.vocab}})
      if (size == 0)
        return Error{fmt::format("column {}: found nothing, expected a number for config {}, which "
                                 "is no file",
                                 name, row.config)};
    if (family->kvHeads && row.mlp == 0)
      return Error{fmt::format("column mlp: found nothing, expected a number for config {}, which "
                               "is no file",
                               row.config)};
    return defaultsOf(*family);
  }
  llvm::SmallString<128> path(row.config);
  if (llvm::sys::path::is_relative(path)) {
    path = folder;
    llvm::sys::path::append(path, row.config);
  }
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return Error{fmt::format("column config: {}: cannot open: {}; expected a file, gpt2 or llama",
                             path.c_str(), buffer.getError().message())};
  auto value = llvm::json::parse((*buffer)->getBuffer());
  if (!value)
    return Error{
        fmt::format("column config: {}: {}", path.c_str(), llvm::toString(value.takeError()))};
  if (llvm::json::Object *object = value->getAsObject())
    return std::move(*object);
  return Error{fmt::format("column config: {}: expected a JSON object", path.c_str())};
}

/// The text of a case's configuration.
static Expected<std::string> configOf(const PublishedCase &row, const std::string &folder) {
  Expected<llvm::json::Object> config = readConfig(row, folder);
  if (!config)
    return config.error();
  auto type = config->getString("model_type");
  const Family *family = type ? findFamily(*type) : nullptr;
  auto set = [&](const char *column, const char *key, int64_t size) -> MaybeError {
    if (size == 0)
      return std::nullopt;
    if (!family || !key)
      return Error{fmt::format("column {}: found {}, but models of type \"{}\" have no such size "
                               "here; write it into the configuration",
                               column, size, type ? type->str() : "")};
    (*config)[key] = size;
    return std::nullopt;
  };
  for (MaybeError error : {set("heads", family ? family->heads : nullptr, row.heads),
                           set("kv_heads", family ? family->kvHeads : nullptr, row.kvHeads),
                           set("hidden", family ? family->hidden : nullptr, row.hidden),
                           set("mlp", family ? family->mlp : nullptr, row.mlp),
                           set("layers", family ? family->layers : nullptr, row.layers),
                           set("vocab", family ? family->vocab : nullptr, row.vocab)})
    if (error)
      return *error;
  // Sequences may be longer than those that a configuration was made for.
  if (family) {
    auto positions = config->getInteger(family->positions);
    if (!positions || *positions < row.seq)
      (*config)[family->positions] = row.seq;
  }
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(*config));
  return text;
}

static Expected<std::unique_ptr<ImportedModel>> import(const PublishedCase &row,
                                                       const std::string &folder, int64_t batch) {
  Expected<std::string> config = configOf(row, folder);
  if (!config)
    return config.error();
  ImportOptions options;
  options.batch = batch;
  options.seq = row.seq;
  options.attention =
      row.attention == "decomposed" ? AttentionKind::Decomposed : AttentionKind::Fused;
  options.dropout = row.dropout;
  return ImportedModel::create(*config, row.config, row.name, options);
}

/// Given stages with as many layers on each, in order; none where the layers of the model are not
/// alike or do not divide so.
static std::string equalStages(const std::string &prefix, int64_t layers, int64_t stages) {
  if (prefix.empty() || layers % stages != 0)
    return "";
  int64_t each = layers / stages;
  std::string given;
  for (int64_t stage = 0; stage < stages; ++stage)
    given += fmt::format("{0}{1}{2}-{1}{3}", stage > 0 ? "|" : "", prefix, stage * each,
                         (stage + 1) * each - 1);
  return given;
}

/// The bytes of the program's parameters with their master weights, gradients and optimizer's state
/// when all are there, as they are not always at the moment of the peak. Where `layers` is not
/// empty, only parameters that have it and a number in their names count.
static double stateBytes(const plan::Program &program, const std::string &layers) {
  double bytes = 0;
  for (const plan::State &state : program.states()) {
    size_t at = layers.empty() ? 0 : state.name().find("." + layers);
    if (at == std::string::npos)
      continue;
    const plan::Buffer &buffer = program.buffers(static_cast<int>(state.buffer()));
    TensorType type = typeOf(buffer);
    bytes += static_cast<double>(type.numBytes());
    // Sums over microbatches are in f32.
    if (kindOf(buffer) == BufferKind::Parameter)
      bytes += 4 * static_cast<double>(type.numElements());
  }
  return bytes;
}

/// What Megatron-LM recomputed without being asked: with sequence parallelism, a product keeps the
/// part of its input that its device has, and gathers it again.
static Recompute leastRecompute(const PublishedCase &row) {
  return row.sequenceParallel ? Recompute::Gathers : Recompute::None;
}

static CompileOptions optionsOf(const PublishedCase &row) {
  CompileOptions options;
  options.microbatches = row.microbatches();
  options.schedule = row.schedule;
  options.chunks = row.chunks;
  options.stages = row.stages;
  options.sequenceParallel = row.sequenceParallel;
  options.zero = row.zero;
  options.recompute = *valueOf<Recompute>(row.recompute);
  if (row.isMegatron()) {
    options.noOverlap = true; // see overlapWithinLayers()
    if (options.recompute == Recompute::None)
      options.recompute = leastRecompute(row);
  }
  options.dtype = *valueOf<ComputeType>(row.dtype);
  options.optimizer = *valueOf<Optimizer>(row.optimizer);
  // A pipeline tells forward from backward also where all of the model is one stage.
  options.mesh = {{kPipelineAxis, row.pp}};
  if (row.dp > 1)
    options.mesh.emplace_back("dp", row.dp);
  if (row.tp > 1)
    options.mesh.emplace_back("tp", row.tp);
  return options;
}

static double secondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Megatron-LM compiles work element by element into one kernel; the calls that dtc-run computes
/// together are others.
static void fuseAsMegatron(cluster::Cluster &cluster) {
  for (cluster::DeviceKind &device : *cluster.mutable_devices())
    if (device.fuses_calls()) {
      device.set_fuses_calls(false);
      device.set_fuses_pointwise(true);
    }
}

/// Executes the passes of a compiled plan as Megatron-LM did.
static void executeAsMegatron(const PublishedCase &row, plan::Plan &plan) {
  overlapWithinLayers(plan);
  if (row.recompute == "selective")
    computeAttentionToItsEnd(plan);
  addMaskTraffic(plan);
}

Expected<StepPrediction> benchmarks::predictStep(const PublishedCase &row,
                                                 const std::string &folder,
                                                 cluster::Cluster cluster) {
  if (MaybeError error = extendCluster(cluster, row.devices()))
    return *error;
  if (row.isMegatron())
    fuseAsMegatron(cluster);
  auto model = import(row, folder, row.batch);
  if (!model)
    return model.error();
  CompileOptions options = optionsOf(row);
  useClusterSpeeds(cluster, options);
  std::string prefix;
  int64_t layers = 0;
  { // The short model must not outlive the whole one's context.
    ReducedModel shortened = removeRepeatedLayers((*model)->module(), 1);
    prefix = shortened.prefix;
    layers = shortened.layers;
  }
  if (int64_t stages = row.pp * chunksOf(options);
      options.stages.empty() && row.equalStages && stages > 1)
    options.stages = equalStages(prefix, layers, stages);
  auto compiled = (*model)->compile(options);
  if (!compiled)
    return compiled.error();
  StepPrediction result;
  result.compileSeconds = compiled->importSeconds + compiled->compileSeconds;
  const plan::Program &first = compiled->plan->programs(0);
  result.stateBytes = stateBytes(first, row.stateOfLayers ? prefix : "");
  result.keptBytes = keptBytes(first, /*ofAllMicrobatches=*/true);
  // Recomputed ops draw their masks again.
  if (row.isMegatron() && row.recompute != "full")
    result.maskBytes = storedMaskBytes(*compiled->plan, first, row.stateOfLayers ? prefix : "");
  result.arenaBytes = static_cast<double>(first.arena_bytes());
  std::vector<double> arenas;
  for (const plan::Program &program : compiled->plan->programs())
    arenas.push_back(static_cast<double>(program.arena_bytes()));
  bool computesAgain = row.isMegatron() && row.recompute == "full" && !prefix.empty();
  if (computesAgain) {
    model = import(row, folder, row.batch);
    if (!model)
      return model.error();
    options.recompute = leastRecompute(row);
    compiled = (*model)->compile(options);
    if (!compiled)
      return compiled.error();
  }
  if (row.isMegatron()) {
    if (row.tp > 1 && !row.sequenceParallel)
      scatterTransfers(*compiled->plan, std::string(kTensorAxis), row.tp);
    executeAsMegatron(row, *compiled->plan);
    if (computesAgain)
      computeForwardAgain(*compiled->plan, prefix);
    addGradientKernels(*compiled->plan);
  }
  auto begin = std::chrono::steady_clock::now();
  auto simulation = simulateOnCluster(*compiled->plan, cluster);
  if (!simulation)
    return simulation.error();
  result.simulateSeconds = secondsSince(begin);
  result.seconds = simulation->stepSeconds;
  result.modelFlopsShare = simulation->mfu();
  // The plan that is simulated may be one that recomputes nothing.
  for (auto [arena, stage] : llvm::zip_equal(arenas, simulation->stages))
    if (arena * result.usableBytes >= result.neededBytes * stage.memoryBytes) {
      result.neededBytes = arena;
      result.usableBytes = stage.memoryBytes;
    }
  return result;
}

Expected<LayerPrediction> benchmarks::predictLayer(const PublishedCase &row,
                                                   const std::string &folder,
                                                   cluster::Cluster cluster) {
  // Several microbatches, so that gradients are summed over them.
  constexpr int64_t microbatches = 4, stages = 3;
  if (MaybeError error = extendCluster(cluster, stages * row.tp))
    return *error;
  if (row.isMegatron())
    fuseAsMegatron(cluster);
  int64_t batch = microbatches * row.microbatch;
  auto model = import(row, folder, batch);
  if (!model)
    return model.error();
  CompileOptions options = optionsOf(row);
  CostProbe probe((*model)->module(), options, cluster, batch);
  if (row.isMegatron())
    probe.changePlans([&row](plan::Plan &plan) { executeAsMegatron(row, plan); });
  llvm::ArrayRef<ModelCosts> costs = probe.find(
      {row.tp, /*ep=*/1, /*cp=*/1, row.microbatch, row.sequenceParallel, options.recompute});
  if (costs.empty() || costs.front().layers == 0)
    return Error{fmt::format(
        "{}: {}", row.config,
        probe.numLayers() == 0 ? "found no layers that repeat each other, so that one could be "
                                 "timed for all; give a model of more than 3 layers that are alike"
                               : "a layer on each stage does not compile; see what a whole step "
                                 "says, without --layer")};
  LayerPrediction result{costs.front().layer.forward, costs.front().layer.backward};
  if (row.isMegatron() && row.recompute == "full")
    if (llvm::ArrayRef<ModelCosts> kept = probe.find({row.tp, /*ep=*/1, /*cp=*/1, row.microbatch,
                                                      row.sequenceParallel, leastRecompute(row)});
        !kept.empty())
      result.backward = kept.front().layer.backward + result.forward;
  return result;
}
