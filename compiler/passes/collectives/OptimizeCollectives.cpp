//===- OptimizeCollectives.cpp - Placement and bucketing of collectives ---===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/collectives/Buckets.h"
#include "dialects/dist/ChunkAttribute.h"

#include "llvm/ADT/MapVector.h"

namespace dtc {
#define GEN_PASS_DEF_OPTIMIZECOLLECTIVESPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

/// The pass of the loss that an op belongs to: its own, or that of the fragment which it is or
/// is in.
static std::optional<StagePass> passOf(Operation *op) {
  if (dist::StageAttr stage = dist::getStage(op))
    return stage.getPass();
  auto fragment = dyn_cast<dist::FragmentOp>(op);
  if (!fragment)
    fragment = op->getParentOfType<dist::FragmentOp>();
  return fragment ? std::optional(fragment.getPass()) : std::nullopt;
}

/// Whether the op gathers a result of the forward pass in the backward pass.
static bool isRepeated(Operation *op) {
  Operation *definer = op->getOperand(0).getDefiningOp();
  if (!definer || !isa<dist::AllGatherOp>(op) || passOf(definer) != StagePass::Forward)
    return false;
  std::optional<StagePass> own = passOf(op);
  return own && *own != StagePass::Forward;
}

/// The place of a collective on a result of the forward pass that is done again in the backward
/// pass: before the product that comes before it, which it overlaps with. At the operand it would
/// start, and be held, long before it is needed.
static Operation *beforeProduct(Operation *op) {
  Operation *definer = op->getOperand(0).getDefiningOp();
  for (Operation *place = op->getPrevNode(); place && place != definer;
       place = place->getPrevNode())
    if (place->hasTrait<dtc::OpTrait::MatrixProducts>())
      return dist::getStage(place) == dist::getStage(op) ? place : nullptr;
  return nullptr;
}

/// Whether the op is a step of a ring. A step starts where it stands: if it started earlier, its
/// result would take memory while the shard before is still in use.
static bool goesRound(Operation *op) {
  auto permute = dyn_cast<dist::PermuteOp>(op);
  return permute && permute.getShift() != 0;
}

/// Whether the op pads the operand of a collective, or drops padding between two of them, and has
/// no other use.
static bool fitsForCollective(Operation *op) {
  return op->hasOneUse() && isa<dist::CollectiveOpInterface>(*op->user_begin()) &&
         (isa<PadOp>(op) || (isa<SliceOp>(op) && isa_and_nonnull<dist::CollectiveOpInterface>(
                                                     op->getOperand(0).getDefiningOp())));
}

/// Moves each collective of the block to right after the op that makes its operand, but for those
/// of a ring. What pads the operand moves with it.
static void startEarly(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    bool fits = fitsForCollective(&op) && !isRepeated(*op.user_begin());
    if (!isa<dist::CollectiveOpInterface>(op) && !fits)
      continue;
    if (goesRound(&op))
      continue;
    Operation *definer = op.getOperand(0).getDefiningOp();
    if (isRepeated(&op)) {
      if (Operation *place = beforeProduct(&op))
        op.moveBefore(place);
      continue;
    }
    // A gather of a value from outside the block would start with the block, and its result be held
    // until it is used.
    if (!definer || definer->getBlock() != &block)
      continue;
    // Collectives of one operand keep their order.
    Operation *after = definer;
    while (after->getNextNode() != &op && isa<dist::CollectiveOpInterface>(after->getNextNode()))
      after = after->getNextNode();
    if (after != &op && after->getNextNode() != &op)
      op.moveAfter(after);
  }
}

namespace {

/// Fills buckets in the order in which collectives can start. A bucket is closed when it is full,
/// or when something needs one of its results. A collective that needs one waits for the bucket and
/// is filled in after it: the sum over replicas of what was just scattered, say. So does what adds
/// or drops padding between the two.
class Bucketing {
public:
  Bucketing(Block &block, int64_t bucketBytes) : block(block), bucketBytes(bucketBytes) {}
  void run();

private:
  struct Open {
    SmallVector<Operation *> members;
    /// Collectives of the members' results, and what pads these for them, in the order of the
    /// block.
    SmallVector<Operation *> followers;
    int64_t bytes = 0;
  };
  void fill(Operation *op);
  void place(Operation *op, Operation *next);
  bool follows(Operation *op);
  void add(Operation *op, Operation *next);
  void close(unsigned bucket, Operation *before);

  Block &block;
  int64_t bucketBytes;
  SmallVector<Open, 4> open; ///< of different kinds or axes; few
  /// The open buckets that collectives are in, or follow.
  llvm::DenseMap<Operation *, unsigned> bucketOf;
};

} // namespace

/// Makes the bucket, where the last of its members is, and leaves it empty. Its followers go before
/// `before`.
void Bucketing::close(unsigned index, Operation *before) {
  Open bucket = std::move(open[index]);
  open[index] = Open();
  for (Operation *member : bucket.members)
    bucketOf.erase(member);
  makeBucket(bucket.members);
  for (Operation *follower : bucket.followers)
    bucketOf.erase(follower);
  // One by one: a follower may fill a bucket, and the next one may need what is in that.
  for (Operation *follower : bucket.followers) {
    follower->moveBefore(before);
    place(follower, before);
  }
}

/// Whether `op` needs a result of an open bucket, and now waits for it.
bool Bucketing::follows(Operation *op) {
  auto it = bucketOf.find(op->getOperand(0).getDefiningOp());
  if (it == bucketOf.end())
    return false;
  unsigned index = it->second;
  open[index].followers.push_back(op);
  bucketOf[op] = index;
  return true;
}

/// Lets a collective, or what pads for one, wait for the bucket that it needs a result of, or adds
/// the collective to a bucket.
void Bucketing::place(Operation *op, Operation *next) {
  if (!follows(op) && isa<dist::CollectiveOpInterface>(op))
    add(op, next);
}

/// Adds `op` to a bucket; buckets that are closed for that are placed before `next`.
void Bucketing::add(Operation *op, Operation *next) {
  int64_t bytes = collectiveBytes(op);
  // Bytes, not latency, are what a large one costs: it starts at once.
  if (bytes >= bucketBytes)
    return;
  auto fits = [&](const Open &bucket) {
    return !bucket.members.empty() && dist::canShareBucket(bucket.members.front(), op) &&
           bucket.members.front()->getAttr(dist::kChunkAttrName) ==
               op->getAttr(dist::kChunkAttrName);
  };
  auto isEmpty = [](const Open &bucket) { return bucket.members.empty(); };
  unsigned index = llvm::find_if(open, fits) - open.begin();
  if (index == open.size())
    index = llvm::find_if(open, isEmpty) - open.begin();
  if (index == open.size())
    open.push_back({});
  open[index].members.push_back(op);
  open[index].bytes += bytes;
  bucketOf[op] = index;
  if (open[index].bytes >= bucketBytes)
    close(index, next);
}

void Bucketing::run() {
  if (bucketBytes <= 0)
    return;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (isa<dist::CollectiveOpInterface>(op)) {
      place(&op, op.getNextNode());
      continue;
    }
    if (fitsForCollective(&op) && follows(&op))
      continue;
    // In a ring, earlier steps must not wait for later ones.
    for (unsigned i = 0; i < open.size(); ++i)
      if (!open[i].members.empty() && goesRound(open[i].members.front()))
        close(i, &op);
    // After that, an operand may be in another bucket, of followers, that has to close as well.
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        for (auto it = bucketOf.find(operand.getDefiningOp()); it != bucketOf.end();
             it = bucketOf.find(operand.getDefiningOp()))
          close(it->second, &op);
    });
  }
}

namespace {
struct OptimizeCollectivesPass : dtc::impl::OptimizeCollectivesPassBase<OptimizeCollectivesPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(checkOption(getOperation(), "bucket-bytes", bucketBytes, 0)))
      return signalPassFailure();
    if (failed(forEachFunction(getOperation(), [&](func::FuncOp function, const LinkedMesh &) {
          forEachStraightBlock(function, [&](Block &block) {
            startEarly(block);
            Bucketing(block, bucketBytes).run();
          });
          return success();
        })))
      signalPassFailure();
  }
};
} // namespace
