//===- NcclEquivalenceTest.cpp - Equivalence of GPUs that NCCL connects ---===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/CudaBackend.h"
#include "test/equivalence/DeviceTraining.h"
#include "test/lib/fabrics/NcclFabrics.h"
#include "test/standin/cuda/Standin.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ncclEquivalenceTest {

using namespace dtc;
using namespace dtc::test;
using namespace dtc::test::devices;

namespace {

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

} // namespace

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
    {"MixtralExperts", kMixtral, "dp=2,ep=2 zero=1"},
    {"MixtralExpertsRing", kMixtral, "ep=2,cp=2 m=2 context_exchange=ring"},
    {"Gpt2Fsdp", kGpt2, "fsdp=4 zero=3"},
    {"Gpt2Bf16", kGpt2, "dp=2,tp=2 zero=1 dtype=bf16"},
    {"Gpt2Sequence", kGpt2, "dp=2,tp=2 sp"},
    {"Gpt2Pipeline", kGpt2, "pp=2 m=4 schedule=zb-h1"},
    {"LlamaAllAxes", kLlama, "dp=2,tp=2,pp=2 m=2"},
};
INSTANTIATE_TEST_SUITE_P(Devices, NcclEquivalence, testing::ValuesIn(kNcclCases),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace ncclEquivalenceTest
