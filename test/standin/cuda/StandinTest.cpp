//===- StandinTest.cpp - Faults of the stand-in of CUDA ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/StandinFixture.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace dtc::standin {

namespace {

class StandinTest : public StandinFixture {};

__global__ void nothing() {}

/// A host function: holds its stream until the flag is set, so that no work fails while calls are
/// still being made.
void waitForFlag(void *flag) {
  while (!static_cast<std::atomic<bool> *>(flag)->load())
    std::this_thread::yield();
}

TEST_F(StandinTest, NoDevice) {
  Settings settings;
  settings.devices = 0;
  restart(settings);
  int count = 5;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  EXPECT_EQ(count, 0);
  void *data = nullptr;
  EXPECT_EQ(cudaMalloc(&data, 4), cudaErrorNoDevice);
}

TEST_F(StandinTest, Devices) {
  int number = -1, value = 0;
  EXPECT_CUDA(cudaGetDeviceCount(&number));
  EXPECT_EQ(number, 2);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
  EXPECT_CUDA(cudaSetDevice(1));
  EXPECT_CUDA(cudaGetDevice(&number));
  EXPECT_EQ(number, 1);
  cudaDeviceProp properties;
  EXPECT_CUDA(cudaGetDeviceProperties(&properties, 1));
  EXPECT_EQ(properties.warpSize, 32);
  EXPECT_CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 1));
  EXPECT_EQ(value, properties.multiProcessorCount);
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 2), cudaErrorInvalidDevice);
}

TEST_F(StandinTest, AThreadHasToChooseItsDevice) {
  collect();
  cudaEvent_t event = openEvent();
  std::jthread([&] {
    EXPECT_EQ(cudaEventQuery(event), cudaErrorNotPermitted);
    EXPECT_CUDA(cudaSetDevice(1));
    EXPECT_CUDA(cudaEventQuery(event));
  }).join();
  expectViolation("cudaEventQuery is called by a thread that has not called cudaSetDevice");
  EXPECT_CUDA(cudaEventDestroy(event));
}

TEST_F(StandinTest, CallsFailOnce) {
  void *data = nullptr;
  failCall(1, cudaErrorUnknown);
  EXPECT_CUDA(cudaMalloc(&data, 4));
  EXPECT_EQ(cudaFree(data), cudaErrorUnknown);
  EXPECT_EQ(counts().allocations, 1u); // the call did nothing
  EXPECT_CUDA(cudaFree(data));
  failCall(1, cudaErrorMemoryAllocation, "cudaMalloc");
  size_t bytes;
  EXPECT_CUDA(cudaMemGetInfo(&bytes, &bytes));
  EXPECT_CUDA(cudaMalloc(&data, 4));
  EXPECT_CUDA(cudaMemGetInfo(&bytes, &bytes));
  EXPECT_EQ(cudaMalloc(&data, 4), cudaErrorMemoryAllocation);
  EXPECT_CUDA(cudaMalloc(&data, 4));
}

TEST_F(StandinTest, LastError) {
  EXPECT_CUDA(cudaGetLastError());
  void *data = nullptr;
  EXPECT_EQ(cudaMalloc(&data, size_t(1) << 50), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_CUDA(cudaGetLastError());
  EXPECT_STREQ(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
}

TEST_F(StandinTest, LaunchesThatCannotBe) {
  cudaStream_t stream = openStream();
  for (auto [grid, block] : {std::pair<dim3, dim3>{0, 32},
                             {1, 1025},
                             {1, dim3(1, 1, 65)},
                             {dim3(1, 65536), 32},
                             {1, dim3(32, 0)},
                             {1, dim3(32, 33)}})
    EXPECT_EQ(launch(stream, grid, block, nothing), cudaErrorInvalidConfiguration);
  EXPECT_CUDA(launch(stream, dim3(2, 3), dim3(8, 2, 64), nothing));
  EXPECT_CUDA(cudaStreamSynchronize(stream));
  collect();
  cudaLaunchConfig_t config = {};
  config.stream = stream;
  config.gridDim = config.blockDim = 1;
  config.dynamicSmemBytes = 48 * 1024;
  EXPECT_CUDA(cudaLaunchKernelEx(&config, nothing));
  config.dynamicSmemBytes = 64 * 1024;
  EXPECT_EQ(cudaLaunchKernelEx(&config, nothing), cudaErrorInvalidValue);
  auto *function = reinterpret_cast<const void *>(nothing);
  auto attribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
  EXPECT_EQ(cudaFuncSetAttribute(function, attribute, 1 << 20), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaFuncSetAttribute(function, attribute, 64 * 1024));
  EXPECT_CUDA(cudaLaunchKernelEx(&config, nothing));
  EXPECT_CUDA(cudaStreamSynchronize(stream));
  config.numAttrs = 1;
  EXPECT_EQ(cudaLaunchKernelEx(&config, nothing), cudaErrorInvalidValue);
  expectViolation("launched with attributes");
}

TEST_F(StandinTest, WorkFailsLater) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    restart(seed);
    cudaStream_t stream = openStream(), other = openStream();
    cudaEvent_t event = openEvent();
    int *host = pinned<int>(1), *x = onDevice<int>(1);
    *host = 3;
    std::atomic<bool> mayStart = false;
    EXPECT_CUDA(cudaLaunchHostFunc(stream, waitForFlag, &mayStart));
    failWork(1, cudaErrorLaunchFailure);
    EXPECT_CUDA(cudaMemsetAsync(x, 0, 4, stream));
    EXPECT_CUDA(launch(stream, 1, 32, nothing));
    EXPECT_CUDA(cudaMemcpyAsync(host, x, 4, cudaMemcpyDefault, stream)); // is dropped
    EXPECT_CUDA(cudaEventRecord(event, stream));
    mayStart = true;
    EXPECT_EQ(cudaEventSynchronize(event), cudaErrorLaunchFailure);
    EXPECT_EQ(*host, 3);
    // The error stays, for all that concerns the device.
    EXPECT_EQ(cudaEventQuery(event), cudaErrorLaunchFailure);
    EXPECT_EQ(cudaStreamSynchronize(other), cudaErrorLaunchFailure);
    EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
    EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
    void *data = nullptr;
    EXPECT_EQ(cudaMalloc(&data, 4), cudaErrorLaunchFailure);
    EXPECT_CUDA(cudaSetDevice(1));
    EXPECT_CUDA(cudaMalloc(&data, 4));
    EXPECT_EQ(cudaSetDevice(0), cudaErrorLaunchFailure);
  }
}

TEST_F(StandinTest, LostDevicesHoldNobodyUp) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    restart(seed);
    cudaStream_t stream = openStream();
    cudaEvent_t event = openEvent();
    EXPECT_CUDA(launch(stream, 1, 32, nothing));
    EXPECT_CUDA(cudaEventRecord(event, stream));
    EXPECT_CUDA(cudaSetDevice(1));
    cudaStream_t other = openStream();
    EXPECT_CUDA(cudaStreamWaitEvent(other, event));
    EXPECT_CUDA(launch(other, 1, 32, nothing));
    loseDevice(0, cudaErrorECCUncorrectable);
    EXPECT_CUDA(cudaStreamSynchronize(other));
    EXPECT_EQ(cudaEventSynchronize(event), cudaErrorECCUncorrectable);
    EXPECT_EQ(cudaStreamWaitEvent(other, event), cudaErrorECCUncorrectable);
  }
}

TEST_F(StandinTest, CountsWhatThereIs) {
  uint64_t before = counts().calls;
  cudaStream_t stream = openStream();
  cudaEvent_t event = openEvent();
  EXPECT_CUDA(cudaEventRecord(event, stream));
  EXPECT_CUDA(cudaStreamWaitEvent(stream, event));
  EXPECT_CUDA(launch(stream, 1, 32, nothing));
  EXPECT_CUDA(cudaStreamSynchronize(stream));
  (void)onDevice<int>(1);
  Counts now = counts();
  EXPECT_EQ(now.calls, before + 7);
  EXPECT_EQ(now.work, 1u);
  EXPECT_EQ(now.launches, 1u);
  EXPECT_EQ(now.records, 1u);
  EXPECT_EQ(now.waits, 1u);
  EXPECT_EQ(now.allocations, 1u);
  EXPECT_EQ(now.streams, 1u);
  EXPECT_EQ(now.events, 1u);
  restart();
  now = counts();
  EXPECT_EQ(now.calls, before);
  EXPECT_EQ(now.allocations + now.streams + now.events, 0u);
}

TEST_F(StandinTest, ViolationsEndTheProcessWithTheSeed) {
  EXPECT_DEATH(
      {
        restart(77);
        (void)cudaStreamSynchronize(nullptr);
      },
      "cuda stand-in: cudaStreamSynchronize uses the default stream.*\n.*"
      "DTC_CUDA_STANDIN_SEED=77");
}

TEST_F(StandinTest, SeedOfTheEnvironment) {
  const char *before = std::getenv("DTC_CUDA_STANDIN_SEED");
  std::string kept = before ? before : "";
  setenv("DTC_CUDA_STANDIN_SEED", "123", 1);
  EXPECT_EQ(Settings().seed, 123u);
  EXPECT_DEATH(
      {
        setenv("DTC_CUDA_STANDIN_SEED", "12x", 1);
        Settings();
      },
      "DTC_CUDA_STANDIN_SEED is \"12x\", expected a number below 2\\^64");
  if (before)
    setenv("DTC_CUDA_STANDIN_SEED", kept.c_str(), 1);
  else
    unsetenv("DTC_CUDA_STANDIN_SEED");
}

} // namespace

} // namespace dtc::standin
