//===- TestDecompose.cpp - Exercises the ops' decompositions --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/lib/passes/TestPasses.h"

#include "dialects/dtc/DtcOps.h"

#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace {

struct TestDecomposePass : PassWrapper<TestDecomposePass, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestDecomposePass)

  StringRef getArgument() const final { return "test-decompose"; }
  StringRef getDescription() const final { return "Replaces ops by their decompositions"; }

  void runOnOperation() override {
    getOperation()->walk([](dtc::ShardingRuleOpInterface op) {
      OpBuilder builder(op);
      FailureOr<SmallVector<Value>> values = op.decompose(builder);
      if (failed(values))
        return;
      op->replaceAllUsesWith(*values);
      op->erase();
    });
  }
};

} // namespace

void dtc::test::registerTestDecompose() { PassRegistration<TestDecomposePass>(); }
