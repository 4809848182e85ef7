//===- HideCollectives.cpp - Products under collectives -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The gradient of a weight is needed by nothing but the update, so that a backward pass can compute
// it later than the gradient that goes on to the layer before (Qi et al., "Zero Bubble Pipeline
// Parallelism", arXiv:2401.10241, section 2). Here such products move to where a device would wait
// for a collective. Where they do not suffice, products that come after the wait and do not need
// the collective move before it: such as the gradients of the queries' projection while those of
// keys and values travel home around a ring.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/LocalCost.h"
#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/collectives/Buckets.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

namespace dtc {
#define GEN_PASS_DEF_HIDECOLLECTIVESPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

/// The number of ops before a collective among which products are searched: those of about two
/// layers. More would hold operands for long, and each collective takes the time of its search.
static constexpr unsigned kSearchedOps = 256;

/// Delayed products keep operands alive that would be free before. These may take this many times
/// the bytes of the collective's operand or result, whichever is larger: enough for the gradient of
/// an expert's weight beside the exchange of its rows. More makes the arena larger.
static constexpr int64_t kHeldTimes = 2;

namespace {

/// Walks a block with the seconds that a device has computed and those at which its collectives
/// end, and delays products to where it would wait.
class CollectiveHiding {
public:
  CollectiveHiding(Block &block, const LinkedMesh &mesh);
  void run();

private:
  struct Running {
    Operation *collective;
    double end; ///< seconds from the start of the block
  };
  struct Place {
    int64_t number = 0;  ///< in the block's order
    double seconds = 0;  ///< of the op
    double computed = 0; ///< of the ops before it that are no collectives
  };
  /// A collective that was waited for. The ops between its start and its first user hide it.
  struct Awaited {
    int64_t start, user; ///< numbers in the block's order
    double spare;        ///< by how many seconds the ops between take longer than it
  };
  Operation *firstUser(Operation *op) const;
  /// Calls `visit` for each of `awaited` that `op` hides, and would not hide if it were at `place`.
  void forEachHiddenBy(Operation *op, Operation *place, llvm::function_ref<void(Awaited &)> visit);
  /// Whether what `op` hides stays hidden without it.
  bool isSpare(Operation *op, Operation *place);
  /// Whether all users of `op` are at `place`, after it, or in `delayed`. A collective starts later
  /// then, and must have as much computation before its first user as it takes.
  bool canComeBefore(Operation *place, Operation *op,
                     const llvm::SetVector<Operation *> &delayed) const;
  /// The operands of `product` that nothing needs from `place` on but what is delayed.
  SmallVector<Value> heldBy(Operation *product, Operation *place) const;
  /// Moves products that stand before `collective` to just before `place`, the first op that needs
  /// its result, until they take `seconds`, would hold too much, or there are no more. Returns the
  /// seconds that they take.
  double delayProducts(Operation *collective, Operation *place, double seconds);
  /// Whether `op`, which stands after `place`, can stand before it with the ops of `movable`, and
  /// needs no collective that is not awaited there yet.
  bool canComeEarlier(Operation *op, Operation *place,
                      const llvm::SetVector<Operation *> &movable) const;
  /// Moves products that stand after `place`, and what they need, to just before it, until they
  /// take `seconds`, would hold too much, or another collective starts: what follows hides that
  /// one. Returns the seconds that the moved ops take.
  double advanceProducts(Operation *collective, Operation *place, double seconds);

  Block &block;
  llvm::DenseMap<Operation *, Place> places;
  llvm::DenseMap<Operation *, SmallVector<Running, 1>> awaitedBy;
  SmallVector<Awaited> awaited; ///< in the order of their first users
};

} // namespace

static bool isCollective(Operation *op) {
  return isa<dist::CollectiveOpInterface, dist::BucketOp>(op);
}

/// Whether a collective moves arguments of the block alone, such as parameters, or casts of them.
/// It can start as early as wanted (`--prefetch`), at the cost of its result's bytes. Results of
/// later products need not be held beside it.
static bool movesArguments(Operation *collective) {
  llvm::SetVector<Value> moved(llvm::from_range, collective->getOperands());
  getUsedValuesDefinedAbove(collective->getRegions(), moved); // by the members of a bucket
  return llvm::all_of(moved, [](Value operand) {
    while (auto cast = operand.getDefiningOp<dtc::ConvertOp>())
      operand = cast.getOperand();
    return isa<BlockArgument>(operand);
  });
}

static bool isMovable(Operation *op) {
  return isCollective(op) || (op->getNumRegions() == 0 && isMemoryEffectFree(op));
}

CollectiveHiding::CollectiveHiding(Block &block, const LinkedMesh &mesh) : block(block) {
  int64_t number = 0;
  double computed = 0;
  for (Operation &op : block) {
    double seconds = localSeconds(mesh, &op);
    places[&op] = {number += 2, seconds, computed};
    computed += isCollective(&op) ? 0 : seconds;
  }
}

Operation *CollectiveHiding::firstUser(Operation *op) const {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers()) {
    Operation *inBlock = block.findAncestorOpInBlock(*user);
    if (!first || places.at(inBlock).number < places.at(first).number)
      first = inBlock;
  }
  return first;
}

void CollectiveHiding::forEachHiddenBy(Operation *op, Operation *place,
                                       llvm::function_ref<void(Awaited &)> visit) {
  int64_t number = places.at(op).number;
  for (Awaited &each : llvm::reverse(awaited)) {
    if (each.user < number)
      break;
    if (each.start < number && each.user < places.at(place).number)
      visit(each);
  }
}

bool CollectiveHiding::isSpare(Operation *op, Operation *place) {
  bool all = true;
  forEachHiddenBy(op, place, [&](Awaited &each) { all &= each.spare >= places.at(op).seconds; });
  return all;
}

bool CollectiveHiding::canComeBefore(Operation *place, Operation *op,
                                     const llvm::SetVector<Operation *> &delayed) const {
  const Place &at = places.at(place);
  if (isCollective(op)) {
    Operation *user = firstUser(op);
    return !user || (places.at(user).number >= at.number &&
                     places.at(user).computed - at.computed >= places.at(op).seconds);
  }
  return llvm::all_of(op->getUsers(), [&](Operation *user) {
    Operation *inBlock = block.findAncestorOpInBlock(*user);
    return delayed.contains(inBlock) || places.at(inBlock).number >= at.number;
  });
}

SmallVector<Value> CollectiveHiding::heldBy(Operation *product, Operation *place) const {
  SmallVector<Value> held;
  for (Value operand : product->getOperands()) {
    // Users of values from outside the block may be outside of it.
    if (operand.getParentBlock() != &block || !operand.getDefiningOp())
      continue;
    bool isNeededLater = llvm::any_of(operand.getUsers(), [&](Operation *user) {
      Operation *inBlock = block.findAncestorOpInBlock(*user);
      return places.at(inBlock).number >= places.at(place).number;
    });
    if (!isNeededLater)
      held.push_back(operand);
  }
  return held;
}

/// The bytes of the operands or of the results of a collective, or of a whole bucket: the larger
/// number.
static int64_t exchangedBytes(Operation *collective) {
  if (!isa<dist::BucketOp>(collective))
    return collectiveBytes(collective);
  int64_t sum = 0;
  for (Operation &member : collective->getRegion(0).front().without_terminator())
    sum += collectiveBytes(&member);
  return sum;
}

double CollectiveHiding::delayProducts(Operation *collective, Operation *place, double seconds) {
  llvm::SetVector<Operation *> movable; // the last in the block's order first
  llvm::SmallPtrSet<Operation *, 8> moving;
  llvm::DenseSet<Value> held;
  int64_t bytesLeft = kHeldTimes * exchangedBytes(collective);
  double found = 0;
  Operation *op = collective->getPrevNode();
  for (unsigned i = 0; op && i < kSearchedOps && found < seconds; ++i, op = op->getPrevNode()) {
    if (!isMovable(op) || !canComeBefore(place, op, movable))
      continue;
    bool isProduct = op->hasTrait<dtc::OpTrait::MatrixProducts>();
    if (isProduct && !isSpare(op, place))
      continue;
    movable.insert(op);
    if (!isProduct)
      continue;
    for (Value operand : heldBy(op, place))
      if (held.insert(operand).second)
        bytesLeft -= tensorBytes(operand.getType());
    if (bytesLeft < 0)
      break;
    moving.insert(op);
    found += places.at(op).seconds;
    forEachHiddenBy(op, place, [&](Awaited &each) { each.spare -= places.at(op).seconds; });
  }
  for (Operation *movableOp : llvm::reverse(movable)) {
    if (!moving.contains(movableOp))
      continue;
    // Its users that stand before `place` go with it.
    for (Operation *user : movableOp->getUsers())
      if (Operation *inBlock = block.findAncestorOpInBlock(*user); movable.contains(inBlock))
        moving.insert(inBlock);
    movableOp->moveBefore(place);
    places[movableOp].number = places.at(place).number - 1;
    places[movableOp].computed = places.at(place).computed;
  }
  return found;
}

bool CollectiveHiding::canComeEarlier(Operation *op, Operation *place,
                                      const llvm::SetVector<Operation *> &movable) const {
  int64_t number = places.at(place).number;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    Operation *maker = operand.getDefiningOp();
    if (!maker || operand.getParentBlock() != &block || movable.contains(maker))
      return true;
    return places.at(maker).number < number &&
           (!isCollective(maker) || places.at(firstUser(maker)).number < number);
  });
}

/// Adds `product` to `moving`, with the ops of `movable` that it needs.
static void addWithNeeded(Operation *product, const llvm::SetVector<Operation *> &movable,
                          llvm::SmallPtrSetImpl<Operation *> &moving) {
  SmallVector<Operation *> open{product};
  while (!open.empty()) {
    Operation *op = open.pop_back_val();
    if (!moving.insert(op).second)
      continue;
    for (Value operand : op->getOperands())
      if (Operation *maker = operand.getDefiningOp(); maker && movable.contains(maker))
        open.push_back(maker);
  }
}

double CollectiveHiding::advanceProducts(Operation *collective, Operation *place, double seconds) {
  llvm::SetVector<Operation *> movable; // in the block's order
  llvm::SmallPtrSet<Operation *, 8> moving;
  int64_t bytesLeft = kHeldTimes * exchangedBytes(collective);
  double found = 0;
  Operation *op = place->getNextNode();
  for (unsigned i = 0; op && !isCollective(op) && i < kSearchedOps && found < seconds;
       ++i, op = op->getNextNode()) {
    if (!isMovable(op) || !canComeEarlier(op, place, movable))
      continue;
    movable.insert(op);
    if (!op->hasTrait<dtc::OpTrait::MatrixProducts>())
      continue;
    llvm::SmallPtrSet<Operation *, 8> more = moving;
    addWithNeeded(op, movable, more);
    for (Operation *each : more)
      if (!moving.contains(each))
        for (Value result : each->getResults())
          bytesLeft -= tensorBytes(result.getType());
    if (bytesLeft < 0)
      break;
    for (Operation *each : more)
      if (moving.insert(each).second)
        found += places.at(each).seconds;
  }
  double before = places.at(place).computed + found;
  for (Operation *each = place; each != op; each = each->getNextNode()) {
    places[each].computed = before;
    before += isCollective(each) || moving.contains(each) ? 0 : places.at(each).seconds;
  }
  for (Operation *movableOp : movable) {
    if (!moving.contains(movableOp))
      continue;
    movableOp->moveBefore(place);
    places[movableOp].number = places.at(place).number - 1;
  }
  return found;
}

void CollectiveHiding::run() {
  double computed = 0, lastEnd = 0;
  for (Operation *op = &block.front(); op; op = op->getNextNode()) {
    for (const Running &running : awaitedBy.lookup(op)) {
      double exposed = running.end - computed;
      if (exposed > 0) {
        exposed -= delayProducts(running.collective, op, exposed);
        double advanced = exposed > 0 && !movesArguments(running.collective)
                              ? advanceProducts(running.collective, op, exposed)
                              : 0;
        exposed -= advanced;
        computed += advanced + std::max(exposed, 0.0);
      }
      awaited.push_back(
          {places.at(running.collective).number, places.at(op).number, std::max(-exposed, 0.0)});
    }
    double seconds = places.at(op).seconds;
    if (!isCollective(op)) {
      computed += seconds;
      continue;
    }
    lastEnd = std::max(computed, lastEnd) + seconds;
    if (Operation *user = firstUser(op))
      awaitedBy[user].push_back({op, lastEnd});
  }
}

namespace {
struct HideCollectivesPass : dtc::impl::HideCollectivesPassBase<HideCollectivesPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(forEachFunction(getOperation(), [&](func::FuncOp function, const LinkedMesh &mesh) {
          forEachStraightBlock(function,
                               [&](Block &block) { CollectiveHiding(block, mesh).run(); });
          return success();
        })))
      signalPassFailure();
  }
};
} // namespace
