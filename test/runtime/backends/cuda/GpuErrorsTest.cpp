//===- GpuErrorsTest.cpp - GPUs that cannot be used -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/CudaBackend.h"
#include "test/lib/plans/Expect.h"
#include "test/standin/cuda/Standin.h"

#include <cstdlib>
#include <gtest/gtest.h>

namespace dtc::runtime::gpuErrorsTest {

namespace {

using testing::take;

class GpuErrors : public ::testing::Test {
protected:
  GpuErrors() { standin::reset(settings); }
  ~GpuErrors() override { standin::reset(); }

  std::string errorOfOpening() { return testing::messageOf(createCudaBackend()->openDevice(0)); }

  standin::Settings settings;
};

TEST_F(GpuErrors, NoGpu) {
  settings.devices = 0;
  standin::reset(settings);
  EXPECT_EQ(errorOfOpening(),
            "the NVIDIA driver sees no GPU; check CUDA_VISIBLE_DEVICES and nvidia-smi");
}

TEST_F(GpuErrors, StreamsDoNotShareTheHardwareQueuesOfTheDefault) {
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  EXPECT_OK(createCudaBackend()->openDevice(0));
  EXPECT_STREQ(getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "32");
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", /*overwrite=*/1);
  EXPECT_OK(createCudaBackend()->openDevice(0));
  EXPECT_STREQ(getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "1");
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
}

TEST_F(GpuErrors, OldDriver) {
  standin::failCall(0, cudaErrorInsufficientDriver, "cudaGetDeviceCount");
  EXPECT_EQ(errorOfOpening(), "the NVIDIA driver supports CUDA 13.0, expected 13.0 or newer");
}

TEST_F(GpuErrors, AnotherErrorOfTheDriver) {
  standin::failCall(0, cudaErrorInitializationError, "cudaGetDeviceCount");
  EXPECT_EQ(errorOfOpening(), "cannot count the GPUs: initialization error "
                              "(cudaErrorInitializationError)");
}

TEST_F(GpuErrors, OldGpu) {
  settings.computeCapability = 7;
  standin::reset(settings);
  EXPECT_EQ(errorOfOpening(), "CUDA stand-in (cuda 0) has compute capability 7.0, expected 8.0 "
                              "(Ampere) or newer");
}

TEST_F(GpuErrors, LostGpu) {
  standin::loseDevice(0, cudaErrorECCUncorrectable);
  EXPECT_TRUE(testing::contains(errorOfOpening(), "uncorrectable ECC error encountered"));
}

TEST_F(GpuErrors, TooLittleMemory) {
  settings.memoryBytes = 1000;
  standin::reset(settings);
  std::unique_ptr<Device> device = take(createCudaBackend()->openDevice(0));
  EXPECT_EQ(testing::messageOf(device->allocate(1001)),
            "cannot allocate 1001 bytes on CUDA stand-in (cuda 0), which has 1000 bytes free: out "
            "of memory (cudaErrorMemoryAllocation)");
}

TEST_F(GpuErrors, TooLittleMemoryBesideThePlan) {
  std::unique_ptr<Device> device = take(createCudaBackend()->openDevice(1));
  Device::FreeMemory free = take(device->freeMemory());
  EXPECT_EQ(free.bytes, settings.memoryBytes);
  EXPECT_EQ(free.owner, "GPU-02000000-0000-0000-0000-000000000000");
  EXPECT_EQ(free.reserved, uint64_t{768} << 20);
  auto memory = take(device->allocate(256));
  auto queue = take(device->openQueue(QueueKind::Compute));
  EXPECT_OK(queue->beginCapture());
  EXPECT_OK(queue->clear(memory->data(), 256));
  standin::failCall(0, cudaErrorMemoryAllocation, "cudaGraphInstantiate");
  EXPECT_ERROR(
      queue->endCapture(),
      "cuda 1: cannot instantiate a graph: out of memory (cudaErrorMemoryAllocation); this "
      "is memory beside the plan's");
}

TEST_F(GpuErrors, ElementTypesThatAKernelDoesNotHave) {
  TensorType type{DType::Bool, {2, 2}};
  EXPECT_TRUE(
      testing::contains(testing::messageOf(createCudaBackend()->prepare(
                            {"einsum", {type, type}, {type}, {{"equation", "ij,jk->ik"}}, {}})),
                        "einsum"));
}

TEST_F(GpuErrors, AKernelThatFailsNamesItsGpuAndFailsTheQueue) {
  std::unique_ptr<Device> device = take(createCudaBackend()->openDevice(1));
  auto memory = take(device->allocate(256));
  auto queue = take(device->openQueue(QueueKind::Compute));
  standin::failWork(0, cudaErrorIllegalAddress);
  EXPECT_OK(queue->clear(memory->data(), 256));
  for (int i = 0; i < 2; ++i)
    EXPECT_ERROR(queue->finish(), "cuda 1: the work of a queue failed: an illegal memory access");
  EXPECT_ERROR(queue->clear(memory->data(), 256), "an illegal memory access");
}

} // namespace

} // namespace dtc::runtime::gpuErrorsTest
