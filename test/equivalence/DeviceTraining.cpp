//===- DeviceTraining.cpp - Training runs on the stand-in of CUDA ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/equivalence/DeviceTraining.h"

#include "plan/PlanTypes.h"
#include "test/lib/files/SourcePath.h"
#include "test/lib/plans/TrainStep.h"

#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

namespace dtc::test::devices {

std::shared_ptr<const plan::Plan> compile(const Case &which) {
  Compiler compiler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string model = which.model;
  if (model.ends_with(".mlir")) {
    auto file =
        llvm::MemoryBuffer::getFile(dtc::test::sourcePath("examples/" + std::string(model)));
    EXPECT_TRUE(file) << model;
    module = compiler.parse((*file)->getBuffer().str());
  } else {
    ImportOptions import;
    import.attention = which.attention;
    module = compiler.importText(model, "config.json", 4, 8, import);
  }
  EXPECT_TRUE(module) << compiler.diagnostics();
  if (which.isDouble)
    toDouble(*module);
  auto plan = compiler.compileCopy(*module, strategy(which.strategy));
  EXPECT_TRUE(plan) << compiler.diagnostics();
  return plan;
}

Training train(const std::shared_ptr<const plan::Plan> &plan,
               std::shared_ptr<const runtime::Backend> backend, int steps,
               const runtime::OpenFabric &fabric, std::optional<bool> graphs) {
  Training run;
  auto session = runtime::Session::create(
      plan, std::move(backend), {.openFabric = fabric, .stallTimeout = 0, .graphs = graphs});
  if (!session) {
    ADD_FAILURE() << session.error().message;
    return run;
  }
  EXPECT_FALSE((*session)->initializeStates(7));
  EXPECT_FALSE(setLossScale(**session, 1024));
  for (int step = 1; step <= steps; ++step) {
    EXPECT_FALSE(setRandomInputs(**session, 1));
    MaybeError error = trainStep(**session, 1e-2);
    EXPECT_FALSE(error) << error->message;
    if (error)
      return run;
    for (const char *output : {"loss", "grad_norm"})
      run.numbers.push_back(element(*(*session)->getOutput(output)));
  }
  for (const plan::State *state : distinctStates(*plan))
    run.states.emplace(state->name(), *(*session)->getState(state->name()));
  return run;
}

} // namespace dtc::test::devices
