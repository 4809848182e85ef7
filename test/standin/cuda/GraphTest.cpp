//===- GraphTest.cpp - Captured graphs on the stand-in of CUDA -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/StandinFixture.h"

#include <functional>
#include <set>
#include <thread>

namespace dtc::standin {

namespace {

__global__ void addTo(float *to, float value) { *to += value; }
__global__ void twice(float *to) { *to *= 2; }
__global__ void copyOne(float *to, const float *from) { *to = *from; }

class GraphTest : public StandinFixture {
protected:
  static cudaError_t begin(cudaStream_t stream) {
    return cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  }
  /// The graph of what `work` gives the stream, ready to be launched.
  static cudaGraphExec_t capture(cudaStream_t stream, const std::function<void()> &work) {
    EXPECT_CUDA(begin(stream));
    work();
    cudaGraph_t graph = nullptr;
    EXPECT_CUDA(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t executable = nullptr;
    EXPECT_CUDA(cudaGraphInstantiate(&executable, graph));
    EXPECT_CUDA(cudaGraphDestroy(graph));
    return executable;
  }
  /// The error that ends a capture in which `work` was called.
  static cudaError_t errorAfter(cudaStream_t stream, const std::function<void()> &work) {
    EXPECT_CUDA(begin(stream));
    work();
    cudaGraph_t graph = nullptr;
    return cudaStreamEndCapture(stream, &graph);
  }
  static void order(cudaStream_t before, cudaStream_t after, cudaEvent_t event) {
    EXPECT_CUDA(cudaEventRecord(event, before));
    EXPECT_CUDA(cudaStreamWaitEvent(after, event));
  }
};

TEST_F(GraphTest, NothingRunsBeforeTheLaunchAndAllAfterEach) {
  cudaStream_t stream = openStream();
  float *x = onDevice<float>(1);
  EXPECT_CUDA(cudaMemsetAsync(x, 0, 4, stream));
  cudaGraphExec_t graph = capture(stream, [&] {
    EXPECT_CUDA(launch(stream, 1, 1, addTo, x, 3.0f));
    EXPECT_CUDA(launch(stream, 1, 1, twice, x));
  });
  EXPECT_EQ(read(x, 1, stream), (std::vector<float>{0}));
  EXPECT_CUDA(cudaGraphLaunch(graph, stream));
  EXPECT_EQ(read(x, 1, stream), (std::vector<float>{6}));
  EXPECT_CUDA(launch(stream, 1, 1, addTo, x, 1.0f));
  EXPECT_CUDA(cudaGraphLaunch(graph, stream));
  EXPECT_CUDA(launch(stream, 1, 1, addTo, x, 0.5f));
  EXPECT_EQ(read(x, 1, stream), (std::vector<float>{20.5f}));
  EXPECT_EQ(counts().graphLaunches, 2u);
  EXPECT_EQ(counts().graphs, 1u);
  EXPECT_CUDA(cudaGraphExecDestroy(graph));
  EXPECT_EQ(counts().graphs, 0u);
}

/// One stream computes, the other copies the result beside a further step of the first.
TEST_F(GraphTest, EdgesAreThoseOfEventsAndNoOthers) {
  for (bool joins : {true, false}) {
    std::set<float> results;
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      restart(seed);
      cudaStream_t a = openStream(), b = openStream();
      float *x = onDevice<float>(1), *y = onDevice<float>(1);
      EXPECT_CUDA(cudaMemsetAsync(x, 0, 4, a));
      EXPECT_CUDA(cudaMemsetAsync(y, 0, 4, a));
      cudaEvent_t computed = openEvent(), copied = openEvent();
      cudaGraphExec_t graph = capture(a, [&] {
        EXPECT_CUDA(launch(a, 1, 1, addTo, x, 3.0f));
        order(a, b, computed);
        EXPECT_CUDA(launch(b, 1, 1, copyOne, y, x));
        // Without the edge the copy may come before or after.
        if (joins)
          order(b, a, copied);
        EXPECT_CUDA(launch(a, 1, 1, twice, x));
        if (!joins)
          order(b, a, copied);
      });
      EXPECT_CUDA(cudaGraphLaunch(graph, a));
      EXPECT_EQ(read(x, 1, a), (std::vector<float>{6}));
      results.insert(read(y, 1, a)[0]);
    }
    EXPECT_EQ(results, joins ? (std::set<float>{3}) : (std::set<float>{3, 6}));
  }
}

TEST_F(GraphTest, OtherStreamsGoOnBesideALaunch) {
  std::set<float> results;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    restart(seed);
    cudaStream_t a = openStream(), b = openStream();
    float *x = onDevice<float>(1), *y = onDevice<float>(1);
    EXPECT_CUDA(cudaMemsetAsync(x, 0, 4, a));
    EXPECT_CUDA(cudaStreamSynchronize(a));
    cudaGraphExec_t graph = capture(a, [&] { EXPECT_CUDA(launch(a, 1, 1, addTo, x, 1.0f)); });
    EXPECT_CUDA(cudaGraphLaunch(graph, a));
    EXPECT_CUDA(launch(b, 1, 1, copyOne, y, x));
    results.insert(read(y, 1, b)[0]);
  }
  EXPECT_EQ(results, (std::set<float>{0, 1}));
}

TEST_F(GraphTest, CapturesThatCudaRefuses) {
  cudaStream_t a = openStream(), b = openStream();
  float *x = onDevice<float>(1);
  cudaEvent_t event = openEvent(), before = openEvent();
  EXPECT_CUDA(cudaEventRecord(before, b));
  EXPECT_EQ(errorAfter(a,
                       [&] {
                         order(a, b, event);
                         EXPECT_CUDA(launch(b, 1, 1, twice, x));
                       }),
            cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(
      errorAfter(
          a, [&] { EXPECT_EQ(cudaStreamWaitEvent(a, before), cudaErrorStreamCaptureIsolation); }),
      cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(errorAfter(a,
                       [&] {
                         void *memory = nullptr;
                         EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorStreamCaptureUnsupported);
                       }),
            cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(errorAfter(
                a, [&] { EXPECT_EQ(cudaStreamSynchronize(a), cudaErrorStreamCaptureUnsupported); }),
            cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(errorAfter(a,
                       [&] {
                         float pageable = 0;
                         EXPECT_EQ(cudaMemcpyAsync(x, &pageable, 4, cudaMemcpyDefault, a),
                                   cudaErrorStreamCaptureUnsupported);
                       }),
            cudaErrorStreamCaptureInvalidated);
  EXPECT_CUDA(begin(a));
  EXPECT_CUDA(begin(b));
  EXPECT_CUDA(cudaEventRecord(event, a));
  EXPECT_EQ(cudaStreamWaitEvent(b, event), cudaErrorStreamCaptureMerge);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorCapturedEvent);
  cudaGraph_t graph = nullptr;
  std::thread([&] {
    EXPECT_CUDA(cudaSetDevice(0));
    EXPECT_EQ(cudaStreamEndCapture(a, &graph), cudaErrorStreamCaptureWrongThread);
    // Another thread's calls are its own matter.
    void *memory = nullptr;
    EXPECT_CUDA(cudaMalloc(&memory, 4));
  }).join();
  for (cudaStream_t stream : {a, b})
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  // Afterwards the streams are as before.
  EXPECT_CUDA(cudaMemsetAsync(x, 0, 4, a));
  EXPECT_EQ(read(x, 1, a), (std::vector<float>{0}));
}

TEST_F(GraphTest, AFailingNodeLosesItsDevice) {
  cudaStream_t stream = openStream();
  float *x = onDevice<float>(1);
  cudaGraphExec_t graph = capture(stream, [&] {
    EXPECT_CUDA(cudaMemsetAsync(x, 0, 4, stream));
    EXPECT_CUDA(launch(stream, 1, 1, twice, x));
  });
  EXPECT_CUDA(cudaGraphLaunch(graph, stream));
  EXPECT_CUDA(cudaStreamSynchronize(stream));
  failWork(1, cudaErrorIllegalAddress);
  EXPECT_CUDA(cudaGraphLaunch(graph, stream));
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
}

} // namespace

} // namespace dtc::standin
