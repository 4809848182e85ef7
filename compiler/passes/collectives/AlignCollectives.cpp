//===- AlignCollectives.cpp - Bring collectives together ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/collectives/Buckets.h"

namespace dtc {
#define GEN_PASS_DEF_ALIGNCOLLECTIVESPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

/// Consecutive ops of a block, which are ordered by the collectives that they come after.
class Stretch {
public:
  /// The most collectives of the stretch, one behind another, whose results the op needs.
  unsigned collectivesBefore(Operation *op) const;
  void add(Operation *op, unsigned level) {
    levels[op] = level;
    ops.push_back(op);
  }
  /// Orders the ops, places them before `next`, and leaves the stretch empty.
  void end(Operation *next);

private:
  SmallVector<Operation *> ops;
  llvm::DenseMap<Operation *, unsigned> levels;
};

} // namespace

unsigned Stretch::collectivesBefore(Operation *op) const {
  unsigned most = 0;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (auto it = levels.find(operand.getDefiningOp()); it != levels.end())
        most = std::max(most, it->second + unsigned(isa<dist::CollectiveOpInterface>(it->first)));
  });
  return most;
}

void Stretch::end(Operation *next) {
  llvm::stable_sort(ops, [&](Operation *a, Operation *b) { return levels[a] < levels[b]; });
  for (Operation *op : ops)
    op->moveBefore(next);
  ops.clear();
  levels.clear();
}

static void alignCollectives(Block &block, int64_t bucketBytes) {
  Stretch stretch;
  int64_t bytes = 0; // of the collectives that come after none
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
    unsigned level = stretch.collectivesBefore(&op);
    if (level == 0 && isa<dist::CollectiveOpInterface>(op)) {
      int64_t own = collectiveBytes(&op);
      if (bytes > 0 && bytes + own > bucketBytes) {
        stretch.end(&op);
        bytes = 0;
      }
      bytes += own;
    }
    stretch.add(&op, level);
  }
  stretch.end(block.getTerminator());
}

namespace {
struct AlignCollectivesPass : dtc::impl::AlignCollectivesPassBase<AlignCollectivesPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(checkOption(getOperation(), "bucket-bytes", bucketBytes, 0)))
      return signalPassFailure();
    if (bucketBytes == 0)
      return;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        alignCollectives(function.front(), bucketBytes);
  }
};
} // namespace
