//===- dtc-opt.cpp - The passes, one by one -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/Passes.h"
#include "compiler/pipeline/Pipeline.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

#ifdef DTC_TEST_PASSES
#include "test/lib/TestPasses.h"
#endif

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  dtc::registerDialects(registry);
  dtc::registerDtcPasses();
  mlir::registerTransformsPasses();
#ifdef DTC_TEST_PASSES
  dtc::test::registerTestPasses();
#endif
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "dtc optimizer driver\n", registry));
}
