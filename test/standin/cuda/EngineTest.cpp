//===- EngineTest.cpp - The order of work on the stand-in of CUDA --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/StandinFixture.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

namespace dtc::standin {

namespace {

__global__ void addOne(float *to, const float *from) { to[threadIdx.x] = from[threadIdx.x] + 1; }

class EngineTest : public StandinFixture {
protected:
  /// Stream a writes x, stream b computes x + 1, and the host reads it; the first event orders b
  /// after a. Gives what the host reads.
  float runTwoStreams(uint64_t seed) {
    restart(seed);
    cudaStream_t a = openStream(), b = openStream();
    float *x = onDevice<float>(1), *y = onDevice<float>(1), *host = pinned<float>(2);
    host[0] = 41;
    host[1] = 0;
    cudaEvent_t written = openEvent(), computed = openEvent();
    EXPECT_CUDA(cudaMemcpyAsync(x, host, 4, cudaMemcpyDefault, a));
    prepare();
    EXPECT_CUDA(cudaEventRecord(written, a));
    EXPECT_CUDA(cudaStreamWaitEvent(b, written));
    EXPECT_CUDA(launch(b, 1, 1, addOne, y, x));
    EXPECT_CUDA(cudaMemcpyAsync(host + 1, y, 4, cudaMemcpyDefault, b));
    EXPECT_CUDA(cudaEventRecord(computed, b));
    EXPECT_CUDA(cudaEventSynchronize(computed));
    return host[1];
  }
  std::function<void()> prepare = [] {};
};

TEST_F(EngineTest, CorrectProgramsAreNotDisturbed) {
  for (uint64_t seed = 1; seed <= 200; ++seed)
    ASSERT_EQ(runTwoStreams(seed), 42) << "seed " << seed;
}

TEST_F(EngineTest, MissingEventShows) {
  for (auto remove : {ignoreRecord, ignoreWait}) {
    prepare = [&] { remove(0); };
    int wrong = 0;
    for (uint64_t seed = 1; seed <= 10; ++seed)
      wrong += runTwoStreams(seed) != 42;
    // The host waits for the second stream, so that only the order of a third of the seeds is any.
    EXPECT_GE(wrong, 4);
  }
}

TEST_F(EngineTest, MissingWaitOfTheHostShows) {
  int late = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    restart(seed);
    cudaStream_t stream = openStream();
    int *x = upload<int>({5}, stream), *host = pinned<int>(1);
    *host = 0;
    EXPECT_CUDA(cudaMemcpyAsync(host, x, 4, cudaMemcpyDefault, stream));
    late += *host == 0;
    EXPECT_CUDA(cudaStreamSynchronize(stream));
    EXPECT_EQ(*host, 5);
  }
  EXPECT_GE(late, 8);
}

TEST_F(EngineTest, PinnedMemoryIsReadLateAndPageableAtOnce) {
  int late = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    restart(seed);
    cudaStream_t stream = openStream();
    int *x = onDevice<int>(2), *host = pinned<int>(1), local = 1;
    *host = 1;
    EXPECT_CUDA(cudaMemcpyAsync(x, host, 4, cudaMemcpyDefault, stream));
    EXPECT_CUDA(cudaMemcpyAsync(x + 1, &local, 4, cudaMemcpyDefault, stream));
    *host = local = 2;
    std::vector<int> values = read(x, 2, stream);
    late += values[0] == 2;
    EXPECT_EQ(values[1], 1);
  }
  EXPECT_GE(late, 8);
}

TEST_F(EngineTest, WaitsAreForTheLastRecord) {
  bool sawFirst = false, sawSecond = false;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    restart(seed);
    cudaStream_t a = openStream(), b = openStream();
    int *x = onDevice<int>(1), *host = pinned<int>(1);
    cudaEvent_t event = openEvent();
    // Before the first record there is nothing to wait for.
    EXPECT_CUDA(cudaStreamWaitEvent(a, event));
    EXPECT_CUDA(cudaMemsetAsync(x, 0, 4, a));
    EXPECT_CUDA(cudaEventRecord(event, a));
    EXPECT_CUDA(cudaStreamWaitEvent(b, event));
    EXPECT_CUDA(cudaMemsetAsync(x, 1, 4, a));
    // b does not wait for this one.
    EXPECT_CUDA(cudaEventRecord(event, a));
    EXPECT_CUDA(cudaMemcpyAsync(host, x, 4, cudaMemcpyDefault, b));
    EXPECT_CUDA(cudaStreamSynchronize(b));
    ASSERT_TRUE(*host == 0 || *host == 0x01010101) << *host;
    (*host ? sawSecond : sawFirst) = true;
  }
  EXPECT_TRUE(sawFirst);
  EXPECT_TRUE(sawSecond);
}

TEST_F(EngineTest, EventsOfOtherDevices) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    restart(seed);
    cudaStream_t a = openStream();
    cudaEvent_t event = openEvent();
    int *host = pinned<int>(2), *x = onDevice<int>(1);
    host[0] = 7;
    EXPECT_CUDA(cudaMemcpyAsync(x, host, 4, cudaMemcpyDefault, a));
    EXPECT_CUDA(cudaMemcpyAsync(host + 1, x, 4, cudaMemcpyDefault, a));
    EXPECT_CUDA(cudaEventRecord(event, a));
    EXPECT_CUDA(cudaSetDevice(1));
    cudaStream_t b = openStream();
    int *y = onDevice<int>(1);
    EXPECT_CUDA(cudaStreamWaitEvent(b, event));
    EXPECT_CUDA(cudaMemcpyAsync(y, host + 1, 4, cudaMemcpyDefault, b));
    EXPECT_EQ(read(y, 1, b)[0], 7);
  }
}

TEST_F(EngineTest, QueriesEndAndSeeTheTruth) {
  bool sawNotReady = false;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    restart(seed);
    cudaStream_t stream = openStream();
    cudaEvent_t event = openEvent();
    EXPECT_CUDA(cudaEventQuery(event)); // not recorded
    int *x = onDevice<int>(1), *host = pinned<int>(1);
    *host = 9;
    EXPECT_CUDA(cudaMemsetAsync(x, 0, 4, stream));
    EXPECT_CUDA(cudaMemcpyAsync(host, x, 4, cudaMemcpyDefault, stream));
    EXPECT_CUDA(cudaEventRecord(event, stream));
    cudaError_t error;
    while ((error = seed % 2 ? cudaEventQuery(event) : cudaStreamQuery(stream)) ==
           cudaErrorNotReady)
      sawNotReady = true;
    EXPECT_CUDA(error);
    EXPECT_EQ(*host, 0);
  }
  EXPECT_TRUE(sawNotReady);
}

TEST_F(EngineTest, TimesOfEvents) {
  cudaStream_t stream = openStream();
  cudaEvent_t first = openEvent(cudaEventDefault), last = openEvent(cudaEventDefault);
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, first, last), cudaErrorInvalidResourceHandle);
  EXPECT_CUDA(cudaEventRecord(first, stream));
  // The stream goes on when it has been asked.
  std::atomic<bool> mayGoOn = false;
  auto wait = [](void *flag) {
    static_cast<std::atomic<bool> *>(flag)->wait(false);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  EXPECT_CUDA(cudaLaunchHostFunc(stream, wait, &mayGoOn));
  EXPECT_CUDA(cudaEventRecord(last, stream));
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, first, last), cudaErrorNotReady);
  mayGoOn = true;
  mayGoOn.notify_one();
  EXPECT_CUDA(cudaEventSynchronize(last));
  EXPECT_CUDA(cudaEventElapsedTime(&milliseconds, first, last));
  EXPECT_GE(milliseconds, 2);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, first, openEvent()),
            cudaErrorInvalidResourceHandle);
}

/// Appends its number to a list when it is executed.
struct Note {
  std::vector<int> *list;
  std::mutex *mutex;
  int number;
  static void write(void *self) {
    auto *note = static_cast<Note *>(self);
    std::lock_guard guard(*note->mutex);
    note->list->push_back(note->number);
  }
};

std::vector<int> orderOfFiveStreams(uint64_t seed) {
  Settings settings;
  settings.seed = seed;
  reset(settings);
  std::vector<int> order;
  std::mutex mutex;
  std::vector<Note> notes;
  for (int i = 0; i < 15; ++i)
    notes.push_back({&order, &mutex, i});
  for (int i = 0; i < 15; i += 3) {
    cudaStream_t stream = nullptr;
    EXPECT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int k = 0; k < 3; ++k)
      EXPECT_CUDA(cudaLaunchHostFunc(stream, Note::write, &notes[i + k]));
    EXPECT_CUDA(cudaStreamDestroy(stream)); // its work is done all the same
  }
  EXPECT_CUDA(cudaDeviceSynchronize());
  return order;
}

TEST_F(EngineTest, SeedsDrawOrders) {
  std::set<std::vector<int>> orders;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<int> order = orderOfFiveStreams(seed);
    ASSERT_EQ(order.size(), 15u);
    for (int i = 0; i < 15; i += 3)
      for (int k = 0; k < 2; ++k) // a stream is in order
        EXPECT_LT(std::find(order.begin(), order.end(), i + k),
                  std::find(order.begin(), order.end(), i + k + 1));
    orders.insert(order);
  }
  EXPECT_GE(orders.size(), 15u);
}

TEST_F(EngineTest, WorkGoesOnWithoutCalls) {
  cudaStream_t stream = openStream();
  std::atomic<bool> done = false;
  EXPECT_CUDA(cudaLaunchHostFunc(
      stream, [](void *flag) { *static_cast<std::atomic<bool> *>(flag) = true; }, &done));
  while (!done)
    std::this_thread::yield();
}

/// Waits until as many have come as are expected.
struct Meeting {
  std::atomic<int> left;
  static void come(void *self) {
    auto &left = static_cast<Meeting *>(self)->left;
    --left;
    while (left > 0)
      std::this_thread::yield();
  }
};

TEST_F(EngineTest, HostFunctionsOfDevicesMeet) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Settings settings;
    settings.devices = 3;
    settings.seed = seed;
    restart(settings);
    Meeting meeting{3};
    cudaStream_t streams[3];
    for (int device = 0; device < 3; ++device) {
      EXPECT_CUDA(cudaSetDevice(device));
      streams[device] = openStream();
      EXPECT_CUDA(cudaLaunchHostFunc(streams[device], Meeting::come, &meeting));
    }
    // Waiting for one is enough.
    EXPECT_CUDA(cudaStreamSynchronize(streams[1]));
    EXPECT_LE(meeting.left, 0);
    for (int device : {0, 2})
      EXPECT_CUDA(cudaStreamSynchronize(streams[device]));
  }
}

TEST_F(EngineTest, HostFunctionsMayNotCallCuda) {
  collect();
  cudaStream_t stream = openStream();
  cudaError_t error = cudaSuccess;
  EXPECT_CUDA(cudaLaunchHostFunc(
      stream,
      [](void *to) {
        size_t bytes;
        *static_cast<cudaError_t *>(to) = cudaMemGetInfo(&bytes, &bytes);
      },
      &error));
  EXPECT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_EQ(error, cudaErrorNotPermitted);
  expectViolation("a host function calls cudaMemGetInfo");
}

TEST_F(EngineTest, Handles) {
  collect();
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaErrorInvalidResourceHandle);
  expectViolation("cudaStreamSynchronize uses the default stream");
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamDefault), cudaErrorInvalidValue);
  expectViolation("expected cudaStreamNonBlocking");
  stream = openStream();
  cudaEvent_t event = openEvent();
  EXPECT_CUDA(cudaStreamDestroy(stream));
  EXPECT_CUDA(cudaEventDestroy(event));
  EXPECT_EQ(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
  expectViolation("cudaStreamDestroy uses a stream that does not exist");
  EXPECT_EQ(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
  expectViolation("cudaEventQuery uses an event that does not exist");
  EXPECT_CUDA(cudaSetDevice(1));
  stream = openStream();
  EXPECT_CUDA(cudaSetDevice(0));
  EXPECT_EQ(cudaEventRecord(openEvent(), stream), cudaErrorInvalidResourceHandle);
  expectViolation("an event of device 0 on a stream of device 1");
  EXPECT_EQ(launch(stream, 1, 1, addOne, nullptr, nullptr), cudaErrorInvalidResourceHandle);
  expectViolation("on a stream of device 1 by a thread whose device is 0");
  EXPECT_EQ(counts().streams, 1u);
  EXPECT_EQ(counts().events, 1u);
}

TEST_F(EngineTest, ThreadsOfTheHost) {
  // Each has streams of its own, and waits for itself.
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([i] {
      EXPECT_CUDA(cudaSetDevice(i % 2));
      cudaStream_t stream = openStream();
      float *x = upload<float>({static_cast<float>(i)}, stream);
      for (int k = 0; k < 50; ++k) {
        EXPECT_CUDA(launch(stream, 1, 1, addOne, x, x));
        EXPECT_EQ(read(x, 1, stream)[0], i + k + 1);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace

} // namespace dtc::standin
