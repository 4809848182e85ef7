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

#include "plan/PlanTypes.h"
#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/backends/cuda/CudaBackend.h"
#include "test/equivalence/Training.h"
#include "test/lib/fabrics/NcclFabrics.h"
#include "test/lib/files/SourcePath.h"
#include "test/lib/plans/TrainStep.h"
#include "test/standin/cuda/RemoveEvents.h"

#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <regex>

namespace deviceEquivalenceTest {

using namespace dtc;
using namespace dtc::test;

namespace {

/// A model and how it is compiled.
struct Case {
  const char *name;
  const char *model; // a file of examples/, or the text of a configuration
  const char *strategy;
  bool isDouble = false;
  AttentionKind attention = AttentionKind::Fused;
};

const char *const kGpt2 = R"({"model_type": "gpt2", "vocab_size": 40, "n_positions": 8,
                              "n_embd": 16, "n_layer": 2, "n_head": 2, "embd_pdrop": 0.1,
                              "attn_pdrop": 0.1, "resid_pdrop": 0.1})";

// Two heads of queries for one of keys, and rotary positions.
const char *const kLlama = R"({"model_type": "llama", "vocab_size": 40, "hidden_size": 16,
                               "intermediate_size": 24, "num_hidden_layers": 2,
                               "num_attention_heads": 4, "num_key_value_heads": 2,
                               "max_position_embeddings": 8, "tie_word_embeddings": false})";

// Windows of three keys, longer than a piece of two.
const char *const kMistral = R"({"model_type": "mistral", "vocab_size": 40, "hidden_size": 16,
                                 "intermediate_size": 24, "num_hidden_layers": 2,
                                 "num_attention_heads": 4, "num_key_value_heads": 2,
                                 "max_position_embeddings": 8, "sliding_window": 3,
                                 "tie_word_embeddings": false})";

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
};

bool isNarrow(const Case &which) {
  return std::string(which.strategy).find("dtype") != std::string::npos;
}

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

/// The numbers of a training run: losses and norms of the steps, and the states after them.
struct Training {
  std::vector<double> numbers;
  std::map<std::string, HostTensor> states;

  std::string bytes() const {
    std::string all(reinterpret_cast<const char *>(numbers.data()),
                    numbers.size() * sizeof(double));
    for (const auto &[name, tensor] : states)
      all.append(reinterpret_cast<const char *>(tensor.bytes.data()), tensor.bytes.size());
    return all;
  }
};

Training train(const std::shared_ptr<const plan::Plan> &plan,
               std::shared_ptr<const runtime::Backend> backend, int steps,
               const runtime::OpenFabric &fabric = nullptr,
               std::optional<bool> graphs = std::nullopt) {
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

/// A GPU for each device, which NCCL connects: the bits are those of devices that share GPUs and
/// exchange tensors over the host where NCCL adds in the order of the ranks, as the host does. The
/// real NCCL adds in the order of its ring: its bits repeat from run to run, but are not the
/// host's.
class NcclEquivalence : public testing::TestWithParam<Case> {
protected:
  static void restart(uint64_t seed, bool inRankOrder = true) {
    standin::Settings settings;
    settings.devices = 8;
    settings.seed = seed;
    settings.addsInRankOrder = inRankOrder;
    standin::reset(settings);
  }
  void TearDown() override { standin::reset(); }
};

class RingEquivalence : public NcclEquivalence {};

TEST_P(NcclEquivalence, HasTheBitsOfTheLocalFabric) {
  auto plan = compile(GetParam());
  ASSERT_TRUE(plan);
  standin::reset();
  Training local = train(plan, runtime::createCudaBackend(), 4, nullptr, /*graphs=*/false);
  ASSERT_EQ(local.numbers.size(), 8u);
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    restart(seed);
    // The collectives are in the graphs, and the GPUs in `processes` processes.
    auto processes = static_cast<int64_t>(seed);
    Training nccl = train(plan, runtime::createCudaBackend(), 4,
                          runtime::testing::ncclFabric(processes), /*graphs=*/seed > 1);
    ASSERT_EQ(nccl.bytes() == local.bytes(), true) << "DTC_CUDA_STANDIN_SEED=" << seed;
  }
}

/// Devices that share one GPU wait for each other on it: a call that waits for all that it does, by
/// any of them and after the first collective of any, is a violation.
TEST_P(NcclEquivalence, DevicesThatShareAGpuHaveTheSameBits) {
  auto plan = compile(GetParam());
  ASSERT_TRUE(plan);
  standin::reset();
  Training local = train(plan, runtime::createCudaBackend(), 3, nullptr, /*graphs=*/false);
  ASSERT_EQ(local.numbers.size(), 6u);
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    standin::Settings settings;
    settings.devices = 1;
    settings.seed = seed;
    settings.addsInRankOrder = true;
    standin::reset(settings);
    // Processes have contexts of their own, which the stand-in does not: there, one that connects
    // messages would wait for another one's.
    bool hasPipeline = std::string(GetParam().strategy).find("pp=") != std::string::npos;
    int64_t processes = seed > 2 && !hasPipeline ? 2 : 1;
    Training nccl = train(plan, runtime::createCudaBackend(), 3,
                          runtime::testing::ncclFabric(processes, {}, {.sharesGpus = true}),
                          /*graphs=*/seed % 2 == 0);
    ASSERT_EQ(nccl.bytes() == local.bytes(), true) << "DTC_CUDA_STANDIN_SEED=" << seed;
  }
}

/// In the order of the ring, the bits depend neither on the order of the queues nor on the
/// processes nor on graphs. The sums of two orders differ by rounding: in f64 far below any error.
TEST_P(RingEquivalence, GivesTheSameBits) {
  const Case &which = GetParam();
  auto plan = compile(which);
  ASSERT_TRUE(plan);
  restart(1);
  Training inOrder = train(plan, runtime::createCudaBackend(), 2, runtime::testing::ncclFabric(1),
                           /*graphs=*/false);
  ASSERT_EQ(inOrder.numbers.size(), 4u);
  std::string first;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    restart(seed, /*inRankOrder=*/false);
    Training ring =
        train(plan, runtime::createCudaBackend(), 2,
              runtime::testing::ncclFabric(static_cast<int64_t>(seed)), /*graphs=*/seed > 1);
    if (seed == 1)
      first = ring.bytes();
    ASSERT_EQ(ring.bytes() == first, true) << "DTC_CUDA_STANDIN_SEED=" << seed;
    ASSERT_EQ(ring.numbers.size(), inOrder.numbers.size());
    for (size_t i = 0; i < ring.numbers.size(); ++i)
      EXPECT_NEAR(ring.numbers[i], inOrder.numbers[i], 1e-9 * std::abs(inOrder.numbers[i]));
  }
  EXPECT_FALSE(first == inOrder.bytes()) << "the order of the sums decides about no bit";
}

const Case kRingCases[] = {
    {"MlpData", "mlp.mlir", "dp=4", true},
    {"MlpZero3", "mlp.mlir", "fsdp=4 zero=3", true},
    {"MlpTensor", "mlp.mlir", "tp=4", true},
};
INSTANTIATE_TEST_SUITE_P(Devices, RingEquivalence, testing::ValuesIn(kRingCases),
                         [](const auto &info) { return std::string(info.param.name); });

const Case kNcclCases[] = {
    {"MlpData", "mlp.mlir", "dp=2"},
    {"Gpt2DataZero", kGpt2, "dp=2,tp=2 zero=2"},
    {"LlamaContextRing", kLlama, "dp=2,cp=2 zero=1 context_exchange=ring"},
    {"LlamaContextGather", kLlama, "cp=4 context_exchange=all-gather"},
    {"LlamaContextSwap", kLlama, "cp=2 m=2 context_exchange=all-to-all"},
    {"Gpt2Fsdp", kGpt2, "fsdp=4 zero=3"},
    {"Gpt2Bf16", kGpt2, "dp=2,tp=2 zero=1 dtype=bf16"},
    {"Gpt2Sequence", kGpt2, "dp=2,tp=2 sp"},
    {"Gpt2Pipeline", kGpt2, "pp=2 m=4 schedule=zb-h1"},
    {"LlamaAllAxes", kLlama, "dp=2,tp=2,pp=2 m=2"},
};
INSTANTIATE_TEST_SUITE_P(Devices, NcclEquivalence, testing::ValuesIn(kNcclCases),
                         [](const auto &info) { return std::string(info.param.name); });

/// A session for steps on inputs of their own, with learning rates for all of them. Null where the
/// GPU fails before the first.
static std::unique_ptr<runtime::Session> openForSteps(const std::shared_ptr<const plan::Plan> &plan,
                                                      int steps, size_t stepsInFlight) {
  auto session = runtime::Session::create(plan, runtime::createCudaBackend(),
                                          {.stallTimeout = 0, .stepsInFlight = stepsInFlight});
  if (!session || (*session)->initializeStates(7) ||
      (*session)->setLearningRates(0, std::vector<double>(steps, 1e-2)))
    return nullptr;
  return std::move(*session);
}

/// Runs the steps with as many in flight as there may be, and calls finished() after each. The
/// error of the first that fails.
template <typename Finished>
static MaybeError runSteps(runtime::Session &session, int steps, size_t stepsInFlight,
                           const Finished &finished) {
  for (int step = 1; step <= steps || session.stepsInFlight() > 0; ++step) {
    if (step <= steps) {
      EXPECT_FALSE(setRandomInputs(session, step));
      if (MaybeError error = session.startStep())
        return error;
      if (session.stepsInFlight() < stepsInFlight)
        continue;
    }
    if (MaybeError error = session.finishStep())
      return error;
    finished();
  }
  return {};
}

static Training trainOnCuda(const std::shared_ptr<const plan::Plan> &plan, int steps,
                            size_t stepsInFlight) {
  Training run;
  auto session = openForSteps(plan, steps, stepsInFlight);
  EXPECT_TRUE(session);
  MaybeError error = runSteps(*session, steps, stepsInFlight, [&] {
    for (const char *output : {"loss", "grad_norm"})
      run.numbers.push_back(element(*session->getOutput(output)));
    run.numbers.push_back(*stepStateOf(*session, plan::State::APPLIED_STEPS));
  });
  EXPECT_FALSE(error) << error->message;
  for (const plan::State *state : distinctStates(*plan))
    run.states.emplace(state->name(), *session->getState(state->name()));
  return run;
}

TEST(DeviceOrders, StepsInFlightHaveTheBitsOfStepsOneByOne) {
  for (int which : {0, 1}) {
    auto plan = compile(kCases[which]);
    ASSERT_TRUE(plan);
    standin::reset();
    Training expected = trainOnCuda(plan, 4, /*stepsInFlight=*/1);
    ASSERT_EQ(expected.numbers.size(), 12u);
    EXPECT_EQ(expected.numbers.back(), 4);
    for (uint64_t seed = 1; seed <= 30; ++seed) {
      standin::Settings settings;
      settings.seed = seed;
      standin::reset(settings);
      ASSERT_EQ(trainOnCuda(plan, 4, /*stepsInFlight=*/2).bytes() == expected.bytes(), true)
          << "DTC_CUDA_STANDIN_SEED=" << seed;
    }
    standin::reset();
  }
}

TEST(DeviceFaults, ALostDeviceFailsTheStepThatItIsIn) {
  constexpr int kNumSteps = 3;
  auto plan = compile(kCases[0]);
  ASSERT_TRUE(plan);
  standin::reset();
  // The work that the GPU has done at the end of each step; all of it is in one queue.
  std::vector<uint64_t> ends;
  {
    auto session = openForSteps(plan, kNumSteps, 1);
    ASSERT_TRUE(session);
    ends.push_back(standin::counts().work);
    EXPECT_FALSE(runSteps(*session, kNumSteps, 1, [&] { ends.push_back(standin::counts().work); }));
  }
  for (int failing = 1; failing <= kNumSteps; ++failing) {
    uint64_t begin = ends[failing - 1], end = ends[failing];
    ASSERT_GT(end, begin + 20);
    for (uint64_t i = begin; i < end; i += i + 3 < end ? 3 : 1) {
      standin::reset();
      standin::failWork(i, cudaErrorIllegalAddress);
      auto session = openForSteps(plan, kNumSteps, 2);
      ASSERT_TRUE(session);
      int finished = 0;
      MaybeError error = runSteps(*session, kNumSteps, 2, [&] { ++finished; });
      ASSERT_TRUE(error) << "work " << i;
      EXPECT_NE(error->message.find("cuda 0"), std::string::npos) << error->message;
      EXPECT_EQ(finished, failing - 1) << "work " << i << " of steps that end at " << end;
    }
  }
  standin::reset();
}

/// The result of two steps, on a GPU that may fail.
static MaybeError trainTwoSteps(const std::shared_ptr<const plan::Plan> &plan) {
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
    MaybeError error = trainTwoSteps(plan);
    ASSERT_TRUE(error) << "work " << i;
    EXPECT_NE(error->message.find("cuda 0"), std::string::npos) << error->message;
  }
  standin::reset();
}

/// Devices that wait for one that is lost are woken, over the host and over NCCL.
TEST(DeviceFaults, OneLostDeviceEndsTheRunOfAll) {
  for (const char *strategy : {"dp=2", "pp=2 m=2"}) {
    auto plan = compile({"Gpt2", kGpt2, strategy});
    ASSERT_TRUE(plan);
    for (const runtime::OpenFabric &fabric :
         {runtime::OpenFabric(), runtime::testing::ncclFabric()}) {
      uint64_t work = 0;
      for (uint64_t i : {uint64_t(0), uint64_t(1), uint64_t(2), uint64_t(3)}) {
        standin::reset();
        if (i > 0) // the first run counts
          standin::failWork(i * work / 4, cudaErrorLaunchFailure);
        auto session = runtime::Session::create(plan, runtime::createCudaBackend(),
                                                {.openFabric = fabric, .stallTimeout = 0});
        ASSERT_TRUE(session) << session.error().message;
        MaybeError error = (*session)->initializeStates(7);
        for (int step = 1; step <= 3 && !error; ++step) {
          error = setRandomInputs(**session, 1);
          if (!error)
            error = trainStep(**session, 1e-2);
        }
        if (i == 0)
          work = standin::counts().work;
        EXPECT_EQ(error.has_value(), i > 0) << strategy << ", work " << i * work / 4;
        if (error)
          EXPECT_NE(error->message.find("unspecified launch failure"), std::string::npos)
              << error->message;
      }
    }
  }
  standin::reset();
}

TEST(DeviceFaults, TooLittleMemoryIsFoundBeforeAnyIsTaken) {
  auto plan = compile(kCases[0]);
  ASSERT_TRUE(plan);
  standin::Settings settings;
  settings.memoryBytes = plan->programs(0).arena_bytes() / 2;
  standin::reset(settings);
  standin::failCall(0, cudaErrorUnknown, "cudaMalloc"); // which is not called
  auto session = runtime::Session::create(plan, runtime::createCudaBackend());
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().message.find("the plan needs "), 0u) << session.error().message;
  EXPECT_NE(session.error().message.find("but cuda 0 has "), std::string::npos)
      << session.error().message;
  EXPECT_EQ(standin::counts().allocations, 0u);
  standin::reset();
}

/// Opens a plan of four devices with so much memory, over a NCCL that would take `channels`
/// channels. The error, or nothing.
static std::string openOverNccl(const std::shared_ptr<const plan::Plan> &plan, size_t mebibytes,
                                int channels, runtime::NcclOptions options = {}) {
  standin::Settings settings;
  settings.devices = 4;
  settings.memoryBytes = mebibytes << 20;
  settings.ncclChannels = channels;
  standin::reset(settings);
  auto session = runtime::Session::create(
      plan, runtime::createCudaBackend(),
      {.openFabric = runtime::testing::ncclFabric(1, {}, options), .stallTimeout = 0});
  return session ? "" : session.error().message;
}

/// The memory of communicators is estimated before anything is allocated. Where they take more,
/// they are made before the first step.
TEST(DeviceFaults, TooLittleMemoryForCommunicatorsIsFoundBeforeTheFirstStep) {
  auto plan = compile({"Gpt2", kGpt2, "dp=2,tp=2"});
  ASSERT_TRUE(plan);
  std::string error = openOverNccl(plan, 1024, /*channels=*/24);
  for (const char *part :
       {"and what connects them ", "communicators of NCCL with up to 24 channels", "but cuda ",
        "fewer channels (--nccl-channels)"})
    EXPECT_NE(error.find(part), std::string::npos) << error;
  EXPECT_EQ(standin::counts().allocations, 0u);
  EXPECT_EQ(openOverNccl(plan, 1024, /*channels=*/24, {.mostChannels = 1}), "");
  // A NCCL that takes more than the estimate: 1.1 GiB of each communicator.
  EXPECT_EQ(openOverNccl(plan, 2560, /*channels=*/24), "");
  error = openOverNccl(plan, 2560, /*channels=*/128);
  for (const char *part : {"NCCL cannot all_reduce", "out of memory", "of which communicators"})
    EXPECT_NE(error.find(part), std::string::npos) << error;
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
    MaybeError error = trainTwoSteps(plan);
    errors += error.has_value();
    if (error)
      EXPECT_TRUE(error->message.find("out of memory") != std::string::npos ||
                  error->message.find("ALLOC_FAILED") != std::string::npos)
          << error->message;
    standin::Counts left = standin::counts();
    // The resource that the failed call should have freed, and those that belong to it.
    EXPECT_LE(left.allocations + left.streams + left.events + left.graphs, 2u) << "call " << i;
  }
  EXPECT_GT(errors, 20);
  standin::reset();
}

} // namespace deviceEquivalenceTest
