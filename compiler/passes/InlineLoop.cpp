//===- InlineLoop.cpp - A loop over one microbatch as its body ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/InlineLoop.h"

using namespace mlir;
using namespace dtc;

void dtc::inlineLoop(dist::MicrobatchLoopOp loop) {
  Block &body = loop.getBody().front();
  auto yield = cast<dist::YieldOp>(body.getTerminator());
  loop.replaceAllUsesWith(SmallVector<Value>(yield.getValues()));
  yield.erase();
  loop->getBlock()->getOperations().splice(loop->getIterator(), body.getOperations());
  loop.erase();
}
