//===- TestDecompose.cpp - Exercises the ops' decompositions --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/lib/passes/TestPasses.h"

#include "dialects/dtc/DtcOps.h"
#include "dialects/dtc/ShardsAttribute.h"

#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace {

struct TestDecomposePass : PassWrapper<TestDecomposePass, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestDecomposePass)

  TestDecomposePass() = default;
  TestDecomposePass(const TestDecomposePass &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "test-decompose"; }
  StringRef getDescription() const final { return "Replaces ops by their decompositions"; }

  void runOnOperation() override {
    getOperation()->walk([&](dtc::ShardingRuleOpInterface op) {
      OpBuilder builder(op);
      if (shards > 1)
        op->setAttr(dtc::kShardsAttrName, builder.getI64IntegerAttr(shards));
      FailureOr<SmallVector<Value>> values = op.decompose(builder);
      op->removeAttr(dtc::kShardsAttrName);
      if (failed(values))
        return;
      op->replaceAllUsesWith(*values);
      op->erase();
    });
  }

  Option<int64_t> shards{*this, "shards",
                         llvm::cl::desc("over how many shards whole factors are split"),
                         llvm::cl::init(1)};
};

} // namespace

void dtc::test::registerTestDecompose() { PassRegistration<TestDecomposePass>(); }
