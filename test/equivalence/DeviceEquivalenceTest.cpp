//===- DeviceEquivalenceTest.cpp - One plan on different devices ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A plan trains on the CUDA backend as it does on the CPU. The GPU is the stand-in of CUDA, which
// runs what is enqueued in an order that a seed draws.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanTypes.h"
#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/backends/cuda/CudaBackend.h"
#include "test/equivalence/Training.h"
#include "test/lib/files/SourcePath.h"
#include "test/lib/plans/TrainStep.h"
#include "test/standin/cuda/RemoveEvents.h"

#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

using namespace dtc;
using namespace dtc::test;

namespace {

/// A model and how it is compiled, for one device.
struct Case {
  const char *name;
  const char *model; // a file of examples/, or the text of a configuration
  const char *layout;
  bool isDouble = false;
};

const char *const kGpt2 = R"({"model_type": "gpt2", "vocab_size": 40, "n_positions": 8,
                              "n_embd": 16, "n_layer": 2, "n_head": 2, "embd_pdrop": 0.1,
                              "attn_pdrop": 0.1, "resid_pdrop": 0.1})";

const Case kCases[] = {
    {"Mlp", "mlp.mlir", ""},
    {"MlpMicrobatches", "mlp.mlir", "m=4"},
    {"MlpSgd", "mlp.mlir", "optimizer=sgd"},
    {"MlpLion", "mlp.mlir", "optimizer=lion"},
    {"MlpBf16", "mlp.mlir", "dtype=bf16"},
    {"MlpF16", "mlp.mlir", "dtype=f16"},
    {"MlpF64", "mlp.mlir", "", true},
    {"Gpt2", kGpt2, ""},
    {"Gpt2Recompute", kGpt2, "m=2 recompute=full"},
    {"Gpt2F64", kGpt2, "m=2", true},
};

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
    import.attention = AttentionForm::Decomposed; // the CUDA backend has no attention kernel
    module = compiler.importText(model, "config.json", 4, 8, import);
  }
  EXPECT_TRUE(module) << compiler.diagnostics();
  if (which.isDouble)
    toDouble(*module);
  auto plan = compiler.compileCopy(*module, layout(which.layout));
  EXPECT_TRUE(plan) << compiler.diagnostics();
  return plan;
}

/// The numbers of a training run: losses and norms of the steps, and the states after them.
struct Training {
  std::vector<double> numbers;
  std::map<std::string, runtime::HostTensor> states;

  std::string bytes() const {
    std::string all(reinterpret_cast<const char *>(numbers.data()),
                    numbers.size() * sizeof(double));
    for (const auto &[name, tensor] : states)
      all.append(reinterpret_cast<const char *>(tensor.bytes.data()), tensor.bytes.size());
    return all;
  }
};

Training train(const std::shared_ptr<const plan::Plan> &plan,
               std::shared_ptr<const runtime::Backend> backend, int steps) {
  Training run;
  auto session = runtime::Session::create(plan, std::move(backend), {.stallTimeout = 0});
  if (!session) {
    ADD_FAILURE() << session.error().message;
    return run;
  }
  EXPECT_FALSE((*session)->initializeStates(7));
  EXPECT_FALSE(setLossScale(**session, 1024));
  for (int step = 1; step <= steps; ++step) {
    EXPECT_FALSE(setRandomInputs(**session, 1));
    runtime::MaybeError error = trainStep(**session, 1e-2);
    EXPECT_FALSE(error) << error->message;
    if (error)
      return run;
    for (const char *output : {"loss", "grad_norm"})
      run.numbers.push_back(element(*(*session)->getOutput(output)));
  }
  for (const plan::State *state : runtime::distinctStates(*plan))
    run.states.emplace(state->name(), *(*session)->getState(state->name()));
  return run;
}

Training trainOnCuda(const std::shared_ptr<const plan::Plan> &plan, int steps) {
  return train(plan, runtime::createCudaBackend(), steps);
}

class DeviceEquivalence : public testing::TestWithParam<Case> {
protected:
  void TearDown() override { standin::reset(); }
};

} // namespace

TEST_P(DeviceEquivalence, CudaTrainsAsTheCpu) {
  const Case &which = GetParam();
  auto plan = compile(which);
  ASSERT_TRUE(plan);
  standin::reset();
  std::string layout = which.layout;
  bool isNarrow = layout.find("dtype") != std::string::npos;
  // Of a state against its largest element. Sixteen bits round each product. AdamW makes much of
  // the gradients of keys' biases, which are all rounding.
  double tolerance = which.isDouble ? 1e-9 : isNarrow ? 0x1p-5 : 1e-3;
  Training cpu = train(plan, runtime::createCpuBackend(), 5), cuda = trainOnCuda(plan, 5);
  ASSERT_EQ(cpu.numbers.size(), cuda.numbers.size());
  for (size_t i = 0; i < cpu.numbers.size(); ++i)
    EXPECT_NEAR(cuda.numbers[i], cpu.numbers[i], tolerance * std::abs(cpu.numbers[i])) << i;
  EXPECT_LT(cpu.numbers[8], cpu.numbers[0]) << "nothing was learned";
  ASSERT_EQ(cpu.states.size(), cuda.states.size());
  for (const auto &[name, state] : cpu.states)
    EXPECT_LT(relativeDifference(state, cuda.states.at(name), 1e-6), tolerance) << name;
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceEquivalence, testing::ValuesIn(kCases),
                         [](const auto &info) { return std::string(info.param.name); });

/// Whatever order the queues run in that their events allow, the bits are the same.
TEST(DeviceOrders, GiveTheSameBits) {
  auto plan = compile(kCases[0]);
  ASSERT_TRUE(plan);
  std::string first;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    standin::Settings settings;
    settings.seed = seed;
    standin::reset(settings);
    std::string bytes = trainOnCuda(plan, 2).bytes();
    if (seed == 1)
      first = bytes;
    ASSERT_EQ(bytes == first, true) << "DTC_CUDA_STANDIN_SEED=" << seed;
  }
  standin::reset();
}

/// What becomes of two steps, on a GPU that may fail.
static runtime::MaybeError trainTwoSteps(const std::shared_ptr<const plan::Plan> &plan) {
  auto session = runtime::Session::create(plan, runtime::createCudaBackend(), {.stallTimeout = 0});
  if (!session)
    return session.error();
  if (auto error = (*session)->initializeStates(7))
    return error;
  for (int step = 1; step <= 2; ++step) {
    if (auto error = setRandomInputs(**session, 1))
      return error;
    if (auto error = trainStep(**session, 1e-2))
      return error;
    if (auto loss = (*session)->getOutput("loss"); !loss)
      return loss.error();
  }
  return {};
}

TEST(DeviceFaults, ALostDeviceEndsTheRunWithAnError) {
  auto plan = compile(kCases[0]);
  ASSERT_TRUE(plan);
  standin::reset();
  EXPECT_FALSE(trainTwoSteps(plan));
  uint64_t work = standin::counts().work;
  ASSERT_GT(work, 50u);
  for (uint64_t i = 0; i < work; i += 7) {
    standin::reset();
    standin::failWork(i, cudaErrorIllegalAddress);
    runtime::MaybeError error = trainTwoSteps(plan);
    ASSERT_TRUE(error) << "work " << i;
    EXPECT_NE(error->message.find("cuda 0"), std::string::npos) << error->message;
  }
  standin::reset();
}

TEST(DeviceFaults, ACallThatFailsLeavesNothingBehind) {
  auto plan = compile(kCases[0]);
  ASSERT_TRUE(plan);
  standin::reset();
  EXPECT_FALSE(trainTwoSteps(plan));
  uint64_t calls = standin::counts().calls;
  ASSERT_GT(calls, 100u);
  int errors = 0;
  for (uint64_t i = 0; i < calls; i += 5) {
    standin::reset();
    standin::failCall(i, cudaErrorMemoryAllocation);
    runtime::MaybeError error = trainTwoSteps(plan);
    errors += error.has_value();
    if (error)
      EXPECT_TRUE(error->message.find("out of memory") != std::string::npos ||
                  error->message.find("ALLOC_FAILED") != std::string::npos)
          << error->message;
    standin::Counts left = standin::counts();
    // What the failed call should have freed, and what that belongs to.
    EXPECT_LE(left.allocations + left.streams + left.events, 2u) << "call " << i;
  }
  EXPECT_GT(errors, 20);
  standin::reset();
}

/// Two devices of a plan have no network yet that reaches into the memory of GPUs.
TEST(DeviceNetwork, NeedsTheMemoryOfTheHost) {
  Case which = kCases[0];
  which.layout = "dp=2";
  auto plan = compile(which);
  ASSERT_TRUE(plan);
  standin::reset();
  auto session = runtime::Session::create(plan, runtime::createCudaBackend());
  ASSERT_FALSE(session);
  EXPECT_NE(session.error().message.find("has a memory of its own"), std::string::npos)
      << session.error().message;
}
