//===- MemoryTest.cpp - Memory of the stand-in of CUDA -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/StandinFixture.h"

#include <cstring>
#include <limits>

namespace dtc::standin {

namespace {

class MemoryTest : public StandinFixture {};

__global__ void writeAt(unsigned char *data, long index) {
  if (threadIdx.x == 5)
    data[index] = 1;
}

__global__ void readAt(const unsigned char *data, long index, unsigned char *out) {
  if (threadIdx.x == 5)
    *out = data[index];
}

TEST_F(MemoryTest, FreshMemoryIsNaN) {
  cudaStream_t stream = openStream();
  for (float value : read(onDevice<float>(1000), 1000, stream))
    EXPECT_TRUE(std::isnan(value));
  double *host = pinned<double>(1000);
  for (int i = 0; i < 1000; ++i)
    EXPECT_TRUE(std::isnan(host[i]));
}

TEST_F(MemoryTest, IsAligned) {
  for (size_t bytes : {1, 100, 256, 4000, 4096, 5000, 100000}) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(onDevice<char>(bytes)) % 256, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pinned<char>(bytes)) % 256, 0u);
  }
}

TEST_F(MemoryTest, NoBytesAreNoError) {
  void *data = static_cast<void *>(&data);
  EXPECT_CUDA(cudaMalloc(&data, 0));
  EXPECT_EQ(data, nullptr);
  EXPECT_CUDA(cudaFree(nullptr));
  EXPECT_CUDA(cudaFreeHost(nullptr));
}

TEST_F(MemoryTest, IsLimited) {
  Settings settings;
  settings.memoryBytes = 1 << 20;
  restart(settings);
  size_t free = 0, total = 0;
  EXPECT_CUDA(cudaMemGetInfo(&free, &total));
  EXPECT_EQ(free, total);
  void *first = nullptr, *second = nullptr;
  EXPECT_EQ(cudaMalloc(&first, (1 << 20) + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&first, std::numeric_limits<size_t>::max()), cudaErrorMemoryAllocation);
  EXPECT_CUDA(cudaMalloc(&first, 768 << 10));
  EXPECT_CUDA(cudaMemGetInfo(&free, &total));
  EXPECT_EQ(free, size_t(256 << 10));
  EXPECT_EQ(cudaMalloc(&second, 512 << 10), cudaErrorMemoryAllocation);
  // Another device has memory of its own.
  EXPECT_CUDA(cudaSetDevice(1));
  EXPECT_CUDA(cudaMalloc(&second, 512 << 10));
  EXPECT_CUDA(cudaSetDevice(0));
  EXPECT_CUDA(cudaFree(first));
  EXPECT_CUDA(cudaMalloc(&first, 1 << 20));
}

// In the last page of an allocation a write is found after the kernel, or by the address sanitizer
// at once; both name the kernel.
TEST_F(MemoryTest, KernelWritesJustOutside) {
  for (long index : {-1L, 100L, 155L}) {
    EXPECT_DEATH(
        {
          restart();
          cudaStream_t stream = openStream();
          EXPECT_CUDA(launch(stream, 1, 32, writeAt, onDevice<unsigned char>(100), index));
          (void)cudaStreamSynchronize(stream);
        },
        "kernel .*writeAt")
        << index;
  }
}

TEST_F(MemoryTest, KernelReadsJustOutsideANaN) {
#if defined(DTC_STANDIN_ADDRESS)
  GTEST_SKIP() << "the address sanitizer ends the process";
#endif
  cudaStream_t stream = openStream();
  unsigned char *out = onDevice<unsigned char>(1);
  EXPECT_CUDA(launch(stream, 1, 32, readAt, onDevice<unsigned char>(100), 100L, out));
  EXPECT_GE(read(out, 1, stream)[0], 0xFE);
}

TEST_F(MemoryTest, KernelAccessesFarOutside) {
  for (long index : {-5000L, 300L, 60000L}) {
    EXPECT_DEATH(
        {
          restart();
          cudaStream_t stream = openStream();
          unsigned char *data = onDevice<unsigned char>(100);
          EXPECT_CUDA(launch(stream, 3, 32, readAt, data, index, data));
          (void)cudaStreamSynchronize(stream);
        },
        "kernel .*readAt, block \\([0-2], 0, 0\\), thread \\(5, 0, 0\\): accesses [0-9]+ bytes "
        "(before the start|after the end) of an allocation of 100 bytes of device 0")
        << index;
  }
}

TEST_F(MemoryTest, KernelAccessesNothing) {
  EXPECT_DEATH(
      {
        restart();
        cudaStream_t stream = openStream();
        EXPECT_CUDA(launch(stream, 1, 32, writeAt, nullptr, 64L));
        (void)cudaStreamSynchronize(stream);
      },
      "writeAt, block \\(0, 0, 0\\), thread \\(5, 0, 0\\): accesses address 0x40");
}

TEST_F(MemoryTest, HostAccessesDeviceMemory) {
  EXPECT_DEATH(
      {
        restart();
        unsigned char *data = onDevice<unsigned char>(100);
        cudaStream_t stream = openStream();
        EXPECT_CUDA(launch(stream, 1, 32, writeAt, data, 0L));
        (void)cudaStreamSynchronize(stream);
        *static_cast<volatile unsigned char *>(data + 10) = 1;
      },
      "the host accesses byte 10 of an allocation of 100 bytes of device 0");
}

TEST_F(MemoryTest, KernelAccessesAnotherDevice) {
  EXPECT_DEATH(
      {
        restart();
        unsigned char *data = onDevice<unsigned char>(100);
        (void)cudaSetDevice(1);
        unsigned char *own = onDevice<unsigned char>(100);
        cudaStream_t stream = openStream();
        // As an offset, since a pointer is refused.
        EXPECT_CUDA(launch(stream, 1, 32, writeAt, own, data - own));
        (void)cudaStreamSynchronize(stream);
      },
      "writeAt.*accesses byte 0 of an allocation of 100 bytes of device 0");
}

TEST_F(MemoryTest, PointersOfKernels) {
  collect();
  cudaStream_t stream = openStream();
  unsigned char local = 0, *data = onDevice<unsigned char>(100);
  EXPECT_EQ(launch(stream, 1, 32, writeAt, &local, 0L), cudaErrorInvalidValue);
  expectViolation("which is not CUDA's");
  EXPECT_CUDA(cudaFree(data));
  EXPECT_EQ(launch(stream, 1, 32, writeAt, data, 0L), cudaErrorInvalidValue);
  expectViolation("byte 0 of a freed allocation of 100 bytes of device 0");
  EXPECT_CUDA(cudaSetDevice(1));
  data = onDevice<unsigned char>(100);
  EXPECT_CUDA(cudaSetDevice(0));
  EXPECT_EQ(launch(stream, 1, 32, writeAt, data, 0L), cudaErrorInvalidValue);
  expectViolation(
      "kernel dtc::standin::(anonymous namespace)::writeAt on device 0 gets the pointer");
  // Pinned memory, the end of an allocation, and nothing are allowed.
  EXPECT_CUDA(launch(stream, 1, 1, writeAt, pinned<unsigned char>(1), 0L));
  EXPECT_CUDA(launch(stream, 1, 1, writeAt, onDevice<unsigned char>(8) + 8, 0L));
  EXPECT_CUDA(launch(stream, 1, 1, writeAt, nullptr, 0L));
  EXPECT_CUDA(cudaStreamSynchronize(stream));
}

TEST_F(MemoryTest, Copies) {
  collect();
  cudaStream_t stream = openStream();
  char *data = onDevice<char>(100), *host = pinned<char>(200);
  EXPECT_EQ(cudaMemcpyAsync(data, host, 101, cudaMemcpyDefault, stream), cudaErrorInvalidValue);
  expectViolation("its destination begins at byte 0 of an allocation of 100 bytes of device 0");
  EXPECT_EQ(cudaMemcpyAsync(host, data - 1, 2, cudaMemcpyDefault, stream), cudaErrorInvalidValue);
  expectViolation("its source begins at 1 bytes before the start");
  EXPECT_EQ(cudaMemsetAsync(data + 50, 0, 51, stream), cudaErrorInvalidValue);
  expectViolation("cudaMemsetAsync of 51 bytes on stream");
  EXPECT_EQ(cudaMemcpyAsync(data, host, 100, cudaMemcpyDeviceToHost, stream),
            cudaErrorInvalidMemcpyDirection);
  expectViolation("its kind");
  EXPECT_EQ(cudaMemcpyAsync(data, data + 50, 51 - 1, cudaMemcpyDefault, stream), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(data, data + 40, 50, cudaMemcpyDefault, stream), cudaErrorInvalidValue);
  expectViolation("overlap");
  EXPECT_CUDA(cudaMemcpyAsync(data, nullptr, 0, cudaMemcpyDefault, stream));
}

TEST_F(MemoryTest, CopiesBetweenDevices) {
  cudaStream_t stream = openStream();
  float *here = upload<float>({1, 2, 3}, stream);
  EXPECT_CUDA(cudaSetDevice(1));
  float *there = onDevice<float>(3);
  EXPECT_CUDA(cudaSetDevice(0));
  EXPECT_CUDA(cudaMemcpyAsync(there, here, 12, cudaMemcpyDeviceToDevice, stream));
  EXPECT_EQ(read(there, 3, stream), (std::vector<float>{1, 2, 3}));
}

TEST_F(MemoryTest, Freeing) {
  collect();
  char *data = onDevice<char>(100), *host = pinned<char>(100);
  EXPECT_EQ(cudaFree(data + 1), cudaErrorInvalidValue);
  expectViolation("which it did not allocate");
  EXPECT_EQ(cudaFree(host), cudaErrorInvalidValue);
  expectViolation("of pinned memory");
  EXPECT_CUDA(cudaFree(data));
  EXPECT_EQ(cudaFree(data), cudaErrorInvalidValue);
  expectViolation("a freed allocation");
  EXPECT_CUDA(cudaFreeHost(host));
  EXPECT_EQ(counts().allocations, 0u);
}

TEST_F(MemoryTest, FreeingWaitsForWork) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    restart(seed);
    cudaStream_t stream = openStream();
    char *data = onDevice<char>(100), *host = pinned<char>(100);
    EXPECT_CUDA(cudaMemsetAsync(data, 3, 100, stream));
    EXPECT_CUDA(cudaMemcpyAsync(host, data, 100, cudaMemcpyDefault, stream));
    EXPECT_CUDA(cudaFree(data));
    EXPECT_EQ(host[99], 3);
  }
}

} // namespace

} // namespace dtc::standin
