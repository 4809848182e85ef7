//===- Buckets.cpp - Buckets of collectives -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/collectives/Buckets.h"

#include "compiler/analysis/Layout.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace dtc;

int64_t dtc::collectiveBytes(Operation *collective) {
  auto bytes = [](Type type) {
    return cast<RankedTensorType>(type).getNumElements() * elementBytes(type);
  };
  return std::max(bytes(collective->getOperand(0).getType()),
                  bytes(collective->getResult(0).getType()));
}

void dtc::makeBucket(ArrayRef<Operation *> collectives) {
  if (collectives.size() < 2)
    return;
  Operation *last = collectives.back();
  OpBuilder builder(last);
  SmallVector<Type> types;
  SmallVector<Location> locs;
  for (Operation *op : collectives) {
    types.push_back(op->getResult(0).getType());
    locs.push_back(op->getLoc());
  }
  auto bucket = dist::BucketOp::create(builder, FusedLoc::get(last->getContext(), locs), types);
  if (auto stage = dist::getStage(last))
    bucket->setAttr(dist::kStageAttrName, stage);
  Block *body = builder.createBlock(&bucket.getBody());
  SmallVector<Value> inner;
  for (auto [op, result] : llvm::zip_equal(collectives, bucket.getResults())) {
    op->getResult(0).replaceAllUsesWith(result);
    op->moveBefore(body, body->end());
    inner.push_back(op->getResult(0));
  }
  builder.setInsertionPointToEnd(body);
  dist::YieldOp::create(builder, last->getLoc(), inner);
}

void dtc::makeBuckets(ArrayRef<Operation *> collectives, int64_t bucketBytes) {
  // In the order of their first collective; a list is short.
  struct Open {
    SmallVector<Operation *> members;
    int64_t bytes = 0;
  };
  SmallVector<Open> open;
  for (Operation *op : collectives) {
    int64_t bytes = collectiveBytes(op);
    auto *fits = llvm::find_if(open, [&](const Open &bucket) {
      return dist::canShareBucket(bucket.members.front(), op) &&
             bucket.bytes + bytes <= bucketBytes;
    });
    if (fits == open.end()) {
      open.push_back({});
      fits = &open.back();
    }
    fits->members.push_back(op);
    fits->bytes += bytes;
  }
  for (const Open &bucket : open)
    makeBucket(bucket.members);
}

void dtc::forEachStraightBlock(func::FuncOp function, llvm::function_ref<void(Block &)> visit) {
  for (auto loop : function.getOps<dist::MicrobatchLoopOp>()) {
    for (auto fragment : loop.getBody().getOps<dist::FragmentOp>())
      visit(fragment.getBody().front());
    if (!loop.getSchedule())
      visit(loop.getBody().front());
  }
  visit(function.front());
}
