//===- WaitsTest.cpp - Calls that may wait for a device -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each call that may wait for all that a GPU does is a violation while a collective waits there for
// another member, and none before and after.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/StandinFixture.h"

#include <cublasLt.h>
#include <functional>
#include <nccl.h>

namespace dtc::standin {

namespace {

void setTo(float *at, float value) { *at = value; }
void setToo(float *at, float value) { *at = value; }

class WaitsTest : public StandinFixture {
protected:
  void SetUp() override {
    StandinFixture::SetUp();
    Settings settings;
    settings.patience = std::chrono::milliseconds(50);
    restart(settings);
    connect(first);
    connect(second);
    for (int device : {0, 1}) {
      use(device);
      streams[device] = openStream();
      values[device] = onDevice<float>(4);
      ASSERT_CUDA(cudaMemsetAsync(values[device], 0, 4 * sizeof(float), streams[device]));
      ASSERT_CUDA(cudaStreamSynchronize(streams[device]));
    }
    // The first collective of a communicator sets it up.
    add(0, first);
    add(1, first);
    finish();
    collect();
  }
  void TearDown() override {
    for (ncclComm_t *communicators : {first, second})
      for (int rank : {0, 1})
        (void)ncclCommAbort(communicators[rank]);
    StandinFixture::TearDown();
  }

  static void use(int device) { ASSERT_CUDA(cudaSetDevice(device)); }
  static void settle(ncclComm_t communicator) {
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress)
      ASSERT_EQ(ncclCommGetAsyncError(communicator, &state), ncclSuccess);
  }
  static void connect(ncclComm_t *communicators) {
    ncclUniqueId id;
    ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclGroupStart();
    for (int rank : {0, 1}) {
      use(rank);
      ASSERT_EQ(ncclCommInitRankConfig(&communicators[rank], 2, id, rank, &config), ncclSuccess);
    }
    ncclGroupEnd();
    for (int rank : {0, 1})
      settle(communicators[rank]);
  }
  void add(int rank, ncclComm_t *communicators) {
    use(rank);
    (void)ncclAllReduce(values[rank], values[rank], 4, ncclFloat32, ncclSum, communicators[rank],
                        streams[rank]);
    settle(communicators[rank]);
  }
  void finish() {
    for (int device : {0, 1}) {
      use(device);
      ASSERT_CUDA(cudaStreamSynchronize(streams[device]));
    }
  }
  cudaGraphExec_t instantiate() {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    EXPECT_CUDA(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal));
    EXPECT_CUDA(cudaMemsetAsync(values[0], 0, 4, streams[0]));
    EXPECT_CUDA(cudaStreamEndCapture(streams[0], &graph));
    (void)cudaGraphInstantiate(&executable, graph, 0);
    EXPECT_CUDA(cudaGraphDestroy(graph));
    return executable;
  }

  /// Calls it on device 0 while rank 1 has not come, then on device 0 when it has.
  void expectWaits(const std::string &name, const std::function<void()> &call,
                   const std::function<void()> &again) {
    add(0, first);
    use(0);
    call();
    expectViolation(name);
    EXPECT_EQ(violations.size(), 0u);
    add(1, first);
    finish();
    use(0);
    again();
    EXPECT_EQ(violations.size(), 0u) << ::testing::PrintToString(violations);
  }
  void expectWaits(const std::string &name, const std::function<void()> &call) {
    expectWaits(name, call, call);
  }

  ncclComm_t first[2] = {}, second[2] = {};
  cudaStream_t streams[2] = {};
  float *values[2] = {};
};

TEST_F(WaitsTest, Memory) {
  void *memory = nullptr, *host = nullptr;
  ASSERT_CUDA(cudaMalloc(&memory, 256));
  ASSERT_CUDA(cudaHostAlloc(&host, 256, 0));
  void *other = nullptr;
  expectWaits("cudaMalloc, by thread", [&] { (void)cudaMalloc(&other, 256); });
  expectWaits("cudaHostAlloc, by thread", [&] { (void)cudaHostAlloc(&other, 256, 0); });
  expectWaits("cudaFree, by thread", [&] { (void)cudaFree(memory); });
  expectWaits("cudaFreeHost, by thread", [&] { (void)cudaFreeHost(host); });
}

TEST_F(WaitsTest, TheFirstLaunchOfAKernel) {
  expectWaits(
      "the first launch of kernel",
      [&] { (void)launch(streams[0], dim3(1), dim3(1), setTo, values[0], 1.0f); },
      [&] { EXPECT_CUDA(launch(streams[0], dim3(1), dim3(1), setTo, values[0], 1.0f)); });
  // Once it is loaded it does not wait.
  cudaFuncAttributes attributes;
  ASSERT_CUDA(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void *>(setToo)));
  add(0, first);
  use(0);
  EXPECT_CUDA(launch(streams[0], dim3(1), dim3(1), setToo, values[0], 1.0f));
  EXPECT_EQ(violations.size(), 0u);
  add(1, first);
  finish();
  // On the other device it is loaded for itself.
  add(1, first);
  use(1);
  (void)launch(streams[1], dim3(1), dim3(1), setToo, values[1], 1.0f);
  expectViolation("which loads its code");
  add(0, first);
  finish();
}

TEST_F(WaitsTest, Libraries) {
  cublasLtHandle_t handle = nullptr;
  expectWaits("cublasLtCreate", [&] { (void)cublasLtCreate(&handle); });
  expectWaits(
      "cublasLtDestroy", [&] { (void)cublasLtDestroy(handle); }, [] {});
}

TEST_F(WaitsTest, Graphs) {
  cudaGraphExec_t early = instantiate(), unlaunched = instantiate(), executable = nullptr;
  expectWaits("cudaGraphInstantiate", [&] { executable = instantiate(); });
  expectWaits("cudaGraphUpload", [&] { (void)cudaGraphUpload(executable, streams[0]); });
  expectWaits("the first launch of a graph that was not uploaded",
              [&] { (void)cudaGraphLaunch(unlaunched, streams[0]); });
  expectWaits(
      "cudaGraphExecDestroy", [&] { (void)cudaGraphExecDestroy(early); }, [] {});
  // One that was uploaded does not wait.
  add(0, first);
  use(0);
  EXPECT_CUDA(cudaGraphLaunch(executable, streams[0]));
  EXPECT_EQ(violations.size(), 0u);
  add(1, first);
  finish();
}

TEST_F(WaitsTest, CommunicatorsAtTheirFirstCall) {
  add(0, first);
  add(0, second);
  expectViolation("the first ncclAllReduce");
  add(1, first);
  ASSERT_CUDA(cudaStreamSynchronize(streams[1]));
  add(1, second);
  finish();
  add(0, first);
  add(0, second);
  EXPECT_EQ(violations.size(), 0u);
  add(1, first);
  add(1, second);
  finish();
}

TEST_F(WaitsTest, TheDeviceAndNewCommunicators) {
  expectWaits("cudaDeviceSynchronize", [] { (void)cudaDeviceSynchronize(); });
  ncclComm_t third[2] = {};
  add(0, first);
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  use(0);
  (void)ncclCommInitRankConfig(&third[0], 2, id, 0, &config);
  expectViolation("ncclCommInitRankConfig");
  add(1, first);
  finish();
  connect(third);
  EXPECT_EQ(violations.size(), 0u) << ::testing::PrintToString(violations);
  for (ncclComm_t communicator : third)
    EXPECT_EQ(ncclCommAbort(communicator), ncclSuccess);
}

/// Of the first message too.
TEST_F(WaitsTest, MessagesAtTheirFirstCall) {
  add(0, first);
  use(0);
  (void)ncclSend(values[0], 1, ncclFloat32, 1, second[0], streams[0]);
  settle(second[0]);
  expectViolation("the first ncclSend");
  add(1, first);
  use(1);
  ASSERT_CUDA(cudaStreamSynchronize(streams[1]));
  (void)ncclRecv(values[1], 1, ncclFloat32, 0, second[1], streams[1]);
  settle(second[1]);
  finish();
  EXPECT_EQ(violations.size(), 0u) << ::testing::PrintToString(violations);
}

TEST_F(WaitsTest, LaunchesWaitForAPlaceInTheStream) {
  Settings settings;
  settings.queueLength = 8;
  restart(settings);
  cudaStream_t stream = openStream();
  auto *value = onDevice<float>(1);
  for (int i = 0; i < 100; ++i)
    ASSERT_CUDA(cudaMemsetAsync(value, 0, sizeof(float), stream));
  for (int i = 0; i < 100; ++i)
    ASSERT_CUDA(launch(stream, dim3(1), dim3(1), setTo, value, float(i)));
  EXPECT_GE(counts().work, 150u);
  ASSERT_CUDA(cudaStreamSynchronize(stream));
}

} // namespace

} // namespace dtc::standin
