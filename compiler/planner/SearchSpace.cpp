//===- SearchSpace.cpp - Search space of the planner ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/SearchSpace.h"

#include "compiler/analysis/PipelineSchedule.h"
#include "compiler/passes/sharding/LogicalAxes.h"
#include "compiler/planner/AxisMaps.h"
#include "dialects/dtc/DtcOps.h"
#include "simulator/cluster/Topology.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <numeric>
#include <utility>

using namespace mlir;
using namespace dtc;

CompileOptions ParallelStrategy::toOptions(const CompileOptions &base) const {
  CompileOptions options = base;
  options.mesh.clear();
  auto add = [&](const char *name, int64_t size) {
    if (size > 1)
      options.mesh.emplace_back(name, size);
  };
  if (!pipelineInside)
    add(kPipelineAxis, pp);
  add(kDataAxis, dp);
  if (pipelineInside)
    add(kPipelineAxis, pp);
  add(kShardedDataAxis, fsdp);
  add(kExpertAxis, ep);
  add(kContextAxis, cp);
  add(kTensorAxis, tp);
  options.microbatches = microbatches;
  options.sequenceParallel = sequenceParallel;
  if (cp == 1)
    options.contextExchange = ContextExchange::Auto;
  options.contextHeads = contextHeads;
  options.zero = zero;
  options.zeroAxes.clear();
  if (zero > 0)
    for (auto [axis, size] :
         {std::pair(fsdp > 1 ? kShardedDataAxis : kDataAxis, expertData()),
          std::pair(kExpertAxis, fsdp > 1 ? 1 : ep), std::pair(kContextAxis, fsdp > 1 ? 1 : cp)})
      if (size > 1)
        options.zeroAxes.emplace_back(axis);
  options.schedule = schedule;
  options.chunks = pp > 1 && chunks > 1 ? chunks : 0;
  options.recompute = recompute;
  // The strategy is compiled as it was asked for, and then it is looked at whether the plan fits.
  // Only recomputation can depend on a limit.
  options.memoryLimit = memoryLimit;
  options.bucketBytes = bucketBytes;
  options.stages = stages;
  llvm::append_range(options.shard, shard);
  llvm::append_range(options.shard, batchEntries(batchDims, options.mesh));
  return options;
}

ModelProperties dtc::findProperties(ModuleOp model, int64_t layers) {
  ModelProperties traits;
  traits.layers = layers;
  auto function = *model.getOps<func::FuncOp>().begin();
  function.walk([&](AttentionOp op) {
    for (Value operand : {op.getQ(), op.getK()})
      traits.heads =
          std::gcd(traits.heads, cast<RankedTensorType>(operand.getType()).getDimSize(2));
  });
  function.walk([&](Operation *op) {
    auto names = op->getAttrOfType<ArrayAttr>("dtc.axes");
    if (!names || op->getNumResults() != 1)
      return;
    auto shape = cast<RankedTensorType>(op->getResult(0).getType()).getShape();
    for (auto [name, size] : llvm::zip(names.getAsRange<StringAttr>(), shape))
      if (name.getValue() == "residual_seq") {
        traits.hasSequenceAxis = true;
        traits.samplePositions = std::max(traits.samplePositions, size);
      }
  });
  // Integers are tokens or labels of positions. Other numbers are features, and a position may have
  // any number of them.
  auto addPositionsOf = [&](RankedTensorType type) {
    if (type.getElementType().isInteger(32))
      traits.samplePositions =
          std::max(traits.samplePositions, type.getNumElements() / traits.batch);
  };
  for (BlockArgument argument : function.getArguments()) {
    auto names = function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), "dtc.axes");
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!names || !type || !type.hasStaticShape() || type.getNumElements() == 0)
      continue;
    for (auto [name, size] : llvm::zip(names.getAsRange<StringAttr>(), type.getShape())) {
      StringRef text = name.getValue();
      if (text == kBatchAxisName && function.getArgAttr(argument.getArgNumber(), "dtc.input")) {
        traits.batch = size;
        traits.hasBatch = true;
        addPositionsOf(type);
      }
      if (text == "experts")
        traits.experts = size;
      if (text == kSequenceAxisName)
        traits.positions = std::max(traits.positions, size);
      traits.hasTensorAxes |= llvm::is_contained(tensorAxisNames(), text);
    }
  }
  if (traits.hasBatch)
    return traits;
  traits.batchDims = findBatchDims(function);
  traits.hasBatch = !traits.batchDims.empty();
  for (BlockArgument argument : function.getArguments())
    if (auto type = dyn_cast<RankedTensorType>(argument.getType());
        traits.hasBatch && function.getArgAttr(argument.getArgNumber(), "dtc.input") &&
        type.getRank() > 0) {
      traits.batch = type.getDimSize(0);
      addPositionsOf(type);
    }
  return traits;
}

static std::vector<int64_t> divisorsOf(int64_t number) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d * d <= number; ++d)
    if (number % d == 0) {
      divisors.push_back(d);
      if (d * d != number)
        divisors.push_back(number / d);
    }
  llvm::sort(divisors);
  return divisors;
}

namespace {
class Enumerator {
public:
  Enumerator(const PlannerOptions &options, const ModelProperties &traits)
      : options(options), traits(traits) {
    devices = usedDevices(*options.cluster, options.devices);
    for (const UsedNodes &used : findUsedNodes(*options.cluster, devices))
      inNode = std::max<int64_t>(inNode, used.node->devices());
    isMixed = kindsOfNodes(*options.cluster, options.devices).size() > 1;
  }

  std::vector<ParallelStrategy> run() {
    for (int64_t tp : choose(kTensorAxis, tensorSizes()))
      for (int64_t pp : choose(kPipelineAxis, pipelineSizes(tp)))
        if (devices % (tp * pp) == 0 && (pp == 1 || !traits.mixesSamples))
          addMeshes(tp, pp, devices / (tp * pp));
    return std::move(strategies);
  }

private:
  bool isFixed(const char *option) const { return options.fixed.contains(option); }

  /// The size of an axis that is fixed, or those that are tried.
  std::vector<int64_t> choose(const char *axis, std::vector<int64_t> sizes) const {
    auto it = options.axes.find(axis);
    return it == options.axes.end() ? std::move(sizes) : std::vector<int64_t>{it->second};
  }

  /// Between nodes tensor parallelism would send each layer's activations through the network.
  std::vector<int64_t> tensorSizes() const {
    std::vector<int64_t> sizes = divisorsOf(devices);
    llvm::erase_if(sizes, [&](int64_t size) {
      return size > 1 && (!traits.hasTensorAxes || size > inNode || inNode % size != 0);
    });
    return sizes;
  }

  std::vector<int64_t> pipelineSizes(int64_t tp) const {
    std::vector<int64_t> sizes = divisorsOf(devices / tp);
    llvm::erase_if(sizes, [&](int64_t size) {
      return size > 1 && size > std::max<int64_t>(traits.layers, kFewStages);
    });
    return sizes;
  }

  /// Experts of whole nodes, or of parts of one that divide it.
  std::vector<int64_t> expertSizes(int64_t tp, int64_t data) const {
    std::vector<int64_t> sizes = divisorsOf(traits.experts);
    llvm::erase_if(sizes, [&](int64_t size) {
      return data % size != 0 || (inNode % (size * tp) != 0 && size * tp % inNode != 0);
    });
    return sizes;
  }

  /// Parts of sequences in devices of one node or of whole ones. With few positions a part is not
  /// worth its messages, and where samples are many they are split instead.
  std::vector<int64_t> contextSizes(int64_t tp, int64_t data) const {
    std::vector<int64_t> sizes = divisorsOf(data);
    llvm::erase_if(sizes, [&](int64_t size) {
      return size > 1 &&
             (traits.positions / size < kLeastPart || traits.positions % (2 * size) != 0 ||
              (inNode % (size * tp) != 0 && size * tp % inNode != 0) ||
              (traits.positions < kLongSequence && traits.batch % data == 0));
    });
    return sizes;
  }

  /// How many neighbours along `cp` split heads, as one (none) and as many of a node as may, but
  /// not all of `cp`, which the form of the exchange says.
  std::vector<int64_t> headGroups(int64_t tp, int64_t cp) const {
    auto mayBe = [&](int64_t size) {
      return size == 1 ||
             (cp % size == 0 && size < cp && traits.heads > 0 && traits.heads % (size * tp) == 0);
    };
    std::vector<int64_t> sizes = {1};
    if (isFixed("context_heads"))
      sizes = {options.base.contextHeads};
    else if (options.base.contextExchange != ContextExchange::AllToAll)
      for (int64_t size : divisorsOf(cp))
        if (inNode % (size * tp) == 0 && mayBe(size))
          sizes = {1, size}; // the largest comes last
    if (sizes.back() == 1)
      return {1};
    llvm::erase_if(sizes, [&](int64_t size) { return !mayBe(size); });
    return sizes;
  }

  void addMeshes(int64_t tp, int64_t pp, int64_t data) {
    for (int64_t cp : choose(kContextAxis, contextSizes(tp, data)))
      if (data % cp == 0)
        for (int64_t ep : choose(kExpertAxis, expertSizes(tp * cp, data / cp)))
          if (data / cp % ep == 0)
            addMeshes(tp, pp, cp, ep, data / cp / ep);
  }

  void addMeshes(int64_t tp, int64_t pp, int64_t cp, int64_t ep, int64_t data) {
    ParallelStrategy strategy;
    strategy.cp = cp;
    strategy.ep = ep;
    strategy.tp = tp;
    strategy.pp = pp;
    strategy.batchDims = traits.batchDims;
    std::vector<int64_t> inner = {1};
    if (int64_t size = std::min(data, std::max<int64_t>(inNode / (tp * cp * ep), 1));
        size > 1 && size < data && data % size == 0)
      inner.push_back(size);
    for (int64_t fsdp : choose(kShardedDataAxis, inner)) {
      if (data % fsdp != 0)
        continue;
      strategy.fsdp = fsdp;
      strategy.dp = data / fsdp;
      if (auto it = options.axes.find(kDataAxis);
          it != options.axes.end() && it->second != strategy.dp)
        continue;
      for (bool inside : {false, true}) {
        strategy.pipelineInside = inside;
        if (inside && (pp == 1 || strategy.dp == 1))
          continue;
        for (int64_t heads : headGroups(tp, cp)) {
          strategy.contextHeads = heads;
          addOptions(strategy);
        }
      }
    }
  }

  void addOptions(ParallelStrategy strategy) {
    std::vector<bool> sequence = {false};
    if (strategy.tp > 1 && traits.hasSequenceAxis)
      sequence.push_back(true);
    // A strategy that cannot follow an option is left out.
    if (isFixed("sequence_parallel")) {
      if (options.base.sequenceParallel && sequence.size() == 1)
        return;
      sequence = {options.base.sequenceParallel};
    }
    std::vector<int64_t> zeros = {0};
    if (strategy.replicas() > 1)
      zeros = {0, 1, 2, 3};
    // Without ZeRO an axis of its own for it is the same as none.
    if (strategy.fsdp > 1)
      zeros = {1, 2, 3};
    if (isFixed("zero")) {
      if (options.base.zero > 0 ? strategy.replicas() == 1
                                : strategy.fsdp > 1 && !options.axes.contains(kShardedDataAxis))
        return;
      zeros = {options.base.zero};
    }
    std::vector<Recompute> recomputes = {Recompute::None, Recompute::Selective, Recompute::Full};
    if (isFixed("recompute"))
      recomputes = {options.base.recompute};
    for (bool sp : sequence)
      for (int64_t zero : zeros)
        for (Recompute recompute : recomputes) {
          strategy.sequenceParallel = sp;
          strategy.zero = zero;
          strategy.recompute = recompute;
          addMicrobatches(strategy);
        }
  }

  void addMicrobatches(ParallelStrategy strategy) {
    if (traits.batch % strategy.data() != 0)
      return;
    int64_t samples = traits.batch / strategy.data();
    std::vector<int64_t> counts = divisorsOf(samples);
    // Large microbatches keep much and gain nothing more from it.
    llvm::erase_if(counts, [&](int64_t count) {
      int64_t each = samples / count;
      return each > kFewSamples && each * traits.samplePositions > kMostPositions;
    });
    if (traits.mixesSamples)
      counts = {1};
    if (isFixed("microbatches")) {
      if (traits.mixesSamples && options.base.microbatches > 1)
        return;
      counts = {options.base.microbatches};
    }
    for (int64_t count : counts) {
      if (samples % count != 0)
        continue;
      strategy.microbatches = count;
      if (strategy.pp == 1)
        addBuckets(strategy);
      else
        addSchedules(strategy);
    }
  }

  void addSchedules(ParallelStrategy strategy) {
    for (const ScheduleRule &rule : getScheduleRules()) {
      // The others are never slower.
      if (rule.name == "naive" && !isFixed("schedule"))
        continue;
      if (isFixed("schedule") && rule.name != options.base.schedule &&
          options.base.schedule != "auto")
        continue;
      int64_t first = rule.minChunks, last = std::min(rule.maxChunks, kMostChunks);
      if (isFixed("chunks") && options.base.chunks > 0) {
        first = last = options.base.chunks;
        if (first < rule.minChunks || first > rule.maxChunks)
          continue;
      }
      for (int64_t chunks = first; chunks <= last; ++chunks) {
        int64_t stages = chunks * strategy.pp;
        int64_t places = llvm::divideCeil(traits.layers, stages) * stages;
        int64_t emptyPlaces = traits.layers / kLeastLayersOfEmptyPlace;
        bool isEven = places <= traits.layers + emptyPlaces;
        // A few layers can be cut in the middle; many parts of layers make many messages.
        if (stages > std::max<int64_t>(traits.layers + emptyPlaces, kFewStages))
          break;
        // Chunks beyond the least are for layers that divide evenly, as their users want them, or
        // nearly so: where 128 stages have 126 layers, the embedding and the loss have the other
        // two. On devices of several kinds no two stages need be alike.
        if (rule.minChunks != rule.maxChunks && !isFixed("chunks") && !isMixed && !isEven)
          continue;
        PipelineShape shape{int(strategy.pp), int(chunks), int(strategy.microbatches)};
        if (checkShape(shape, rule))
          continue;
        strategy.schedule = rule.name.str();
        strategy.chunks = chunks;
        addBuckets(strategy);
      }
    }
  }

  void addBuckets(ParallelStrategy strategy) {
    strategy.bucketBytes = options.base.bucketBytes;
    strategies.push_back(strategy);
    if (isFixed("bucket_bytes") || strategy.data() < kManyMembers)
      return;
    strategy.bucketBytes = kLargeBucket;
    strategies.push_back(strategy);
  }

  static constexpr int64_t kFewStages = 4;
  /// For each this many layers, the stages may have one empty place.
  static constexpr int64_t kLeastLayersOfEmptyPlace = 20;
  /// Positions of a part of a sequence; those of sequences that are split even where samples could
  /// be.
  static constexpr int64_t kLeastPart = 512, kLongSequence = 32768;
  static constexpr int64_t kFewSamples = 8;
  static constexpr int64_t kMostPositions = 32768;
  static constexpr int kMostChunks = 8;
  /// Where a ring has many members, 25 MiB are short messages.
  static constexpr int64_t kManyMembers = 32;
  static constexpr int64_t kLargeBucket = int64_t(200) << 20;

  const PlannerOptions &options;
  const ModelProperties &traits;
  int64_t devices = 1, inNode = 1;
  bool isMixed = false; ///< there are nodes of several kinds
  std::vector<ParallelStrategy> strategies;
};
} // namespace

ParallelStrategy dtc::standardOrder(ParallelStrategy strategy, const PlannerOptions &options) {
  if (!strategy.pipelineInside)
    return strategy;
  std::vector<UsedNodes> nodes =
      findUsedNodes(*options.cluster, usedDevices(*options.cluster, options.devices));
  int64_t inner = strategy.fsdp * strategy.ep * strategy.cp * strategy.tp;
  strategy.pipelineInside = nodes.size() != 1 || inner % nodes.front().node->devices() != 0;
  return strategy;
}

std::vector<ParallelStrategy> dtc::enumerateStrategies(const PlannerOptions &options,
                                                       const ModelProperties &traits) {
  return Enumerator(options, traits).run();
}
