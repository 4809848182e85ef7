//===- RegatherParameters.cpp - Gathering parameters for each use ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// ZeRO stage 3 (Rajbhandari et al. 2020, section 5.3): a parameter that is split over the data axis
// is gathered just before a layer uses it and dropped after it, in the forward pass and again in
// the backward pass. The program has one gather for all uses; here each layer's visit gets its own.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/DescribeLocation.h"
#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/DeadOps.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/collectives/Buckets.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace dtc {
#define GEN_PASS_DEF_REGATHERPARAMETERSPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

class Regather {
public:
  Regather(func::FuncOp function, ArrayRef<std::string> axes, int64_t bucketBytes, int64_t prefetch)
      : function(function), axes(axes), bucketBytes(bucketBytes), prefetch(prefetch) {}
  void run();

private:
  /// Ops that follow each other and belong to one layer: where its parameters are whole.
  struct Visit {
    std::string layer;
    Operation *first;
    SmallVector<OpOperand *> uses; ///< of gathered values
  };
  void findGathered();
  void findVisits();
  void gatherFor(const Visit &visit, Operation *before);

  func::FuncOp function;
  ArrayRef<std::string> axes;
  int64_t bucketBytes;
  int64_t prefetch;
  /// Values that are a parameter, gathered over `axes`, perhaps cut or reshaped.
  llvm::SetVector<Value> gathered;
  SmallVector<Visit> visits;
};

} // namespace

/// Ops that make a value of a parameter by moving its elements: cheap enough to run again.
static bool movesElements(Operation *op) { return op->hasTrait<dtc::OpTrait::MovesElements>(); }

void Regather::findGathered() {
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

void Regather::findVisits() {
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
    bool same = !visits.empty() && visits.back().first->getBlock() == user->getBlock() &&
                dist::getStage(visits.back().first) == dist::getStage(user) &&
                (layer.empty() ? visits.back().uses.back()->get() == use->get()
                               : visits.back().layer == layer);
    if (!same)
      visits.push_back({layer, user, {}});
    visits.back().uses.push_back(use);
  }
}

/// Makes the values that a visit uses once more, before `before`. Gathers that do not need each
/// other stand together, so that they can share buckets.
void Regather::gatherFor(const Visit &visit, Operation *before) {
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
    if (auto attr = dist::getStage(visit.first))
      copy->setAttr(dist::kStageAttrName, attr);
    if (stage >= stages.size())
      stages.resize(stage + 1);
    bool gathers = isa<dist::AllGatherOp>(copy);
    (gathers ? stages[stage].gathers : stages[stage].others).push_back(copy);
    gathersBefore[copy->getResult(0)] = stage + gathers;
    return copy->getResult(0);
  };
  for (OpOperand *use : visit.uses)
    use->set(remake(use->get()));
  for (const Stage &stage : stages) {
    // What is done to a gathered value is done at the visit; only the gathers are ahead of it.
    for (Operation *op : stage.others)
      op->moveBefore(stage.gathers.empty() ? visit.first : before);
    for (Operation *op : stage.gathers)
      op->moveBefore(before);
    makeBuckets(stage.gathers, bucketBytes);
  }
}

void Regather::run() {
  findGathered();
  if (gathered.empty())
    return;
  findVisits();
  for (auto [index, visit] : llvm::enumerate(visits)) {
    // The gathers of a visit run while the visits before it compute.
    size_t at = index;
    while (at > 0 && index - at < size_t(prefetch) &&
           visits[at - 1].first->getBlock() == visit.first->getBlock())
      --at;
    gatherFor(visit, visits[at].first);
  }
  // Users come after the values that they use, so that from the back all that is unused goes.
  for (Value value : llvm::reverse(gathered.getArrayRef()))
    if (Operation *op = value.getDefiningOp(); op && op->use_empty())
      op->erase();
  // So does what moved the elements of shards for them.
  eraseDeadOps(function.front());
}

namespace {
struct RegatherParametersPass : dtc::impl::RegatherParametersPassBase<RegatherParametersPass> {
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
          Regather(function, names, bucketBytes, prefetch).run();
          return success();
        })))
      signalPassFailure();
  }
};
} // namespace
