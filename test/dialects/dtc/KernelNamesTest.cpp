//===- KernelNamesTest.cpp - The kernels of the dialects and of plans -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/Dist.h"
#include "dialects/dtc/DtcOps.h"
#include "plan/KernelTable.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

/// Every op that lowers to a kernel has it in the table of plans, and every kernel there is one
/// that lowering can call.
TEST(KernelNames, AreThoseOfTheTable) {
  mlir::MLIRContext context;
  context.loadDialect<dtc::DtcDialect, dtc::dist::DistDialect>();
  // Lowering copies results and sums over microbatches, and fills where a constant is one number.
  // Passes on the lowered program let attention read the parts of a joint tensor.
  std::set<std::string> called = {"accumulate", "copy", "fill", "joined_attention",
                                  "joined_attention_grad"},
                        known;
  for (mlir::RegisteredOperationName op : context.getRegisteredOperations())
    if (op.hasInterface<dtc::KernelOpInterface>())
      called.insert(op.stripDialect().str());
  for (const dtc::KernelInfo &kernel : dtc::allKernels())
    known.emplace(kernel.name);
  EXPECT_EQ(called, known);
}
