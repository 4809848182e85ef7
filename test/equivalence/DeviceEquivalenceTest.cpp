//===- DeviceEquivalenceTest.cpp - Equivalence of backends ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A plan trains on the CUDA backend as it does on the CPU. The GPUs are the stand-in's of CUDA,
// which runs what is enqueued in an order that a seed draws.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/backends/cuda/CudaBackend.h"
#include "test/equivalence/DeviceTraining.h"
#include "test/lib/files/SourcePath.h"
#include "test/lib/plans/TrainStep.h"
#include "test/standin/cuda/Standin.h"

#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <regex>

namespace deviceEquivalenceTest {

using namespace dtc;
using namespace dtc::test;
using namespace dtc::test::devices;

namespace {

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
    // Tensor cores round the weights of attention once more. AdamW would make whole steps of that.
    {"Gpt2Bf16", kGpt2, "dtype=bf16 optimizer=sgd"},
    {"Gpt2Decomposed", kGpt2, "", false, AttentionKind::Decomposed},
    {"Llama", kLlama, ""},
    {"LlamaRecompute", kLlama, "m=2 recompute=full"},
    {"LlamaF64", kLlama, "m=2", true},
    {"LlamaBf16", kLlama, "dtype=bf16 optimizer=sgd"},
    {"LlamaF16", kLlama, "dtype=f16 optimizer=sgd"},
    // Virtual devices, which share two GPUs and exchange tensors over the local fabric.
    {"MlpData", "mlp.mlir", "dp=2"},
    {"Gpt2Data", kGpt2, "dp=2"},
    {"Gpt2Tensor", kGpt2, "tp=2"},
    {"Gpt2Pipeline", kGpt2, "pp=2 m=2"},
    {"Gpt2AllAxes", kGpt2, "dp=2,tp=2,pp=2 m=2"},
    {"LlamaF64AllAxes", kLlama, "dp=2,tp=2,pp=2 m=2", true},
    {"LlamaContextGather", kLlama, "cp=2 context_exchange=all-gather"},
    {"LlamaContextSwap", kLlama, "cp=2 context_exchange=all-to-all"},
    {"LlamaContextRing", kLlama, "cp=4 context_exchange=ring"},
    {"LlamaContextNested", kLlama, "cp=4 context_heads=2 context_exchange=ring"},
    {"LlamaContextRingF64", kLlama, "dp=2,cp=2 m=2 context_exchange=ring", true},
    {"LlamaContextRingBf16", kLlama, "cp=2 dtype=bf16 optimizer=sgd context_exchange=ring"},
    {"MistralContextRing", kMistral, "cp=2,tp=2 sp context_exchange=ring"},
    {"MistralContextGather", kMistral, "cp=4 context_exchange=all-gather"},
    {"MixtralExperts", kMixtral, "ep=4"},
    {"MixtralExpertsZero", kMixtral, "dp=2,ep=2 zero=1", true},
    {"MixtralExpertsZero3", kMixtral, "dp=2,ep=2 zero=3", true},
    {"MixtralExpertsTensor", kMixtral, "ep=2,tp=2 sp"},
    {"MixtralExpertsPipeline", kMixtral, "pp=2,ep=2 m=2", true},
    {"MixtralExpertsRing", kMixtral, "ep=2,cp=2 context_exchange=ring", true},
    {"MixtralExpertsChunks", kMixtral, "ep=2 chunk_collectives=2"},
    {"MixtralExpertsBf16", kMixtral, "ep=2 dtype=bf16 optimizer=sgd"},
    {"GptOssExperts", kGptOss, "ep=2,tp=2", true},
    {"GptOssContext", kGptOss, "ep=2,cp=2 context_exchange=all-gather"},
};

bool isNarrow(const Case &which) {
  return std::string(which.strategy).find("dtype") != std::string::npos;
}

Training trainOnCuda(const std::shared_ptr<const plan::Plan> &plan, int steps) {
  return train(plan, runtime::createCudaBackend(), steps);
}

class DeviceEquivalence : public testing::TestWithParam<Case> {
protected:
  void TearDown() override { standin::reset(); }
};

class FusedEquivalence : public DeviceEquivalence {};

} // namespace

/// In sixteen bits call by call, as CUDA then rounds where the CPU does.
TEST_P(DeviceEquivalence, CudaTrainsAsTheCpu) {
  const Case &which = GetParam();
  auto plan = compile(which);
  ASSERT_TRUE(plan);
  standin::reset();
  // The difference of a state relative to its largest element. Sixteen bits round each product.
  double tolerance = which.isDouble ? 1e-9 : isNarrow(which) ? 0x1p-7 : 1e-4;
  Training cpu = train(plan, runtime::createCpuBackend(), 5);
  Training cuda = train(plan, runtime::createCudaBackend({.fusesCalls = !isNarrow(which)}), 5);
  ASSERT_EQ(cpu.numbers.size(), cuda.numbers.size());
  for (size_t i = 0; i < cpu.numbers.size(); ++i)
    EXPECT_NEAR(cuda.numbers[i], cpu.numbers[i], tolerance * std::abs(cpu.numbers[i])) << i;
  EXPECT_LT(cpu.numbers[8], cpu.numbers[0]) << "nothing was learned";
  ASSERT_EQ(cpu.states.size(), cuda.states.size());
  for (const auto &[name, state] : cpu.states) {
    // The gradients of keys' biases are nothing but rounding, and AdamW makes whole steps of it.
    bool isRounding = !which.isDouble && name.ends_with("c_attn.bias");
    EXPECT_LT(relativeDifference(state, cuda.states.at(name), 1e-6),
              isRounding ? std::max(tolerance, 1e-2) : tolerance)
        << name;
  }
}

/// Calls that are computed together round less often, so that in sixteen bits a run is at most as
/// far from the same training in f32 as the CPU is, but for chance. By SGD, as AdamW makes whole
/// steps of gradients that are all rounding.
TEST_P(FusedEquivalence, IsNoFartherFromF32) {
  Case which = GetParam();
  std::string narrow = which.strategy;
  if (narrow.find("optimizer") == std::string::npos)
    narrow += " optimizer=sgd";
  std::string precise = std::regex_replace(narrow, std::regex("dtype=[a-z0-9]+"), "dtype=f32");
  which.strategy = narrow.c_str();
  auto plan = compile(which);
  which.strategy = precise.c_str();
  auto f32Plan = compile(which);
  ASSERT_TRUE(plan && f32Plan);
  standin::reset();
  Training f32 = train(f32Plan, runtime::createCpuBackend(), 5),
           cpu = train(plan, runtime::createCpuBackend(), 5), fused = trainOnCuda(plan, 5);
  ASSERT_EQ(cpu.numbers.size(), fused.numbers.size());
  for (size_t i = 0; i < cpu.numbers.size(); ++i)
    EXPECT_NEAR(fused.numbers[i], cpu.numbers[i], 0x1p-7 * std::abs(cpu.numbers[i])) << i;
  auto distance = [&](const Training &run) { // of the optimizer's states, which have 32 bits
    double sum = 0;
    for (const auto &[name, state] : f32.states)
      if (state.type == run.states.at(name).type)
        sum += std::pow(relativeDifference(state, run.states.at(name), 1e-6), 2);
    return std::sqrt(sum);
  };
  EXPECT_GT(distance(cpu), 0);
  EXPECT_LT(distance(fused), 1.5 * distance(cpu));
}

static std::vector<Case> narrowCases() {
  std::vector<Case> cases(std::begin(kCases), std::end(kCases));
  std::erase_if(cases, [](const Case &each) { return !isNarrow(each); });
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Devices, FusedEquivalence, testing::ValuesIn(narrowCases()),
                         [](const auto &info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(Devices, DeviceEquivalence, testing::ValuesIn(kCases),
                         [](const auto &info) { return std::string(info.param.name); });

/// A step that is launched as graphs has the bits of one that is enqueued one by one.
TEST_P(DeviceEquivalence, GraphsHaveTheBitsOfEagerSteps) {
  auto plan = compile(GetParam());
  ASSERT_TRUE(plan);
  standin::reset();
  Training eager = train(plan, runtime::createCudaBackend(), 4, nullptr, /*graphs=*/false);
  EXPECT_EQ(standin::counts().graphLaunches, 0u);
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    standin::Settings settings;
    settings.seed = seed;
    standin::reset(settings);
    Training graphs = train(plan, runtime::createCudaBackend(), 4, nullptr, /*graphs=*/true);
    EXPECT_GE(standin::counts().graphLaunches, 3u);
    ASSERT_EQ(graphs.bytes() == eager.bytes(), true) << "DTC_CUDA_STANDIN_SEED=" << seed;
  }
}

/// Calls that are computed together round elsewhere, and have fewer launches. Without epilogues in
/// cuBLASLt, and of the gradients of norms, the bits are the same.
TEST(DeviceFusion, ChangesRoundingAlone) {
  for (const Case &which : kCases) {
    std::string name = which.name;
    if (name != "Gpt2" && name != "Gpt2Recompute" && name != "Gpt2Bf16" && name != "LlamaF64" &&
        name != "Llama" && name != "Gpt2Tensor" && name != "Gpt2Pipeline")
      continue;
    auto plan = compile(which);
    ASSERT_TRUE(plan);
    auto trainWith = [&](bool fuses, standin::Epilogues epilogues, uint64_t &launches) {
      standin::Settings settings;
      settings.epilogues = epilogues;
      standin::reset(settings);
      Training run = train(plan, runtime::createCudaBackend({.fusesCalls = fuses}), 3, nullptr,
                           /*graphs=*/false);
      launches = standin::counts().launches;
      return run;
    };
    uint64_t few = 0, many = 0, ignored = 0;
    Training single = trainWith(false, standin::Epilogues::Computed, many),
             fused = trainWith(true, standin::Epilogues::Computed, few);
    EXPECT_LT(few, many) << name;
    ASSERT_EQ(single.numbers.size(), fused.numbers.size()) << name;
    double tolerance = name == "Gpt2Bf16" ? 0x1p-7 : 1e-5;
    for (size_t i = 0; i < single.numbers.size(); ++i)
      EXPECT_NEAR(fused.numbers[i], single.numbers[i], tolerance * std::abs(single.numbers[i]))
          << name << ", " << i;
    if (name != "LlamaF64") // matrices are added in f64 without an epilogue
      continue;
    for (auto without : {standin::Epilogues::WithoutAlgorithm, standin::Epilogues::Refused})
      EXPECT_EQ(trainWith(true, without, ignored).bytes() == fused.bytes(), true) << name;
  }
  standin::reset();
}

/// Kernels and products of a step of GPT-2 124M in bf16, by name. Nothing is computed.
static std::map<std::string, uint64_t> launchesOfStep(int layers, bool fuses) {
  auto file = llvm::MemoryBuffer::getFile(dtc::test::sourcePath("examples/gpt2-124m/config.json"));
  std::string config = file ? (*file)->getBuffer().str() : "";
  const std::string all = "\"n_layer\": 12";
  size_t at = config.find(all);
  EXPECT_NE(at, std::string::npos);
  config.replace(at, all.size(), "\"n_layer\": " + std::to_string(layers));
  Compiler compiler;
  auto plan = compiler.importAndCompile(config, 32, 1024, strategy("dtype=bf16"));
  EXPECT_TRUE(plan) << compiler.diagnostics();
  standin::Settings settings;
  settings.countsAlone = true;
  settings.memoryBytes = size_t(64) << 30;
  standin::reset(settings);
  auto session = runtime::Session::create(plan, runtime::createCudaBackend({.fusesCalls = fuses}),
                                          {.stallTimeout = 0, .graphs = false});
  EXPECT_TRUE(session) << session.error().message;
  EXPECT_FALSE(setRandomInputs(**session, 1));
  auto before = standin::launchesByKernel();
  MaybeError error = trainStep(**session, 1e-2);
  EXPECT_FALSE(error) << error->message;
  auto launches = standin::launchesByKernel();
  for (const auto &[kernel, count] : before)
    launches[kernel] -= count;
  session->reset();
  standin::reset();
  return launches;
}

/// The launches of a layer, forward and backward, are the difference between those of three layers
/// and of two.
TEST(DeviceLaunches, OfALayerOfGpt2AreFew) {
  uint64_t perLayer[2] = {};
  for (bool fuses : {false, true}) {
    std::map<std::string, uint64_t> two = launchesOfStep(2, fuses),
                                    three = launchesOfStep(3, fuses);
    std::string list;
    for (const auto &[kernel, count] : three)
      if (uint64_t more = count - two[kernel]) {
        perLayer[fuses] += more;
        list += std::to_string(more) + " " + kernel + "\n";
      }
    EXPECT_LE(perLayer[fuses], fuses ? 30u : 62u) << list;
  }
  EXPECT_LT(perLayer[true], perLayer[false]);
}

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

} // namespace deviceEquivalenceTest
