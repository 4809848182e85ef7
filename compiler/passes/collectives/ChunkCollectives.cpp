//===- ChunkCollectives.cpp - Collectives under the products of chunks ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A device that waits for the rows of its experts, or for the parts of a sequence, could compute
// with the first of them while the others are on their way. Here the ops between two collectives
// are divided into chunks, whose collectives then run under each other's products. After the
// pipelines of Hwang et al., "Tutel: Adaptive Mixture-of-Experts at Scale" (arXiv:2206.03382) for
// experts, and of Wang et al., "Overlap Communication with Dependent Computation via Decomposition
// in Large Deep Learning Models" (ASPLOS 2023) for tensor parallelism.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/LocalCost.h"
#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/collectives/Buckets.h"
#include "compiler/passes/collectives/ChunkEmission.h"

namespace dtc {
#define GEN_PASS_DEF_CHUNKCOLLECTIVESPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

/// "auto" compares these numbers of chunks, and no chunks.
static constexpr int64_t kTriedChunks[] = {2, 4};

/// The seconds of an op besides its estimate: the launch of a kernel on a GPU.
static constexpr double kLaunchSeconds = 3e-6;

namespace {

/// Walks a block, and computes chains of its ops in chunks.
class CollectiveChunking {
public:
  CollectiveChunking(Block &block, const LinkedMesh &mesh, int64_t chunks)
      : block(block), mesh(mesh), chunks(chunks) {}
  void run();

private:
  struct Choice {
    std::unique_ptr<ChunkedChain> chain;
    double seconds; ///< by which it takes longer than without chunks
  };
  void tryChain(Operation *collective, ChunkDim dim, int64_t count, bool asEnd, Choice &best);
  Choice chooseChain(Operation *collective, bool asEnd);
  double secondsOf(Operation *op) const;
  double span(ArrayRef<Operation *> ops, llvm::function_ref<bool(Operation *)> isSum,
              double spare) const;
  double spareSeconds(const ChunkedChain &chain) const;
  double joinSeconds(const ChunkedChain &chain, bool cut) const;
  bool isAwaited(Operation *collective) const;
  void sinkJoins();

  Block &block;
  const LinkedMesh &mesh;
  int64_t chunks;
  KnownChunks known;
  llvm::DenseSet<Operation *> done; ///< collectives of chunks
  Operation *lastEnd = nullptr;     ///< the last op of the chain before
};

} // namespace

double CollectiveChunking::secondsOf(Operation *op) const {
  return localSeconds(mesh, op) + (isa<KernelOpInterface>(op) ? kLaunchSeconds : 0);
}

/// The seconds of ops in their order, where a device runs collectives one after another beside the
/// other ops, and waits for its operands. Sums, and `spare` seconds of other work, run while it
/// waits.
double CollectiveChunking::span(ArrayRef<Operation *> ops,
                                llvm::function_ref<bool(Operation *)> isSum, double spare) const {
  double now = 0, linkFree = 0, later = 0, hidden = 0;
  llvm::DenseMap<Operation *, double> ends;
  auto waitUntil = [&](double end) {
    double wait = std::max(end - now, 0.0), covered = std::min(wait, later + spare);
    // The sums have to be computed anyway; other work does not count, except for the collectives
    // that it covers.
    double sums = std::min(covered, later);
    later -= sums;
    spare -= covered - sums;
    hidden += covered - sums;
    now += wait;
  };
  for (Operation *op : ops) {
    for (Value operand : op->getOperands())
      if (auto it = ends.find(operand.getDefiningOp()); it != ends.end() && !isSum(op))
        waitUntil(it->second);
    double seconds = secondsOf(op);
    if (movesChunks(op))
      ends[op] = linkFree = std::max(now, linkFree) + seconds;
    else
      (isSum(op) ? later : now) += seconds;
  }
  waitUntil(linkFree);
  return now + later - hidden;
}

/// The seconds of products near the chain that nothing needs before its end, such as gradients of
/// weights and the products of shared experts: they run while the device waits, with chunks or
/// without (see dtc-hide-collectives).
double CollectiveChunking::spareSeconds(const ChunkedChain &chain) const {
  SmallVector<Operation *> ops = chain.ops();
  llvm::DenseSet<Operation *> delayable;
  double seconds = 0;
  unsigned left = 2 * kSearchedChainOps;
  for (Operation *op = ops.back()->getPrevNode(); op && op != lastEnd && left > 0;
       op = op->getPrevNode(), --left) {
    if (chain.contains(op) || chain.isCopied(op) || movesChunks(op) || op->getNumRegions() > 0)
      continue;
    bool isLater = llvm::all_of(op->getUsers(), [&](Operation *user) {
      Operation *inBlock = block.findAncestorOpInBlock(*user);
      return delayable.contains(inBlock) ||
             (!chain.contains(inBlock) && ops.back()->isBeforeInBlock(inBlock));
    });
    if (!isLater)
      continue;
    delayable.insert(op);
    if (isMatrixProduct(op))
      seconds += secondsOf(op);
  }
  // The ops between the last op of the chain and the first one that needs a result of its
  // collectives.
  for (Operation *op = ops.back()->getNextNode(); op; op = op->getNextNode()) {
    bool isAwaiting = llvm::any_of(op->getOperands(), [&](Value operand) {
      Operation *definer = operand.getDefiningOp();
      return chain.contains(definer) && movesChunks(definer);
    });
    if (isAwaiting)
      break;
    if (isMatrixProduct(op))
      seconds += secondsOf(op);
  }
  return seconds;
}

/// The seconds that it takes to join the chunks of other chains which the chain needs in one piece:
/// all that it uses if it is not cut, else those of other chunks, and those that others need too.
double CollectiveChunking::joinSeconds(const ChunkedChain &chain, bool cut) const {
  llvm::DenseSet<Value> seen;
  double bytes = 0;
  for (Operation *op : chain.ops())
    for (auto [operand, dim] : llvm::zip_equal(op->getOperands(), chain.dimsOf(op).operands)) {
      if (!known.joined.contains(operand) || !seen.insert(operand).second)
        continue;
      if (!cut || !dim || !chain.hasKnownChunks(operand, *dim) || chain.isUsedOutside(operand))
        bytes += 2 * double(tensorBytes(operand.getType()));
    }
  return bytes / mesh.deviceBandwidth;
}

/// Whether products need the collective's result, and it would still run when they do.
bool CollectiveChunking::isAwaited(Operation *collective) const {
  if (!feedsProducts(collective))
    return false;
  double left = localSeconds(mesh, collective);
  for (Operation *op = collective->getNextNode(); op && left > 0; op = op->getNextNode()) {
    bool isUser = llvm::any_of(
        op->getOperands(), [&](Value operand) { return operand.getDefiningOp() == collective; });
    if (isUser)
      return true;
    left -= movesChunks(op) ? 0 : localSeconds(mesh, op);
  }
  return false;
}

void CollectiveChunking::tryChain(Operation *collective, ChunkDim dim, int64_t count, bool asEnd,
                                  Choice &best) {
  count = std::min(count, blockSize(collective->getOperand(0).getType(), dim));
  if (count < 2)
    return;
  auto chain = std::make_unique<ChunkedChain>(count, known);
  if (!(asEnd ? chain->growTo(collective, dim) : chain->growFrom(collective, dim)))
    return;
  chain->extend();
  double spare = spareSeconds(*chain);
  ChunkEmission emission(*chain, known);
  double seconds = span(
      emission.countedOps(), [&](Operation *op) { return emission.isSum(op); }, spare);
  seconds += joinSeconds(*chain, /*cut=*/true);
  seconds -= joinSeconds(*chain, /*cut=*/false);
  seconds -= span(
      chain->ops(), [&](Operation *op) { return !chain->dimsOf(op).isCarried(); }, spare);
  if (chunks == 0 && seconds >= 0)
    return;
  if (!best.chain || seconds < best.seconds)
    best = {std::move(chain), seconds};
}

CollectiveChunking::Choice CollectiveChunking::chooseChain(Operation *collective, bool asEnd) {
  Choice best{nullptr, 0};
  auto before = cast<RankedTensorType>(collective->getOperand(0).getType());
  auto after = cast<RankedTensorType>(collective->getResult(0).getType());
  if (before.getRank() != after.getRank())
    return best;
  SmallVector<ChunkDim> dims;
  for (unsigned dim = 0; dim < before.getRank(); ++dim)
    dims.push_back({dim, std::max<int64_t>(before.getDimSize(dim) / after.getDimSize(dim), 1)});
  for (ChunkDim dim : dims)
    for (int64_t count : chunks > 0 ? ArrayRef(chunks) : ArrayRef(kTriedChunks))
      if (blockSize(before, dim) >= count)
        tryChain(collective, dim, count, asEnd, best);
  // Where no dimension is long enough, there are fewer chunks than asked for.
  if (!best.chain && chunks > 0)
    for (ChunkDim dim : dims)
      tryChain(collective, dim, chunks, asEnd, best);
  return best;
}

/// Joins stand just before the first op that needs them. Those that none needs are erased.
void CollectiveChunking::sinkJoins() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (!known.joins.contains(&op))
      continue;
    if (op.use_empty()) {
      op.erase();
      continue;
    }
    Operation *first = nullptr;
    for (Operation *user : op.getUsers()) {
      Operation *inBlock = block.findAncestorOpInBlock(*user);
      if (!first || inBlock->isBeforeInBlock(first))
        first = inBlock;
    }
    op.moveBefore(first);
  }
}

void CollectiveChunking::run() {
  // The chains of later collectives end where those of earlier ones were.
  SmallVector<Operation *> collectives;
  for (Operation &op : block)
    if (movesChunks(&op))
      collectives.push_back(&op);
  for (Operation *collective : collectives) {
    if (done.contains(collective) || !movesComputed(collective))
      continue;
    Choice choice = chooseChain(collective, /*asEnd=*/false);
    if (!choice.chain && isAwaited(collective))
      choice = chooseChain(collective, /*asEnd=*/true);
    if (!choice.chain)
      continue;
    SmallVector<Operation *> ops = choice.chain->ops();
    for (Operation *op : ops)
      if (movesChunks(op))
        done.insert(op);
    lastEnd = ops.back()->getNextNode();
    ChunkEmission(*choice.chain, known).replaceChain(known);
    lastEnd = lastEnd ? lastEnd->getPrevNode() : nullptr;
  }
  sinkJoins();
}

namespace {
struct ChunkCollectivesPass : dtc::impl::ChunkCollectivesPassBase<ChunkCollectivesPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(checkOption(getOperation(), "chunks", chunks, 0, kMaxCollectiveChunks)))
      return signalPassFailure();
    if (chunks == 1)
      return;
    if (failed(forEachFunction(getOperation(), [&](func::FuncOp function, const LinkedMesh &mesh) {
          forEachStraightBlock(
              function, [&](Block &block) { CollectiveChunking(block, mesh, chunks).run(); });
          return success();
        })))
      signalPassFailure();
  }
};
} // namespace
