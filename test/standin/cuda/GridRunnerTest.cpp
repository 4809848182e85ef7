//===- GridRunnerTest.cpp - Kernels on the stand-in of CUDA --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/StandinFixture.h"

#include <numeric>

namespace dtc::standin {

namespace {

class GridRunnerTest : public StandinFixture {
protected:
  /// Launches one kernel on a stream of its own and waits for it.
  template <typename... Parameters, typename... Arguments>
  cudaError_t runAlone(dim3 grid, dim3 block, void (*kernel)(Parameters...),
                       Arguments &&...arguments) {
    cudaStream_t stream = openStream();
    EXPECT_CUDA(launch(stream, grid, block, kernel, std::forward<Arguments>(arguments)...));
    return cudaStreamSynchronize(stream);
  }
  /// Expects that the kernel does not end as it should, and that the message has all parts.
  void expectStuck(std::initializer_list<std::string> parts, cudaError_t error) {
    EXPECT_EQ(error, cudaErrorLaunchFailure);
    ASSERT_EQ(violations.size(), 1u);
    for (const std::string &part : parts)
      EXPECT_NE(violations[0].find(part), std::string::npos)
          << violations[0] << "\nexpected: " << part;
  }
};

__global__ void writeIndices(unsigned *out) {
  unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  atomicAdd(&out[block * threads + thread], block * threads + thread);
}

TEST_F(GridRunnerTest, EveryThreadOfEveryBlockRunsOnce) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    restart(seed);
    cudaStream_t stream = openStream();
    dim3 grid(3, 2, 2), block(5, 3, 4);
    size_t count = 12 * 60;
    unsigned *out = upload(std::vector<unsigned>(count, 1), stream);
    EXPECT_CUDA(launch(stream, grid, block, writeIndices, out));
    std::vector<unsigned> values = read(out, count, stream);
    for (unsigned i = 0; i < count; ++i)
      ASSERT_EQ(values[i], i + 1) << "seed " << seed;
  }
}

template <typename T> __global__ void reverse(T *values) {
  __shared__ T tile[256];
  unsigned first = blockIdx.x * blockDim.x;
  tile[threadIdx.x] = values[first + threadIdx.x];
  __syncthreads();
  values[first + threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}

TEST_F(GridRunnerTest, BarriersOrderSharedMemory) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    restart(seed);
    cudaStream_t stream = openStream();
    std::vector<double> values(4 * 256);
    std::iota(values.begin(), values.end(), 0);
    double *data = upload(values, stream);
    EXPECT_CUDA(launch(stream, 4, 256, reverse<double>, data));
    std::vector<double> reversed = read(data, values.size(), stream);
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(reversed[i], i / 256 * 256 + 255 - i % 256) << "seed " << seed;
  }
}

__global__ void reverseWithoutBarrier(int *values) {
  __shared__ int tile[64];
  tile[threadIdx.x] = values[threadIdx.x];
  values[threadIdx.x] = tile[63 - threadIdx.x];
}

TEST_F(GridRunnerTest, MissingBarrierShows) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    restart(seed);
    cudaStream_t stream = openStream();
    std::vector<int> values(64);
    std::iota(values.begin(), values.end(), 0);
    int *data = upload(values, stream);
    EXPECT_CUDA(launch(stream, 1, 64, reverseWithoutBarrier, data));
    std::vector<int> result = read(data, 64, stream);
    EXPECT_FALSE(std::equal(result.begin(), result.end(), values.rbegin())) << "seed " << seed;
  }
}

template <typename T> __global__ void readShared(T *out) {
  __shared__ T never[32];
  out[threadIdx.x] = never[threadIdx.x];
  never[threadIdx.x] = 7;
}

TEST_F(GridRunnerTest, SharedMemoryIsPoisoned) {
  cudaStream_t stream = openStream();
  for (int round = 0; round < 2; ++round) {
    float *out = onDevice<float>(32);
    EXPECT_CUDA(launch(stream, 1, 32, readShared<float>, out));
    for (float value : read(out, 32, stream))
      EXPECT_TRUE(std::isnan(value));
  }
}

__global__ void shuffles(int *out) {
  int lane = threadIdx.x % 32, *own = out + threadIdx.x * 8;
  own[0] = __shfl_sync(0xFFFFFFFF, lane, 5);
  own[1] = __shfl_sync(0xFFFFFFFF, lane, 3, 8);
  own[2] = __shfl_up_sync(0xFFFFFFFF, lane, 2);
  own[3] = __shfl_down_sync(0xFFFFFFFF, lane, 3, 16);
  own[4] = __shfl_xor_sync(0xFFFFFFFF, lane, 9);
  own[5] = static_cast<int>(__ballot_sync(0xFFFFFFFF, lane % 3 == 0));
  own[6] = 10 * __any_sync(0xFFFFFFFF, lane == 31) + __all_sync(0xFFFFFFFF, lane < 31);
  // Two halves with masks of their own.
  own[7] = lane < 16 ? __shfl_down_sync(0x0000FFFF, lane, 8, 16) + 0
                     : __shfl_up_sync(0xFFFF0000, lane, 4, 16) + 100;
}

TEST_F(GridRunnerTest, ShufflesAndVotes) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    restart(seed);
    cudaStream_t stream = openStream();
    int *out = onDevice<int>(64 * 8);
    EXPECT_CUDA(launch(stream, 1, 64, shuffles, out));
    std::vector<int> values = read(out, 64 * 8, stream);
    for (int thread = 0; thread < 64; ++thread) {
      int lane = thread % 32, half = lane % 16;
      std::vector<int> expected = {5,
                                   lane / 8 * 8 + 3,
                                   lane >= 2 ? lane - 2 : lane,
                                   half + 3 < 16 ? lane + 3 : lane,
                                   lane ^ 9,
                                   0x49249249,
                                   10,
                                   lane < 16 ? (half + 8 < 16 ? lane + 8 : lane)
                                             : (half >= 4 ? lane - 4 : lane) + 100};
      ASSERT_EQ(std::vector<int>(values.begin() + thread * 8, values.begin() + thread * 8 + 8),
                expected)
          << "seed " << seed << ", thread " << thread;
    }
  }
}

__global__ void shuffleWide(double *out) {
  out[threadIdx.x] = __shfl_down_sync(0xFFFFFFFF, 0.1 * threadIdx.x, 1);
}

TEST_F(GridRunnerTest, ShufflesMoveEightBytes) {
  cudaStream_t stream = openStream();
  double *out = onDevice<double>(32);
  EXPECT_CUDA(launch(stream, 1, 32, shuffleWide, out));
  std::vector<double> values = read(out, 32, stream);
  for (int i = 0; i < 31; ++i)
    EXPECT_EQ(values[i], 0.1 * (i + 1));
}

__global__ void atomics(unsigned *sums, float *total) {
  atomicAdd(total, 0.5f);
  atomicMax(&sums[0], threadIdx.x);
  atomicMin(&sums[1], threadIdx.x);
  // The least thread that has not been here; as a list, linked by compare and swap.
  unsigned before;
  do
    before = sums[2];
  while (atomicCAS(&sums[2], before, before + 2) != before);
}

TEST_F(GridRunnerTest, Atomics) {
  cudaStream_t stream = openStream();
  unsigned *sums = upload<unsigned>({0, 1000, 0}, stream);
  float *total = upload<float>({1}, stream);
  EXPECT_CUDA(launch(stream, 3, 100, atomics, sums, total));
  EXPECT_EQ(read(sums, 3, stream), (std::vector<unsigned>{99, 0, 600}));
  EXPECT_EQ(read(total, 1, stream)[0], 151);
}

// Errors of a kernel are reported with the kernel, the block and the threads.

__global__ void barrierInBranch(int *) {
  if (threadIdx.x < 3)
    __syncthreads();
}

TEST_F(GridRunnerTest, BarrierThatSomeThreadsDoNotReach) {
  collect();
  expectStuck({"barrierInBranch", "block (",
               "waits in __syncthreads (GridRunnerTest.cpp:", "has left the kernel"},
              runAlone(2, 40, barrierInBranch, nullptr));
}

__global__ void twoBarriers(int *) {
  if (threadIdx.x % 2)
    __syncthreads();
  else
    __syncthreads();
}

TEST_F(GridRunnerTest, BarriersAtTwoPlaces) {
  collect();
  expectStuck({"twoBarriers", "waits in __syncthreads"}, runAlone(1, 64, twoBarriers, nullptr));
}

__global__ void shuffleInBranch(int *out) {
  if (threadIdx.x != 7)
    *out = __shfl_down_sync(0xFFFFFFFF, 1, 1);
}

TEST_F(GridRunnerTest, ShuffleWithALaneThatHasLeft) {
  collect();
  expectStuck({"shuffleInBranch", "__shfl_down_sync", "mask 0xffffffff",
               "thread (7, 0, 0) has left the kernel"},
              runAlone(1, 32, shuffleInBranch, onDevice<int>(1)));
}

__global__ void shuffleAll(int *out) { *out = __shfl_sync(0xFFFFFFFF, 1, 0); }

TEST_F(GridRunnerTest, ShuffleWithALaneThatTheBlockDoesNotHave) {
  collect();
  expectStuck({"shuffleAll", "names lane 20, but the block has no such thread"},
              runAlone(1, 20, shuffleAll, onDevice<int>(1)));
}

__global__ void shuffleOutsideMask(int *out) { *out = __shfl_sync(0x0000FFFF, 1, 0); }

TEST_F(GridRunnerTest, CallerThatIsNotInItsMask) {
  collect();
  expectStuck({"shuffleOutsideMask", "mask 0x0000ffff, which does not have its lane"},
              runAlone(1, 32, shuffleOutsideMask, onDevice<int>(1)));
}

__global__ void readsOutsideMask(int *out) {
  if (threadIdx.x < 16)
    *out = __shfl_sync(0x0000FFFF, 1, 20);
}

TEST_F(GridRunnerTest, SourceThatIsNotInTheMask) {
  collect();
  expectStuck({"readsOutsideMask", "reads lane 20, which is not in the mask 0x0000ffff"},
              runAlone(1, 32, readsOutsideMask, onDevice<int>(1)));
}

__global__ void barrierAndShuffle(int *out) {
  if (threadIdx.x == 0)
    __syncthreads();
  else
    *out = __shfl_sync(0xFFFFFFFF, 1, 1);
}

TEST_F(GridRunnerTest, BarrierAgainstShuffle) {
  collect();
  expectStuck(
      {"barrierAndShuffle", "thread (0, 0, 0)", "waits in __syncthreads", "waits in __shfl_sync"},
      runAlone(1, 32, barrierAndShuffle, onDevice<int>(1)));
}

TEST_F(GridRunnerTest, OtherDevicesGoOnAfterAFailure) {
  collect();
  EXPECT_EQ(runAlone(1, 64, twoBarriers, nullptr), cudaErrorLaunchFailure);
  EXPECT_CUDA(cudaSetDevice(1));
  cudaStream_t stream = openStream();
  float *data = upload(std::vector<float>(256, 3), stream);
  EXPECT_CUDA(launch(stream, 1, 256, reverse<float>, data));
  EXPECT_EQ(read(data, 256, stream), std::vector<float>(256, 3));
}

__global__ void recurse(int depth, volatile int *out) {
  volatile char large[1000];
  large[depth % 1000] = 1;
  if (depth)
    recurse(depth - 1, out);
  *out = *out + large[depth % 1000];
}

TEST_F(GridRunnerTest, StackOverflow) {
  EXPECT_DEATH(
      {
        restart();
        (void)runAlone(1, 1, recurse, 100000, static_cast<volatile int *>(onDevice<int>(1)));
      },
      "recurse.*thread \\(0, 0, 0\\): its stack overflows|stack-overflow");
}

} // namespace

} // namespace dtc::standin
