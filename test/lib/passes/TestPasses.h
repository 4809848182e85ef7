//===- TestPasses.h - Passes for tests ------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_LIB_PASSES_TESTPASSES_H
#define DTC_TEST_LIB_PASSES_TESTPASSES_H

namespace dtc::test {

/// Makes the test passes known to an mlir-opt.
void registerTestPasses();

/// `--test-decompose`: replaces every op that decomposes by simpler ones.
void registerTestDecompose();

/// `--test-build-vjps`: adds for each function @f the function @f_vjp, which takes a cotangent for
/// each result as well and returns the gradients by the float arguments.
void registerTestGradients();

/// `--test-print-kernels`: remarks on the kernel, in-place pairs and operations of each op.
void registerTestKernels();

/// `--test-print-sharding-rules`: checks the sharding rule of each op and remarks on it.
void registerTestShardingRules();

} // namespace dtc::test

#endif // DTC_TEST_LIB_PASSES_TESTPASSES_H
