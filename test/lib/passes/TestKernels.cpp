//===- TestKernels.cpp - Prints the ops' kernels --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/lib/passes/TestPasses.h"

#include "dialects/dtc/DtcOps.h"
#include "plan/KernelTable.h"

#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace {

struct TestPrintKernelsPass : PassWrapper<TestPrintKernelsPass, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestPrintKernelsPass)

  StringRef getArgument() const final { return "test-print-kernels"; }
  StringRef getDescription() const final {
    return "Remarks on the kernel, in-place pairs and operations of each op";
  }

  void runOnOperation() override {
    getOperation()->walk([](dtc::KernelOpInterface op) {
      InFlightDiagnostic remark = op->emitRemark()
                                  << op.getKernelName() << " " << op.getKernelAttributes();
      for (auto [operand, result] : dtc::findKernel(op.getKernelName()).inPlace)
        remark << " " << operand << "=>" << result;
      if (auto rule = dyn_cast<dtc::ShardingRuleOpInterface>(op.getOperation()))
        remark << " flops " << static_cast<int64_t>(rule.getFlops()) << ".";
    });
  }
};

} // namespace

void dtc::test::registerTestKernels() { PassRegistration<TestPrintKernelsPass>(); }
