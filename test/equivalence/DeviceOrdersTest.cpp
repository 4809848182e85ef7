//===- DeviceOrdersTest.cpp - Orders in which devices may execute ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Devices that NCCL connects compute the same bits in whatever order the stand-in of CUDA executes
// their streams, of those that streams, events and graphs allow, and none of them waits for ever.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanTypes.h"
#include "runtime/backends/cuda/CudaBackend.h"
#include "test/equivalence/Training.h"
#include "test/lib/fabrics/NcclFabrics.h"
#include "test/lib/files/SourcePath.h"
#include "test/lib/plans/TrainStep.h"
#include "test/standin/cuda/Standin.h"

#include "llvm/Support/MemoryBuffer.h"

#include <cstdlib>
#include <gtest/gtest.h>

namespace deviceOrdersTest {

namespace deviceOrdersTest {

using namespace dtc;
using namespace dtc::test;

namespace {

const char *const kExperts = R"({"model_type": "mixtral", "vocab_size": 12, "hidden_size": 8,
                                 "intermediate_size": 8, "num_hidden_layers": 1,
                                 "num_attention_heads": 2, "num_key_value_heads": 2,
                                 "num_local_experts": 4, "num_experts_per_tok": 2,
                                 "max_position_embeddings": 4, "tie_word_embeddings": false})";

struct Layout {
  const char *name;
  const char *config; // none: examples/mlp.mlir
  const char *strategy;
  uint64_t seeds;
};

/// With graphs and without, 100 orders in all.
const Layout kLayouts[] = {
    {"Data", nullptr, "dp=2", 15},
    {"Tensor", nullptr, "tp=2", 15},
    {"Pipeline", nullptr, "pp=2 m=4 schedule=1f1b", 12},
    {"Zero3", nullptr, "fsdp=4 zero=3", 6},
    {"Experts", kExperts, "ep=2", 2}, // whose kernels take long on a CPU
};

/// More or fewer of them in DTC_STANDIN_ORDERS.
uint64_t numSeeds(const Layout &layout) {
  const char *text = std::getenv("DTC_STANDIN_ORDERS");
  return text ? std::strtoull(text, nullptr, 10) : layout.seeds;
}

std::shared_ptr<const plan::Plan> compile(const Layout &layout) {
  Compiler compiler;
  std::shared_ptr<const plan::Plan> plan;
  if (layout.config)
    plan = compiler.importAndCompile(layout.config, 4, 4, strategy(layout.strategy));
  else if (auto file = llvm::MemoryBuffer::getFile(sourcePath("examples/mlp.mlir")))
    if (auto module = compiler.parse((*file)->getBuffer().str()))
      plan = compiler.compileCopy(*module, strategy(layout.strategy));
  EXPECT_TRUE(plan) << compiler.diagnostics();
  return plan;
}

/// The bytes of losses, norms and states of two steps, or the error.
Expected<std::string> train(const std::shared_ptr<const plan::Plan> &plan, bool graphs) {
  auto session = runtime::Session::create(
      plan, runtime::createCudaBackend(),
      {.openFabric = runtime::testing::ncclFabric(), .stallTimeout = 20, .graphs = graphs});
  if (!session)
    return session.error();
  if (MaybeError error = (*session)->initializeStates(7))
    return *error;
  std::string bytes;
  auto append = [&](const HostTensor &tensor) {
    bytes.append(reinterpret_cast<const char *>(tensor.bytes.data()), tensor.bytes.size());
  };
  for (uint64_t step = 1; step <= 2; ++step) {
    if (MaybeError error = setRandomInputs(**session, step))
      return *error;
    if (MaybeError error = trainStep(**session, 1e-2))
      return *error;
    for (const char *output : {"loss", "grad_norm"})
      append(*(*session)->getOutput(output));
  }
  for (const plan::State *state : distinctStates(*plan))
    append(*(*session)->getState(state->name()));
  return bytes;
}

class DeviceOrders : public testing::TestWithParam<Layout> {
protected:
  void TearDown() override { standin::reset(); }
};

} // namespace

TEST_P(DeviceOrders, OfDevicesOverNcclGiveTheSameBits) {
  auto plan = compile(GetParam());
  ASSERT_TRUE(plan);
  std::optional<std::string> first;
  for (uint64_t seed = 1; seed <= numSeeds(GetParam()); ++seed)
    for (bool graphs : {false, true}) {
      standin::Settings settings;
      settings.devices = 4;
      settings.seed = seed;
      standin::reset(settings);
      Expected<std::string> bytes = train(plan, graphs);
      ASSERT_TRUE(bytes) << "DTC_CUDA_STANDIN_SEED=" << seed << ": " << bytes.error().message;
      if (!first)
        first = *bytes;
      ASSERT_TRUE(*bytes == *first) << "DTC_CUDA_STANDIN_SEED=" << seed << ", graphs: " << graphs;
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceOrders, testing::ValuesIn(kLayouts),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace deviceOrdersTest

} // namespace deviceOrdersTest
