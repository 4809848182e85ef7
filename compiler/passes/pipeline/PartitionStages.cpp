//===- PartitionStages.cpp - Assign ops to pipeline stages ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/DescribeLocation.h"
#include "compiler/analysis/FactorMerge.h"
#include "compiler/analysis/LocalCost.h"
#include "compiler/analysis/StagePartition.h"
#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/pipeline/GivenStages.h"
#include "compiler/passes/sharding/DecidedAxes.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <limits>
#include <numeric>

namespace dtc {
#define GEN_PASS_DEF_PARTITIONSTAGESPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

class StageCutter {
public:
  StageCutter(func::FuncOp function, const LinkedMesh &mesh, int64_t stages, StringRef given,
              ArrayRef<int64_t> starts)
      : function(function), mesh(mesh), planner(mesh), stages(stages), given(given),
        starts(starts) {}
  LogicalResult run();

private:
  void findOps();
  double seconds(ShardingRuleOpInterface op);
  /// The seconds in which a link carries a value to the next stage, and its gradient back.
  double crossingSeconds(Value value);
  std::vector<double> crossings();
  SmallVector<BlockArgument> parametersOf(Operation *op);
  std::vector<bool> placesToCut(ArrayRef<double> crossing) const;
  FailureOr<std::vector<size_t>> chooseCuts();
  FailureOr<std::vector<size_t>> cutAtStarts();
  void noteStarts(ArrayRef<size_t> begins);
  void assign(ArrayRef<size_t> begins);
  void report(ArrayRef<size_t> begins);
  Layout layoutOf(Value value) { return getLayout(mesh, dist::getSharding(value)); }

  func::FuncOp function;
  const LinkedMesh &mesh;
  ReshardCache planner;
  int64_t stages;
  StringRef given;
  ArrayRef<int64_t> starts;
  /// The ops that work on a microbatch, in their order.
  SmallVector<Operation *> forward, backward;
  std::vector<double> costs; ///< of each forward op, its gradients included, in seconds
};

} // namespace

void StageCutter::findOps() {
  unsigned time = *mesh.temporalAxis();
  auto isOfMicrobatch = [&](Value value) { return layoutOf(value).mentions(time); };
  llvm::DenseSet<Operation *> gradients;
  llvm::DenseMap<int64_t, size_t> indexOf; // of dtc.op numbers
  llvm::DenseSet<Value> onceAStep;
  for (Operation &op : function.front().without_terminator()) {
    if (isa<dist::SumBatchesOp>(op) || llvm::any_of(op.getOperands(), [&](Value operand) {
          return onceAStep.contains(operand);
        })) {
      onceAStep.insert(op.result_begin(), op.result_end());
      continue;
    }
    bool isGradient =
        op.hasAttr(kGradientOfAttrName) || llvm::any_of(op.getOperands(), [&](Value operand) {
          return gradients.contains(operand.getDefiningOp());
        });
    if (isGradient)
      gradients.insert(&op);
    // Values that are the same for all microbatches, if cut to their size, are made wherever they
    // are needed.
    if (llvm::none_of(op.getOperands(), isOfMicrobatch))
      continue;
    auto rule = dyn_cast<ShardingRuleOpInterface>(op);
    double cost = rule && !op.hasTrait<dtc::OpTrait::IsView>() ? seconds(rule) : 0;
    if (!isGradient) {
      if (auto number = op.getAttrOfType<IntegerAttr>(kOpNumberAttrName))
        indexOf[number.getInt()] = forward.size();
      forward.push_back(&op);
      costs.push_back(cost);
      continue;
    }
    backward.push_back(&op);
    if (auto number = op.getAttrOfType<IntegerAttr>(kGradientOfAttrName))
      if (auto it = indexOf.find(number.getInt()); it != indexOf.end())
        costs[it->second] += cost;
  }
}

double StageCutter::seconds(ShardingRuleOpInterface op) {
  ShardingRule rule = op.getShardingRule();
  SmallVector<Layout> layouts;
  SmallVector<FactorTensor> tensors;
  for (Value value : op->getOperands())
    layouts.push_back(layoutOf(value));
  for (Value value : op->getResults())
    layouts.push_back(layoutOf(value));
  auto add = [&](ValueRange values, ArrayRef<TensorFactors> factors, bool isResult) {
    for (auto [value, list] : llvm::zip_equal(values, factors))
      tensors.push_back(
          {&list, &layouts[tensors.size()], 0, elementBytes(value.getType()), isResult});
  };
  add(op->getOperands(), rule.operands, false);
  add(op->getResults(), rule.results, true);
  std::optional<FactorAxes> axes = decidedAxes(op, mesh, rule);
  if (!axes)
    axes = mergeFactorAxes(mesh, rule, tensors);
  double result = factorAxesSeconds(mesh, planner, rule, tensors, *axes, op.getFlops());
  // A reshard that no collectives can express is refused where it is inserted, with a diagnostic.
  return std::isfinite(result) ? result : 0;
}

double StageCutter::crossingSeconds(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  double bytes = elementBytes(type);
  for (int64_t size : layoutOf(value).localShape(mesh, type.getShape()))
    bytes *= double(size);
  // Latency delays the first microbatch; the others wait for the bandwidth of the link.
  double bandwidth = mesh.axes[*mesh.pipelineAxis()].bandwidth;
  return (isa<FloatType>(type.getElementType()) ? 2 : 1) * bytes / bandwidth;
}

/// For each place before a forward op, the seconds of all values that cross it.
std::vector<double> StageCutter::crossings() {
  llvm::DenseMap<Operation *, size_t> numbers;
  for (auto [number, op] : llvm::enumerate(forward))
    numbers[op] = number;
  std::vector<double> change(forward.size() + 1, 0);
  for (auto [number, op] : llvm::enumerate(forward))
    for (Value result : op->getResults()) {
      size_t last = number;
      for (Operation *user : result.getUsers())
        if (auto it = numbers.find(user); it != numbers.end())
          last = std::max(last, it->second);
      if (last == number)
        continue;
      double seconds = crossingSeconds(result);
      change[number + 1] += seconds;
      change[last + 1] -= seconds;
    }
  // A parameter that is used on both sides lives on both, and its gradients are exchanged once a
  // step. Where the link is not known they count as what is sent for each microbatch, so that both
  // uses are on one stage if they can be.
  llvm::DenseMap<BlockArgument, std::pair<size_t, size_t>> uses;
  for (auto [number, op] : llvm::enumerate(forward))
    for (BlockArgument param : parametersOf(op)) {
      auto [it, fresh] = uses.try_emplace(param, number, number);
      it->second.second = number;
    }
  for (BlockArgument arg : function.getArguments())
    if (auto it = uses.find(arg); it != uses.end() && it->second.first < it->second.second) {
      double seconds = crossingSeconds(arg);
      if (mesh.axes[*mesh.pipelineAxis()].hasKnownLink)
        seconds /= double(mesh.axes[*mesh.temporalAxis()].size);
      change[it->second.first + 1] += seconds;
      change[it->second.second + 1] -= seconds;
    }
  std::vector<double> result(forward.size(), 0);
  double sum = 0;
  for (size_t place = 0; place < forward.size(); ++place)
    result[place] = std::max(sum += change[place], 0.0);
  // Values that cross everywhere, such as a tied table, favour no place.
  double least = std::numeric_limits<double>::infinity();
  for (size_t place = 1; place < forward.size(); ++place)
    least = std::min(least, result[place]);
  for (double &seconds : result)
    seconds = std::max(seconds - least, 0.0);
  return result;
}

/// The parameters that the op reads, through what is made of them once a step.
SmallVector<BlockArgument> StageCutter::parametersOf(Operation *op) {
  SmallVector<BlockArgument> parameters;
  llvm::DenseSet<Operation *> seen;
  SmallVector<Value> worklist(op->getOperands());
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (layoutOf(value).mentions(*mesh.temporalAxis()))
      continue;
    if (auto arg = dyn_cast<BlockArgument>(value)) {
      if (function.getArgAttr(arg.getArgNumber(), "dtc.param"))
        parameters.push_back(arg);
    } else if (seen.insert(value.getDefiningOp()).second) {
      llvm::append_range(worklist, value.getDefiningOp()->getOperands());
    }
  }
  return parameters;
}

/// A stage of ops that cost nothing would be none: between two ops that take time there is one
/// place, where the least crosses.
std::vector<bool> StageCutter::placesToCut(ArrayRef<double> crossing) const {
  std::vector<bool> places(forward.size(), false);
  bool behindWork = false;
  std::optional<size_t> best;
  for (size_t place = 0; place < forward.size(); ++place) {
    if (behindWork && (!best || crossing[place] <= crossing[*best]))
      best = place;
    if (costs[place] <= 0)
      continue;
    if (best)
      places[*best] = true;
    best.reset();
    behindWork = true;
  }
  return places;
}

/// The part of a stage's mean time that the largest cut counts for.
static constexpr double kMostForCuts = 0.02;
/// The part of a message's time beyond this many times a stage's mean time counts in full.
static constexpr double kLongMessage = 2;

FailureOr<std::vector<size_t>> StageCutter::chooseCuts() {
  if (!given.empty())
    return cutAtGivenStages(function, forward, stages, given);
  if (!starts.empty())
    return cutAtStarts();
  if (stages == 1)
    return std::vector<size_t>{0};
  StagePartitionProblem problem;
  problem.seconds = costs;
  problem.cutSeconds = crossings();
  // Messages move beside the work: their sizes decide between cuts that are about as even. But
  // nothing hides a message that takes much longer than the work of a stage; only known links tell
  // how long it takes.
  double mean = std::accumulate(costs.begin(), costs.end(), 0.0) / double(stages);
  double largest = *llvm::max_element(problem.cutSeconds);
  double scale = largest > kMostForCuts * mean ? kMostForCuts * mean / largest : 1;
  bool isKnown = mesh.axes[*mesh.pipelineAxis()].hasKnownLink;
  for (double &seconds : problem.cutSeconds)
    seconds = seconds * scale + (isKnown ? std::max(seconds - kLongMessage * mean, 0.0) : 0);
  problem.mayCut = placesToCut(problem.cutSeconds);
  // Ops of one number stay together: where another function is cut at that number, they do too.
  for (size_t place = 1; place < forward.size(); ++place)
    if (Attribute number = forward[place]->getAttr(kOpNumberAttrName);
        number && number == forward[place - 1]->getAttr(kOpNumberAttrName))
      problem.mayCut[place] = false;
  problem.stages = int(stages);
  if (auto error = checkPartition(problem))
    return function.emitError() << error->message;
  StagePartition partition = partitionStages(problem);
  return std::vector<size_t>(partition.firstOps.begin(), partition.firstOps.end());
}

/// The ops whose number is the first that is at least that of each start.
FailureOr<std::vector<size_t>> StageCutter::cutAtStarts() {
  std::vector<size_t> begins{0};
  for (int64_t start : starts) {
    size_t place = begins.back() + 1;
    while (place < forward.size()) {
      auto number = forward[place]->getAttrOfType<IntegerAttr>(kOpNumberAttrName);
      if (number && number.getInt() >= start)
        break;
      ++place;
    }
    if (place >= forward.size())
      return function.emitError() << "no op of a later stage has a number of at least " << start;
    begins.push_back(place);
  }
  if (int64_t(begins.size()) != stages)
    return function.emitError() << "there are " << starts.size() << " starts of stages, expected "
                                << stages - 1 << ", one less than the pipeline has stages";
  return begins;
}

/// Says where a function without a backward pass was cut.
void StageCutter::noteStarts(ArrayRef<size_t> begins) {
  if (!backward.empty())
    return;
  SmallVector<int64_t> numbers;
  for (size_t begin : begins.drop_front()) {
    auto number = forward[begin]->getAttrOfType<IntegerAttr>(kOpNumberAttrName);
    for (size_t place = begin + 1; !number && place < forward.size(); ++place)
      number = forward[place]->getAttrOfType<IntegerAttr>(kOpNumberAttrName);
    if (!number)
      return;
    numbers.push_back(number.getInt());
  }
  if (!numbers.empty())
    function->setAttr(dist::kStageStartsAttrName,
                      DenseI64ArrayAttr::get(function.getContext(), numbers));
}

void StageCutter::assign(ArrayRef<size_t> begins) {
  MLIRContext *context = function.getContext();
  auto mark = [&](Operation *op, int64_t stage, StagePass pass) {
    op->setAttr(dist::kStageAttrName, dist::StageAttr::get(context, stage, pass));
  };
  llvm::DenseMap<int64_t, int64_t> stageOfNumber;
  int64_t stage = -1;
  for (auto [number, op] : llvm::enumerate(forward)) {
    while (stage + 1 < int64_t(begins.size()) && begins[stage + 1] <= number)
      ++stage;
    mark(op, stage, StagePass::Forward);
    if (auto attr = op->getAttrOfType<IntegerAttr>(kOpNumberAttrName))
      stageOfNumber[attr.getInt()] = stage;
  }
  // The gradient of what has no stage itself, such as a broadcast of a bias, belongs where that is
  // used first.
  llvm::DenseMap<Operation *, int64_t> usedIn;
  for (Operation &op : llvm::reverse(function.front().without_terminator())) {
    auto attr = op.getAttrOfType<IntegerAttr>(kOpNumberAttrName);
    if (!attr || dist::getStage(&op))
      continue;
    for (Operation *user : op.getUsers()) {
      dist::StageAttr stage = dist::getStage(user);
      auto it = usedIn.find(user);
      if (!stage && it == usedIn.end())
        continue;
      int64_t index = stage ? stage.getIndex() : it->second;
      auto [own, fresh] = usedIn.try_emplace(&op, index);
      own->second = std::min(own->second, index);
    }
    if (auto it = usedIn.find(&op); it != usedIn.end())
      stageOfNumber[attr.getInt()] = it->second;
  }
  // Where nothing says whose gradient an op computes, it runs as soon as its operands have come:
  // gradients flow from later stages to earlier ones.
  llvm::DenseMap<Operation *, int64_t> found;
  for (Operation *op : backward) {
    std::optional<int64_t> stage;
    if (auto attr = op->getAttrOfType<IntegerAttr>(kGradientOfAttrName))
      if (auto it = stageOfNumber.find(attr.getInt()); it != stageOfNumber.end())
        stage = it->second;
    if (!stage)
      for (Value operand : op->getOperands())
        if (auto it = found.find(operand.getDefiningOp()); it != found.end())
          stage = std::min(stage.value_or(it->second), it->second);
    if (stage)
      found[op] = *stage;
  }
  // An op without such an operand, such as a mask, is made where the first that uses it runs.
  for (Operation *op : llvm::reverse(backward)) {
    if (!found.contains(op)) {
      int64_t stage = 0;
      for (Operation *user : op->getUsers())
        if (auto it = found.find(user); it != found.end())
          stage = std::max(stage, it->second);
      found[op] = stage;
    }
    mark(op, found.lookup(op), StagePass::Backward);
  }
  function.walk([](Operation *op) {
    op->removeAttr(kOpNumberAttrName);
    op->removeAttr(kGradientOfAttrName);
  });
}

/// A remark for each stage: from which layer to which, and its part of the time.
void StageCutter::report(ArrayRef<size_t> begins) {
  double total = std::accumulate(costs.begin(), costs.end(), 0.0);
  auto describe = [](Operation *op) {
    StringRef name = nameOf(op->getLoc());
    return name.empty() ? describeLocation(op->getLoc()) : name.str();
  };
  for (size_t stage = 0; stage < begins.size(); ++stage) {
    size_t begin = begins[stage];
    size_t end = stage + 1 < begins.size() ? begins[stage + 1] : forward.size();
    double share = std::accumulate(costs.begin() + begin, costs.begin() + end, 0.0);
    emitRemark(forward[begin]->getLoc())
        << "stage " << stage << " goes from " << describe(forward[begin]) << " to "
        << describe(forward[end - 1]) << ": " << end - begin << " of " << forward.size() << " ops, "
        << llvm::formatv("{0:f1}", total > 0 ? share / total * 100 : 0.0).str()
        << "% of the estimated time";
  }
}

LogicalResult StageCutter::run() {
  if (failed(checkProgram(function, mesh.name)) || failed(checkShardings(function)))
    return failure();
  if (!mesh.temporalAxis())
    return function.emitError() << "pipelines and recomputation work on microbatches, and the mesh "
                                   "has no temporal axis; add one, such as \"micro\"=4 temporal";
  findOps();
  if (forward.empty())
    return function.emitError()
           << "no op works on a microbatch, so that there is nothing to cut into stages; give the "
              "data a logical axis \"batch\", or a sharding over the temporal axis \""
           << mesh.axes[*mesh.temporalAxis()].name << "\"";
  FailureOr<std::vector<size_t>> begins = chooseCuts();
  if (failed(begins))
    return failure();
  noteStarts(*begins);
  assign(*begins);
  if (stages > 1)
    report(*begins);
  return success();
}

namespace {
struct PartitionStagesPass : dtc::impl::PartitionStagesPassBase<PartitionStagesPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(checkOption(getOperation(), "chunks", chunks, 1, kMaxChunks)))
      return signalPassFailure();
    if (failed(forEachFunction(
            getOperation(), [&](func::FuncOp function, const LinkedMesh &mesh) -> LogicalResult {
              std::optional<unsigned> axis = mesh.pipelineAxis();
              if (!axis && (!stages.empty() || !starts.empty() || chunks > 1))
                return function.emitError() << "stages are asked for, and the mesh has no pipeline "
                                               "axis; add pp to --mesh";
              if (!axis)
                return StageCutter(function, mesh, 1, "", {}).run();
              return StageCutter(function, mesh, mesh.axes[*axis].size * chunks, stages, starts)
                  .run();
            })))
      signalPassFailure();
  }
};
} // namespace
