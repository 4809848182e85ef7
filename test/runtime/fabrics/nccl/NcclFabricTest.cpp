//===- NcclFabricTest.cpp - The NCCL fabric -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// On the stand-ins of CUDA and NCCL.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/nccl/NcclFabric.h"

#include "test/lib/plans/Expect.h"
#include "test/runtime/fabrics/Network.h"

#include <chrono>
#include <future>
#include <gtest/gtest.h>
#include <thread>

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;
namespace standin = dtc::standin;

namespace {

class NcclFabricTest : public ::testing::Test {
protected:
  void restart(int gpus, uint64_t seed = 1) {
    standin::Settings settings;
    settings.devices = gpus;
    settings.seed = seed;
    standin::reset(settings);
  }
  void TearDown() override { standin::reset(); }

  static FabricUnderTest tested(int64_t firstGpu = 0) {
    return {openNcclFabric,
            [firstGpu, backend = std::shared_ptr(createCudaBackend())](int64_t device) {
              return std::move(*backend->openDevice(device + firstGpu));
            }};
  }
};

TEST_F(NcclFabricTest, EachDeviceNeedsAGpu) {
  restart(2);
  EXPECT_OK(openNcclFabric(Mesh({{"a", 2, false}})));
  EXPECT_ERROR(openNcclFabric(Mesh({{"a", 3, false}})),
               "the plan is for 3 devices and this process sees 2 GPUs");
}

TEST_F(NcclFabricTest, ADeviceHasTheGpuOfItsNumber) {
  restart(3);
  Network network(Mesh({{"a", 2, false}}), tested(/*firstGpu=*/1));
  for (auto &end : network.ends)
    (void)end->openGroup({"a"});
  CollectiveSpec spec = makeSpec(CollectiveKind::AllReduce, {DType::F32, {4}});
  spec.members = 2;
  std::vector<std::vector<float>> data(2, std::vector<float>(4));
  MaybeError error = network.threads.run([&](size_t device) {
    return network.run(device, 0, spec, data[device].data(), data[device].data());
  });
  EXPECT_ERROR(error, "expected cuda");
}

TEST_F(NcclFabricTest, OrdersDoNotMatter) {
  Mesh mesh({{"a", 2, false}, {"b", 2, false}});
  std::vector<std::byte> expected;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    restart(4, seed);
    std::vector<std::byte> bytes;
    for (const CollectiveSpec &spec :
         {makeSpec(CollectiveKind::AllReduce, {DType::BF16, {3, 8}}),
          makeSpec(CollectiveKind::ReduceScatter, {DType::F32, {3, 8}}, 1),
          makeSpec(CollectiveKind::AllGather, {DType::F32, {3, 8}}, 1),
          makeSpec(CollectiveKind::AllToAll, {DType::F32, {4, 8}}, 0, 1)}) {
      auto inputs = randomInputs<float>(mesh, {DType::F32, spec.input.shape}, 3);
      for (HostTensor &input : inputs) {
        input.type = spec.input;
        input.bytes.resize(spec.input.numBytes());
      }
      for (const HostTensor &output : Network(mesh, tested()).run(spec, {"b", "a"}, inputs))
        bytes.insert(bytes.end(), output.bytes.begin(), output.bytes.end());
    }
    if (seed == 1)
      expected = bytes;
    ASSERT_TRUE(bytes == expected) << "DTC_CUDA_STANDIN_SEED=" << seed;
  }
}

TEST_F(NcclFabricTest, ACallThatNcclRefusesNamesWhoAndWhat) {
  restart(2);
  Network network(Mesh({{"a", 2, false}}), tested());
  for (auto &end : network.ends)
    (void)end->openGroup({"a"});
  CollectiveSpec spec = makeSpec(CollectiveKind::AllReduce, {DType::F32, {4}});
  spec.members = 2;
  std::vector<std::vector<float>> data(2, std::vector<float>(4));
  standin::failCall(0, cudaErrorInvalidValue, "ncclAllReduce");
  MaybeError error = network.threads.run([&](size_t device) {
    return network.run(device, 0, spec, data[device].data(), data[device].data());
  });
  EXPECT_ERROR(error, "NCCL cannot all_reduce, axes [a], devices [0, 1], rank ");
  EXPECT_ERROR(error, "unhandled cuda error");
}

TEST_F(NcclFabricTest, AnErrorThatComesLaterEndsTheRun) {
  restart(2);
  Network network(Mesh({{"a", 2, false}}), tested());
  for (auto &end : network.ends)
    (void)end->openGroup({"a"});
  CollectiveSpec spec = makeSpec(CollectiveKind::AllReduce, {DType::F32, {4}});
  spec.members = 2;
  std::vector<std::vector<float>> data(2, std::vector<float>(4));
  std::vector<CollectiveSpec> specs = {spec};
  auto enqueue = [&](size_t device) {
    void *place = network.tensors[device].place(data[device].data(), 16);
    EXPECT_OK(network.tensors[device].give(data[device].data(), 16));
    std::vector<CollectiveOperands> operands = {{place, place}};
    return network.ends[device]->enqueue(*network.queues[device], 0, specs, operands);
  };
  // GPU 1 is lost before it has given its part; GPU 0 finds nothing there.
  EXPECT_OK(enqueue(1));
  standin::loseDevice(1, cudaErrorLaunchFailure);
  EXPECT_OK(enqueue(0));
  MaybeError error = network.queues[0]->finish();
  for (int i = 0; i < 500 && !error; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    error = network.queues[0]->finish();
  }
  EXPECT_ERROR(error, "another device failed: NCCL cannot go on; call 1, all_reduce, was the last, "
                      "axes [a], devices [0, 1], rank 0 on cuda 0");
}

TEST_F(NcclFabricTest, AStallIsEndedByAnAbort) {
  restart(2);
  Network network(Mesh({{"a", 2, false}}), tested());
  for (auto &end : network.ends)
    (void)end->openGroup({"a"});
  CollectiveSpec spec = makeSpec(CollectiveKind::AllReduce, {DType::F32, {4}});
  spec.members = 2;
  std::vector<float> values(4);
  auto stalled = std::async(std::launch::async, [&] {
    return messageOf(network.run(0, 0, spec, values.data(), values.data()));
  });
  network.fabric->abort(Error{"nothing has moved for 60 s"});
  EXPECT_TRUE(contains(stalled.get(), "another device failed: nothing has moved for 60 s"));
}

TEST_F(NcclFabricTest, NothingIsLeft) {
  restart(4);
  {
    Network network(Mesh({{"a", 4, false}}), tested());
    TensorType type{DType::F32, {8, 8}};
    auto inputs = randomInputs<float>(network.mesh, type, 1);
    network.run(makeSpec(CollectiveKind::AllGather, type, 1), {"a"}, inputs);
  }
  standin::Counts left = standin::counts();
  EXPECT_EQ(left.allocations + left.streams + left.events, 0u);
}

} // namespace
