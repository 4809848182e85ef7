//===- GatherParametersPerUse.cpp - Gathering parameters for each use -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// ZeRO stage 3 (Rajbhandari et al. 2020, section 5.3): a parameter that is split over the data axis
// is gathered just before a layer uses it and dropped after it, in the forward pass and again in
// the backward pass. The function has one gather for all uses; here each use of a layer gets its
// own.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/DescribeLocation.h"
#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/DeadOps.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/collectives/Buckets.h"
#include "dialects/dist/DistScaledOps.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace dtc {
#define GEN_PASS_DEF_GATHERPARAMETERSPERUSEPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

class ParameterGathers {
public:
  ParameterGathers(func::FuncOp function, ArrayRef<std::string> axes, int64_t bucketBytes,
                   int64_t prefetch)
      : function(function), axes(axes), bucketBytes(bucketBytes), prefetch(prefetch) {}
  void run();

private:
  /// Ops that follow each other and belong to one layer: where its parameters are whole.
  struct LayerUse {
    std::string layer;
    Operation *first;
    SmallVector<OpOperand *> uses; ///< of gathered values
  };
  void findGathered();
  void roundPerUse();
  void findLayerUses();
  void gatherFor(const LayerUse &layerUse, Operation *before);

  func::FuncOp function;
  ArrayRef<std::string> axes;
  int64_t bucketBytes;
  int64_t prefetch;
  /// Values that are a parameter, gathered over `axes`, perhaps cut or reshaped.
  llvm::SetVector<Value> gathered;
  SmallVector<LayerUse> layerUses;
};

} // namespace

/// Ops that make a value of a parameter by moving its elements: cheap enough to run again.
static bool movesElements(Operation *op) { return op->hasTrait<dtc::OpTrait::MovesElements>(); }

void ParameterGathers::findGathered() {
  auto isOver = [&](dist::AllGatherOp op) {
    return llvm::any_of(op.getAxes().getAsRange<StringAttr>(),
                        [&](StringAttr axis) { return llvm::is_contained(axes, axis.getValue()); });
  };
  SmallVector<std::pair<Value, bool>> worklist;
  for (BlockArgument arg : function.getArguments())
    if (function.getArgAttr(arg.getArgNumber(), "dtc.param"))
      worklist.push_back({arg, false});
  while (!worklist.empty()) {
    auto [value, whole] = worklist.pop_back_val();
    if (whole)
      gathered.insert(value);
    for (Operation *user : value.getUsers())
      if (movesElements(user) && user->getNumOperands() == 1) {
        auto gather = dyn_cast<dist::AllGatherOp>(user);
        worklist.push_back({user->getResult(0), whole || (gather && isOver(gather))});
      }
  }
}

/// Rounds a gathered parameter to 8 bits once more for each product, next to it, since the rounded
/// tensor takes room for the whole parameter, too.
void ParameterGathers::roundPerUse() {
  SmallVector<dist::QuantizeF8Op> rounded;
  function.walk([&](dist::QuantizeF8Op op) {
    if (gathered.contains(op.getInput()))
      rounded.push_back(op);
  });
  for (dist::QuantizeF8Op op : rounded) {
    // With what makes its scale: the largest magnitude on the device, and that of all devices.
    SmallVector<Operation *> chain{op};
    while (Operation *maker = chain.back()->getOperands().back().getDefiningOp()) {
      if (!isa<dist::AllReduceOp, dist::LargestMagnitudeOp>(maker))
        break;
      chain.push_back(maker);
    }
    llvm::SetVector<Operation *> products(op->user_begin(), op->user_end());
    for (Operation *product : products) {
      OpBuilder builder(product);
      IRMapping copies;
      for (Operation *each : llvm::reverse(chain)) {
        Operation *copy = builder.clone(*each, copies);
        if (auto stage = dist::getStage(product))
          copy->setAttr(dist::kStageAttrName, stage);
      }
      for (OpOperand &operand : product->getOpOperands())
        operand.set(copies.lookupOrDefault(operand.get()));
    }
    for (Operation *each : chain)
      if (each->use_empty())
        each->erase();
  }
}

void ParameterGathers::findLayerUses() {
  SmallVector<OpOperand *> uses;
  function.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (movesElements(op) && op->getNumOperands() == 1 && gathered.contains(op->getResult(0)))
      return;
    for (OpOperand &operand : op->getOpOperands())
      if (gathered.contains(operand.get()))
        uses.push_back(&operand);
  });
  for (OpOperand *use : uses) {
    Operation *user = use->getOwner();
    std::string layer = LayerName(nameOf(user->getLoc())).layer();
    bool same = !layerUses.empty() && layerUses.back().first->getBlock() == user->getBlock() &&
                dist::getStage(layerUses.back().first) == dist::getStage(user) &&
                (layer.empty() ? layerUses.back().uses.back()->get() == use->get()
                               : layerUses.back().layer == layer);
    if (!same)
      layerUses.push_back({layer, user, {}});
    layerUses.back().uses.push_back(use);
  }
}

/// Makes the values that a layer uses once more, before `before`. Gathers that do not need each
/// other are neighbours, so that they can share buckets.
void ParameterGathers::gatherFor(const LayerUse &layerUse, Operation *before) {
  OpBuilder builder(before);
  IRMapping copies;
  // By the number of gathers that come before in the chain from the parameter.
  struct Stage {
    SmallVector<Operation *> others, gathers;
  };
  SmallVector<Stage, 2> stages;
  llvm::DenseMap<Value, unsigned> gathersBefore; // of copies
  std::function<Value(Value)> remake = [&](Value value) -> Value {
    Operation *op = value.getDefiningOp();
    if (!op)
      return value; // the parameter
    if (Value copy = copies.lookupOrNull(value))
      return copy;
    unsigned stage = gathersBefore.lookup(remake(op->getOperand(0)));
    Operation *copy = builder.clone(*op, copies);
    if (auto attr = dist::getStage(layerUse.first))
      copy->setAttr(dist::kStageAttrName, attr);
    if (stage >= stages.size())
      stages.resize(stage + 1);
    bool gathers = isa<dist::AllGatherOp>(copy);
    (gathers ? stages[stage].gathers : stages[stage].others).push_back(copy);
    gathersBefore[copy->getResult(0)] = stage + gathers;
    return copy->getResult(0);
  };
  for (OpOperand *use : layerUse.uses)
    use->set(remake(use->get()));
  for (const Stage &stage : stages) {
    // The ops on gathered values are at the use of the layer; only the gathers are ahead of it.
    for (Operation *op : stage.others)
      op->moveBefore(stage.gathers.empty() ? layerUse.first : before);
    for (Operation *op : stage.gathers)
      op->moveBefore(before);
    makeBuckets(stage.gathers, bucketBytes);
  }
}

void ParameterGathers::run() {
  findGathered();
  if (gathered.empty())
    return;
  roundPerUse();
  findLayerUses();
  for (auto [index, layerUse] : llvm::enumerate(layerUses)) {
    // The gathers of a layer run while the layers before it compute.
    size_t at = index;
    while (at > 0 && index - at < size_t(prefetch) &&
           layerUses[at - 1].first->getBlock() == layerUse.first->getBlock())
      --at;
    gatherFor(layerUse, layerUses[at].first);
  }
  // Users come after the values that they use, so that from the back all that is unused goes.
  for (Value value : llvm::reverse(gathered.getArrayRef()))
    if (Operation *op = value.getDefiningOp(); op && op->use_empty())
      op->erase();
  // So does what moved the elements of shards for them.
  eraseDeadOps(function.front());
}

namespace {
struct GatherParametersPerUsePass
    : dtc::impl::GatherParametersPerUsePassBase<GatherParametersPerUsePass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(checkOption(getOperation(), "bucket-bytes", bucketBytes, 0)) ||
        failed(checkOption(getOperation(), "prefetch", prefetch, 0)))
      return signalPassFailure();
    if (failed(forEachFunction(getOperation(), [&](func::FuncOp function, const LinkedMesh &mesh) {
          // An axis that was split stands for all its sub-axes.
          std::vector<std::string> names;
          for (const std::string &name : axes)
            for (unsigned axis : mesh.findAll(name))
              names.push_back(mesh.axes[axis].name);
          ParameterGathers(function, names, bucketBytes, prefetch).run();
          return success();
        })))
      signalPassFailure();
  }
};
} // namespace
