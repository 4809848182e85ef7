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

#include "runtime/fabrics/processes/Processes.h"
#include "test/lib/plans/Expect.h"
#include "test/runtime/fabrics/Network.h"

#include <chrono>
#include <fmt/format.h>
#include <future>
#include <gtest/gtest.h>
#include <thread>

namespace ncclFabricTest {

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
    settings.patience = std::chrono::seconds(5);
    standin::reset(settings);
  }
  void TearDown() override { standin::reset(); }

  static FabricUnderTest tested(int64_t firstGpu = 0) {
    return {ncclFabric(),
            [firstGpu, backend = std::shared_ptr(createCudaBackend())](int64_t device) {
              return std::move(*backend->openDevice(device + firstGpu));
            }};
  }
};

TEST_F(NcclFabricTest, EachDeviceNeedsAGpu) {
  restart(2);
  EXPECT_OK(ncclFabric()(Mesh({{"a", 2, false}})));
  EXPECT_ERROR(ncclFabric()(Mesh({{"a", 3, false}})),
               "3 devices of the plan are in this process, which sees 2 GPUs");
}

TEST_F(NcclFabricTest, DevicesShareAGpuWhereNcclCanAndTheyMay) {
  restart(1);
  Mesh mesh({{"a", 3, false}});
  EXPECT_ERROR(ncclFabric()(mesh), "for tests with --share-gpu");
  auto shared = ncclFabric(1, {}, {.sharesGpus = true})(mesh);
  ASSERT_TRUE(shared);
  EXPECT_TRUE((*shared)->sharesGpus());
  EXPECT_OK(ncclFabric(3, {}, {.sharesGpus = true})(mesh));
  standin::Settings settings;
  settings.ncclVersion = 22803;
  standin::reset(settings);
  EXPECT_ERROR(ncclFabric(1, {}, {.sharesGpus = true})(mesh),
               "NCCL 2.28.3 connects no devices that share a GPU, which --share-gpu asks for; "
               "expected NCCL 2.30 or newer");
}

TEST_F(NcclFabricTest, AGroupThatWasNotPreparedIsAnError) {
  restart(2);
  Network network(Mesh({{"a", 2, false}}), tested());
  auto group = *network.ends[0]->openGroup({"a"});
  EXPECT_OK(network.fabric->connect());
  CollectiveSpec spec = makeSpec(CollectiveKind::AllReduce, {DType::F32, {4}});
  spec.members = 2;
  CollectiveOperands operands;
  EXPECT_ERROR(network.ends[0]->enqueue(*network.queues[0], group, {&spec, 1}, {&operands, 1}),
               "all_reduce: the group was not prepared");
}

TEST_F(NcclFabricTest, EachProcessNeedsGpusOfItsOwn) {
  Mesh mesh({{"a", 4, false}});
  restart(4);
  EXPECT_OK(ncclFabric(2)(mesh));
  EXPECT_OK(ncclFabric(3)(mesh));
  restart(2); // devices 2 and 3 have the GPUs of devices 0 and 1
  EXPECT_ERROR(ncclFabric(2)(mesh),
               fmt::format("process 0 on {0} and process 1 on {0} have the same GPU, "
                           "GPU-01000000-0000-0000-0000-000000000000",
                           hostName()));
  restart(1);
  EXPECT_ERROR(ncclFabric(3)(mesh),
               fmt::format("process 0 on {}: 2 devices of the plan are in this process, which sees "
                           "1 GPU",
                           hostName()));
  std::vector<std::shared_ptr<Messages>> messages = openThreadMessages(2);
  EXPECT_ERROR(openNcclFabric(Mesh({{"a", 1, false}}), messages.front()),
               "the plan is for 1 device, but there are 2 processes");
}

TEST_F(NcclFabricTest, ProcessesThatOpenDifferentGroupsAreTold) {
  restart(4);
  Mesh mesh({{"a", 2, false}, {"b", 2, false}});
  std::vector<std::shared_ptr<Messages>> messages = openThreadMessages(2);
  auto backend = createCudaBackend();
  auto run = [&](size_t process, const Axes &axes) {
    auto fabric = std::move(*openNcclFabric(mesh, messages[process]));
    std::vector<std::unique_ptr<Device>> devices;
    std::vector<std::unique_ptr<Queue>> queues;
    std::vector<std::unique_ptr<Communicator>> ends;
    for (int64_t device : fabric->devices()) {
      devices.push_back(std::move(*backend->openDevice(device)));
      queues.push_back(std::move(*devices.back()->openQueue(QueueKind::Compute)));
      ends.push_back(std::move(*fabric->openCommunicator(device, /*lane=*/0, *devices.back())));
      EXPECT_OK(ends.back()->prepare(*queues.back(), *ends.back()->openGroup(axes), {}));
    }
    MaybeError error = fabric->connect();
    if (error)
      fabric->abort(*error);
    return messageOf(error);
  };
  auto first = std::async(std::launch::async, [&] { return run(0, {"a"}); });
  auto second = std::async(std::launch::async, [&] { return run(1, {"a", "b"}); });
  EXPECT_TRUE(contains(second.get(), "process 0 connects another group than process 1, where axes "
                                     "[a, b], devices [0, 1, 2, 3] is next"));
  EXPECT_TRUE(contains(first.get(), "process 0 connects another group"));
}

/// Three processes of four devices: in the order in which each has its own, one would wait for the
/// group of all while another waits for one of two.
TEST_F(NcclFabricTest, ProcessesConnectInOneOrder) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    restart(4, seed);
    ThreadMessagesOptions options;
    options.seed = seed;
    Network network(Mesh({{"a", 2, false}, {"b", 2, false}}),
                    {ncclFabric(3, options), tested().openDevice});
    for (size_t device = 0; device < network.ends.size(); ++device)
      for (const Axes &axes : {Axes{"b"}, Axes{"a"}, Axes{"b", "a"}, Axes{"a", "b"}})
        EXPECT_OK(network.ends[device]->prepare(*network.queues[device],
                                                *network.ends[device]->openGroup(axes), {}));
    EXPECT_OK(network.fabric->connect());
  }
}

TEST_F(NcclFabricTest, ADeviceHasTheGpuOfItsNumber) {
  restart(3);
  Network network(Mesh({{"a", 2, false}}), tested(/*firstGpu=*/1));
  (void)network.open({"a"});
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
  (void)network.open({"a"});
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
  (void)network.open({"a"});
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
  while (!error) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    error = network.queues[0]->finish();
  }
  EXPECT_ERROR(error, "another device failed: NCCL cannot go on; call 1, all_reduce, was the last, "
                      "axes [a], devices [0, 1], rank 0 on cuda 0");
}

TEST_F(NcclFabricTest, AStallIsEndedByAnAbort) {
  restart(2);
  Network network(Mesh({{"a", 2, false}}), tested());
  (void)network.open({"a"});
  CollectiveSpec spec = makeSpec(CollectiveKind::AllReduce, {DType::F32, {4}});
  spec.members = 2;
  std::vector<float> values(4);
  auto stalled = std::async(std::launch::async, [&] {
    return messageOf(network.run(0, 0, spec, values.data(), values.data()));
  });
  network.fabric->abort(Error{"nothing has moved for 60 s"});
  EXPECT_TRUE(contains(stalled.get(), "another device failed: nothing has moved for 60 s"));
}

/// The queue fails before NCCL ends the message, which writes to no result of the wait then.
TEST_F(NcclFabricTest, AnAbortIsTheErrorOfAResultThatAQueueWaitsFor) {
  for (int run = 0; run < 20; ++run) {
    restart(2);
    auto fabric = std::move(*ncclFabric()(Mesh({{"a", 2, false}})));
    auto backend = createCudaBackend();
    auto device = std::move(*backend->openDevice(1));
    auto end = std::move(*fabric->openTransfers(1, *device));
    auto other = std::move(*backend->openDevice(0));
    auto otherEnd = std::move(*fabric->openTransfers(0, *other));
    auto queue = std::move(*device->openQueue(QueueKind::Compute));
    EXPECT_OK(end->prepare(0, /*sends=*/false));
    EXPECT_OK(otherEnd->prepare(1, /*sends=*/true));
    EXPECT_OK(fabric->connect());
    auto memory = std::move(*device->allocate(16));
    std::vector<TransferTensor> tensors = {{memory->data(), 16}};
    auto ticket = end->start(*queue, 0, tensors, /*sends=*/false);
    ASSERT_TRUE(ticket);
    auto result = std::make_unique<TransferResult>();
    EXPECT_OK(end->enqueueWait(*queue, *ticket, *result));
    fabric->abort(Error{"no more power"});
    EXPECT_ERROR(queue->finish(), "another device failed: no more power");
    EXPECT_EQ(messageOf(result->error), "another device failed: no more power");
    result.reset();
    end->drain();
    queue.reset();
  }
}

/// The graphs of a device live longer than its thread's work, which the session waits for.
TEST_F(NcclFabricTest, AnAbortDoesNotWaitForGraphs) {
  restart(2);
  Network network(Mesh({{"a", 2, false}}), tested());
  (void)network.open({"a"});
  CollectiveSpec spec = makeSpec(CollectiveKind::AllReduce, {DType::F32, {4}});
  spec.members = 2;
  std::vector<CollectiveSpec> specs = {spec};
  std::vector<std::unique_ptr<DeviceMemory>> memory(2);
  std::vector<std::unique_ptr<Graph>> graphs(2);
  auto prepare = [&](size_t device) -> MaybeError {
    memory[device] = std::move(*network.devices[device]->allocate(16));
    std::vector<CollectiveOperands> operands = {{memory[device]->data(), memory[device]->data()}};
    Communicator &end = *network.ends[device];
    Queue &queue = *network.queues[device];
    EXPECT_OK(queue.beginCapture());
    EXPECT_OK(end.enqueue(queue, 0, specs, operands));
    graphs[device] = std::move(*queue.endCapture());
    return queue.finish();
  };
  EXPECT_OK(network.threads.run(prepare));
  // Device 0 waits for device 1, which does not come.
  std::promise<void> waits;
  MaybeError error = network.threads.run([&](size_t device) -> MaybeError {
    if (device == 1) {
      waits.get_future().wait();
      return Error{"a kernel failed"};
    }
    EXPECT_OK(network.queues[0]->enqueue(*graphs[0]));
    waits.set_value();
    return network.queues[0]->finish();
  });
  EXPECT_ERROR(error, "a kernel failed");
  EXPECT_ERROR(network.queues[0]->finish(), "another device failed: ");
}

/// One that is behind another one in a queue ends when both are told to.
TEST_F(NcclFabricTest, AnAbortEndsCollectivesOfSeveralGroups) {
  restart(4);
  Network network(Mesh({{"a", 2, false}, {"b", 2, false}}), tested());
  std::vector<Communicator::Group> groups = {network.open({"a"}), network.open({"b"})};
  CollectiveSpec spec = makeSpec(CollectiveKind::AllReduce, {DType::F32, {4}});
  spec.members = 2;
  std::vector<CollectiveSpec> specs = {spec};
  // The first collective of a group may wait for the device.
  for (const Axes &axes : {Axes{"a"}, Axes{"b"}})
    (void)network.run(spec, axes, randomInputs<float>(network.mesh, spec.input, 1));
  std::vector<std::unique_ptr<DeviceMemory>> memory;
  // Whichever communicator is ended first, one of the devices has its kernel behind the other's.
  for (size_t device : {0, 3}) {
    memory.push_back(take(network.devices[device]->allocate(16)));
    std::vector<CollectiveOperands> operands = {{memory.back()->data(), memory.back()->data()}};
    for (size_t i : {0, 1})
      EXPECT_OK(network.ends[device]->enqueue(*network.queues[device],
                                              groups[device == 0 ? i : 1 - i], specs, operands));
  }
  network.fabric->abort(Error{"a kernel failed"});
  for (size_t device : {0, 3})
    EXPECT_ERROR(network.queues[device]->finish(), "another device failed: a kernel failed");
  network.queues.clear(); // each waits for its stream before the memory is freed
}

TEST_F(NcclFabricTest, WhatIsPreparedForNeedsNoMoreMemory) {
  restart(2);
  Network network(Mesh({{"a", 2, false}}), tested());
  TensorType type{DType::BF16, {64, 8}}; // sent as f32
  CollectiveSpec spec = makeSpec(CollectiveKind::AllReduce, type);
  spec.members = 2;
  std::vector<CollectiveSpec> small{spec}, large{spec, spec};
  Communicator::Group group = network.open({"a"});
  std::vector<HostTensor> inputs = randomInputs<uint16_t>(network.mesh, type, 1), outputs = inputs;
  for (size_t device : {0, 1}) {
    for (const std::vector<CollectiveSpec> &specs : {small, large})
      ASSERT_OK(network.ends[device]->prepare(*network.queues[device], group, specs));
    for (HostTensor *tensor : {&inputs[device], &outputs[device]})
      network.tensors[device].place(tensor->bytes.data(), type.numBytes());
  }
  uint64_t before = standin::counts().allocations;
  for (const std::vector<CollectiveSpec> &specs : {small, large})
    EXPECT_OK(network.threads.run([&](size_t device) {
      std::vector<CollectiveOperands> operands(
          specs.size(), {inputs[device].bytes.data(), outputs[device].bytes.data()});
      return network.run(device, group, specs, operands);
    }));
  EXPECT_EQ(standin::counts().allocations, before);
}

TEST_F(NcclFabricTest, NothingIsLeft) {
  for (int64_t processes : {1, 3}) {
    restart(4);
    Network network(Mesh({{"a", 4, false}}), {ncclFabric(processes), tested().openDevice});
    TensorType type{DType::F32, {8, 8}};
    auto inputs = randomInputs<float>(network.mesh, type, 1);
    network.run(makeSpec(CollectiveKind::AllGather, type, 1), {"a"}, inputs);
  }
  standin::Counts left = standin::counts();
  EXPECT_EQ(left.allocations + left.streams + left.events, 0u);
}

} // namespace

} // namespace ncclFabricTest
