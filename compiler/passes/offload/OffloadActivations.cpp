//===- OffloadActivations.cpp - Activations in the memory of the host -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/DescribeLocation.h"
#include "compiler/analysis/LocalCost.h"
#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/InlineLoop.h"
#include "compiler/passes/offload/OffloadPasses.h"
#include "compiler/passes/pipeline/StageAssignment.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace dtc {
#define GEN_PASS_DEF_OFFLOADACTIVATIONSPASS
#include "compiler/passes/OffloadPasses.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

/// What the backward pass of a stage needs of its forward pass, or of that of an earlier stage.
struct Kept {
  SmallVector<OpOperand *> uses;    ///< of the value and of what is made of it again, in order
  Operation *lastForward = nullptr; ///< after which it may leave
};

/// Moves what one stage keeps for its backward pass to the host in between.
class StageOffload {
public:
  /// `body` is that of a loop; `prefetch` as the pass has it. Nothing of the last stage comes
  /// between its two passes.
  StageOffload(Block &body, const StageAssignment &assignment, int64_t stage, int64_t prefetch)
      : body(body), assignment(assignment), stage(stage), prefetch(prefetch),
        isLast(stage + 1 == assignment.numStages()) {}
  void run(double fraction);

private:
  using KeptValues = llvm::MapVector<Value, Kept>;
  /// A part of the backward pass that needs kept values of one layer.
  struct Visit {
    Operation *first; ///< fetches come before it
    SmallVector<Value> values;
  };

  bool isOf(Operation *op, StagePass pass) const {
    dist::StageAttr of = assignment.of(op);
    return of && of.getIndex() == stage && of.getPass() == pass;
  }
  bool isBackward(Operation *op) const {
    dist::StageAttr of = assignment.of(op);
    return of && of.getIndex() == stage && of.getPass() != StagePass::Forward;
  }
  Operation *inBody(Operation *op) const { return body.findAncestorOpInBlock(*op); }
  Operation *makerOf(Value value) const {
    Operation *op = value.getDefiningOp();
    return op && op->getBlock() == &body ? op : nullptr;
  }
  bool isMadeBefore(Value a, Value b) const {
    if (makerOf(a) != makerOf(b))
      return makerOf(a)->isBeforeInBlock(makerOf(b));
    return cast<OpResult>(a).getResultNumber() < cast<OpResult>(b).getResultNumber();
  }
  /// Whether the value is the result of an op of this stage's forward pass that is cheap to run
  /// again on its only operand.
  bool isView(Value value) const;
  bool isSlice(Value value) const;
  KeptValues findKept() const;
  void joinSlices(KeptValues &kept) const;
  void findLastForward(Value value, Operation *&last) const;
  Operation *endOfRun(Operation *op) const;
  Operation *beginOfRun(Operation *op) const;
  void removeUnfit(KeptValues &kept) const;
  SmallVector<Visit> findVisits(const KeptValues &kept) const;
  void choose(double fraction, ArrayRef<Visit> visits, KeptValues &kept) const;
  /// The op before which the fetches of a visit start.
  Operation *placeOfFetches(ArrayRef<Visit> visits, size_t index) const;
  void sendOut(KeptValues &kept);
  void fetch(Value value, const Kept &kept, Operation *before);

  Block &body;
  const StageAssignment &assignment;
  int64_t stage, prefetch;
  bool isLast;
  llvm::DenseMap<Value, Value> onHost;
};

} // namespace

bool StageOffload::isView(Value value) const {
  Operation *op = makerOf(value);
  return op && op->hasTrait<dtc::OpTrait::IsView>() && isOf(op, StagePass::Forward);
}

bool StageOffload::isSlice(Value value) const {
  Operation *op = makerOf(value);
  return op && isa<SliceOp>(op) && isOf(op, StagePass::Forward);
}

StageOffload::KeptValues StageOffload::findKept() const {
  KeptValues kept;
  for (Operation &op : body.without_terminator()) {
    if (!isBackward(&op))
      continue;
    op.walk([&](Operation *inner) {
      for (OpOperand &use : inner->getOpOperands()) {
        Value value = use.get();
        while (isView(value))
          value = makerOf(value)->getOperand(0);
        Operation *maker = makerOf(value);
        dist::StageAttr made = maker ? assignment.of(maker) : dist::StageAttr();
        if (made && made.getPass() == StagePass::Forward && maker->getNumOperands() > 0)
          kept[value].uses.push_back(&use);
      }
    });
  }
  joinSlices(kept);
  return kept;
}

/// Slices of a tensor that together have its bytes are kept as that tensor, so that attention can
/// read them where they lie in it.
void StageOffload::joinSlices(KeptValues &kept) const {
  llvm::MapVector<Value, SmallVector<Value>> slicesOf;
  for (auto &[value, entry] : kept) {
    if (!isSlice(value))
      continue;
    Value whole = makerOf(value)->getOperand(0);
    while (isView(whole))
      whole = makerOf(whole)->getOperand(0);
    if (Operation *maker = makerOf(whole); maker && isOf(maker, StagePass::Forward))
      slicesOf[whole].push_back(value);
  }
  llvm::DenseSet<Value> joined;
  for (auto &[whole, slices] : slicesOf) {
    int64_t bytes = 0;
    for (Value slice : slices)
      bytes += tensorBytes(slice.getType());
    if (bytes < tensorBytes(whole.getType()) && !kept.contains(whole))
      continue;
    for (Value slice : slices) {
      SmallVector<OpOperand *> uses = kept[slice].uses;
      llvm::append_range(kept[whole].uses, uses);
      joined.insert(slice);
    }
    llvm::stable_sort(kept[whole].uses, [&](OpOperand *a, OpOperand *b) {
      return inBody(a->getOwner())->isBeforeInBlock(inBody(b->getOwner()));
    });
  }
  kept.remove_if([&](auto &pair) { return joined.contains(pair.first); });
}

/// The last op of the stage's forward pass that reads the value, or a view or slice of it.
void StageOffload::findLastForward(Value value, Operation *&last) const {
  for (Operation *user : value.getUsers()) {
    Operation *op = inBody(user);
    if (!op || !isOf(op, StagePass::Forward))
      continue;
    if (!last || last->isBeforeInBlock(op))
      last = op;
    for (Value result : op->getResults())
      if (isView(result) || isSlice(result))
        findLastForward(result, last);
  }
}

// One kernel of a GPU may compute a product and what follows it. So copies come before products.

/// The last op before the next product of the stage's forward pass, or of that pass.
Operation *StageOffload::endOfRun(Operation *op) const {
  Operation *end = op;
  for (Operation *next = op->getNextNode(); next; next = next->getNextNode()) {
    if (!isOf(next, StagePass::Forward))
      continue;
    if (next->hasTrait<dtc::OpTrait::MatrixProducts>())
      return next->getPrevNode();
    end = next;
  }
  return end;
}

/// The last product of the stage's backward pass up to the op, or the first of several that follow
/// each other, with nothing but ops of that pass since; the op itself if there is none.
Operation *StageOffload::beginOfRun(Operation *op) const {
  Operation *first = nullptr;
  for (Operation *place = op; place && isBackward(place); place = place->getPrevNode()) {
    if (place->hasTrait<dtc::OpTrait::MatrixProducts>())
      first = place;
    else if (first && !place->hasTrait<dtc::OpTrait::IsView>())
      break;
  }
  return first ? first : op;
}

/// Leaves out what is not worth a copy, what leaves the loop, and what the backward pass needs
/// before the forward pass is done with it.
void StageOffload::removeUnfit(KeptValues &kept) const {
  int64_t largest = 0;
  for (auto &[value, entry] : kept)
    largest = std::max(largest, tensorBytes(value.getType()));
  for (auto &[value, entry] : kept) {
    if (isOf(makerOf(value), StagePass::Forward))
      entry.lastForward = makerOf(value);
    findLastForward(value, entry.lastForward);
    if (entry.lastForward)
      entry.lastForward = endOfRun(entry.lastForward);
  }
  kept.remove_if([&](auto &pair) {
    auto &[value, entry] = pair;
    Operation *first = inBody(entry.uses.front()->getOwner());
    return tensorBytes(value.getType()) * 256 < largest || !entry.lastForward ||
           first->isBeforeInBlock(entry.lastForward) ||
           llvm::is_contained(value.getUsers(), body.getTerminator());
  });
}

/// Leaves out what the first visits of the last stage need, and what comes after the first values
/// of the forward pass that have the fraction of all bytes.
void StageOffload::choose(double fraction, ArrayRef<Visit> visits, KeptValues &kept) const {
  llvm::DenseSet<Value> left;
  if (isLast)
    for (const Visit &visit : visits.take_front(std::min(visits.size(), size_t(prefetch))))
      left.insert_range(visit.values);
  SmallVector<Value> inOrder;
  double rest = 0;
  for (auto &[value, entry] : kept) {
    inOrder.push_back(value);
    rest += fraction * double(tensorBytes(value.getType()));
  }
  llvm::sort(inOrder, [&](Value a, Value b) { return isMadeBefore(a, b); });
  for (Value value : inOrder) {
    if (left.contains(value))
      continue;
    if (rest <= 0)
      left.insert(value);
    rest -= double(tensorBytes(value.getType()));
  }
  kept.remove_if([&](auto &pair) { return left.contains(pair.first); });
}

SmallVector<StageOffload::Visit> StageOffload::findVisits(const KeptValues &kept) const {
  SmallVector<std::pair<Operation *, Value>> byUse;
  for (auto &[value, entry] : kept)
    byUse.push_back({inBody(entry.uses.front()->getOwner()), value});
  llvm::stable_sort(byUse, [](auto &a, auto &b) { return a.first->isBeforeInBlock(b.first); });
  auto layerOf = [](Operation *op) {
    LayerName name(nameOf(op->getLoc()));
    return name.prefix.empty() ? std::string() : name.layer();
  };
  bool hasLayers = llvm::any_of(byUse, [&](auto &use) { return !layerOf(use.first).empty(); });
  SmallVector<Visit> visits;
  std::string current;
  for (auto &[op, value] : byUse) {
    std::string layer = layerOf(op);
    bool isNew = hasLayers ? !layer.empty() && layer != current : true;
    if (visits.empty() || isNew)
      visits.push_back({beginOfRun(op), {}});
    if (!layer.empty())
      current = layer;
    visits.back().values.push_back(value);
  }
  return visits;
}

Operation *StageOffload::placeOfFetches(ArrayRef<Visit> visits, size_t index) const {
  Operation *place = visits[index - std::min(index, size_t(prefetch))].first;
  // Nothing of an earlier visit is fetched there. A loss and its gradient may be one kernel.
  for (Operation *op = place; op != visits[index].first; op = op->getNextNode())
    if (isBackward(op) && op->hasTrait<dtc::OpTrait::MatrixProducts>())
      return op;
  return place;
}

/// Copies the values to the host, in the order in which the forward pass is done with them.
void StageOffload::sendOut(KeptValues &kept) {
  SmallVector<std::pair<Operation *, Value>> byEnd;
  for (auto &[value, entry] : kept)
    byEnd.push_back({entry.lastForward, value});
  llvm::sort(byEnd, [&](auto &a, auto &b) {
    return a.first != b.first ? a.first->isBeforeInBlock(b.first)
                              : isMadeBefore(a.second, b.second);
  });
  auto forward = dist::StageAttr::get(body.getParentOp()->getContext(), stage, StagePass::Forward);
  Operation *before = nullptr, *last = nullptr;
  for (auto &[op, value] : byEnd) {
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op == before ? last : op);
    auto copy = dist::CopyOp::create(builder, value.getLoc(), value.getType(), value, "host");
    copy->setAttr(dist::kStageAttrName, forward);
    onHost[value] = copy;
    before = op;
    last = copy;
  }
}

/// Copies a value back, and makes again of it what its uses need.
void StageOffload::fetch(Value value, const Kept &kept, Operation *before) {
  OpBuilder builder(before);
  auto backward = dist::StageAttr::get(before->getContext(), stage, StagePass::Backward);
  auto copy = dist::CopyOp::create(builder, value.getLoc(), value.getType(), onHost.lookup(value),
                                   "device");
  copy->setAttr(dist::kStageAttrName, backward);
  // What is made of it comes where it is used first: there the copy has ended.
  builder.setInsertionPoint(inBody(kept.uses.front()->getOwner()));
  IRMapping made;
  made.map(value, copy.getResult());
  auto remake = [&](Value needed) {
    SmallVector<Operation *> chain;
    while (!made.contains(needed)) {
      chain.push_back(makerOf(needed));
      needed = chain.back()->getOperand(0);
    }
    for (Operation *op : llvm::reverse(chain))
      builder.clone(*op, made)->setAttr(dist::kStageAttrName, backward);
  };
  for (OpOperand *use : kept.uses) {
    remake(use->get());
    use->set(made.lookup(use->get()));
  }
}

void StageOffload::run(double fraction) {
  KeptValues kept = findKept();
  removeUnfit(kept);
  SmallVector<Visit> visits = findVisits(kept);
  choose(fraction, visits, kept);
  sendOut(kept);
  for (size_t i = 0; i < visits.size(); ++i)
    for (Value value : visits[i].values)
      if (auto it = kept.find(value); it != kept.end())
        fetch(value, it->second, placeOfFetches(visits, i));
}

static LogicalResult offload(func::FuncOp function, const LinkedMesh &mesh, double fraction,
                             int64_t prefetch, bool keepLoop) {
  FailureOr<dist::MicrobatchLoopOp> found =
      findMicrobatchLoop(function, mesh, "dtc-partition-stages and dtc-spmd-partition");
  if (failed(found))
    return failure();
  dist::MicrobatchLoopOp loop = *found;
  // What a stage gets here is read by its own ops alone, so that the assignment holds for all.
  StageAssignment assignment(loop, /*splitWeights=*/false);
  for (int64_t stage = 0; stage < assignment.numStages(); ++stage)
    StageOffload(loop.getBody().front(), assignment, stage, prefetch).run(fraction);
  if (!mesh.pipelineAxis() && mesh.axes[*mesh.find(loop.getAxis())].size == 1 && !keepLoop)
    inlineLoop(loop);
  return success();
}

namespace {
struct OffloadActivationsPass : dtc::impl::OffloadActivationsPassBase<OffloadActivationsPass> {
  using Base::Base;

  void runOnOperation() override {
    if (!(fraction > 0 && fraction <= 1)) {
      getOperation().emitError() << "the fraction of activations to offload is " << double(fraction)
                                 << ", expected above 0 and at most 1";
      return signalPassFailure();
    }
    if (failed(checkOption(getOperation(), "prefetch", prefetch, 0)) ||
        failed(forEachFunction(getOperation(), [&](func::FuncOp function, const LinkedMesh &mesh) {
          return offload(function, mesh, fraction, prefetch, keepLoop);
        })))
      signalPassFailure();
  }
};
} // namespace
