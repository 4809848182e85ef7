//===- TestPasses.cpp - Passes for tests ----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/lib/passes/TestPasses.h"

void dtc::test::registerTestPasses() {
  registerTestDecompose();
  registerTestGradients();
  registerTestKernels();
  registerTestShardingRules();
}
