//===- NcclTest.cpp - Collectives on the stand-in of CUDA ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/StandinFixture.h"

#include <atomic>
#include <chrono>
#include <list>
#include <nccl.h>
#include <thread>

namespace dtc::standin {

namespace {

class NcclTest : public StandinFixture {
protected:
  /// Makes communicators of `ranks` ranks on as many devices, which do not block.
  void connect(int ranks, std::chrono::milliseconds patience = std::chrono::seconds(20)) {
    Settings settings;
    settings.devices = ranks;
    settings.patience = patience;
    restart(settings);
    for (int rank = 0; rank < ranks; ++rank) {
      ASSERT_CUDA(cudaSetDevice(rank));
      streams.push_back(openStream());
    }
    communicators = connectMore(ranks);
  }
  static std::vector<ncclComm_t> connectMore(int ranks) {
    ncclUniqueId id;
    EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    std::vector<ncclComm_t> connected(static_cast<size_t>(ranks));
    ncclGroupStart();
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_CUDA(cudaSetDevice(rank));
      EXPECT_EQ(ncclCommInitRankConfig(&connected[size_t(rank)], ranks, id, rank, &config),
                ncclSuccess);
    }
    ncclGroupEnd();
    for (ncclComm_t communicator : connected)
      EXPECT_EQ(settle(communicator), ncclSuccess);
    return connected;
  }
  void TearDown() override {
    ncclGroupStart();
    for (ncclComm_t communicator : communicators)
      if (communicator)
        ncclCommAbort(communicator);
    ncclGroupEnd();
    StandinFixture::TearDown();
  }
  /// A graph with a sum of all ranks, for one of them.
  cudaGraphExec_t capture(size_t rank, float *value) {
    EXPECT_CUDA(cudaSetDevice(int(rank)));
    EXPECT_CUDA(cudaStreamBeginCapture(streams[rank], cudaStreamCaptureModeThreadLocal));
    (void)ncclAllReduce(value, value, 1, ncclFloat32, ncclSum, communicators[rank], streams[rank]);
    EXPECT_EQ(settle(communicators[rank]), ncclSuccess);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    EXPECT_CUDA(cudaStreamEndCapture(streams[rank], &graph));
    EXPECT_CUDA(cudaGraphInstantiate(&executable, graph, 0));
    EXPECT_CUDA(cudaGraphDestroy(graph));
    return executable;
  }

  /// Asks until the communicator has taken all calls.
  static ncclResult_t settle(ncclComm_t communicator) {
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress)
      EXPECT_EQ(ncclCommGetAsyncError(communicator, &state), ncclSuccess);
    return state;
  }
  void settleAll() {
    for (ncclComm_t communicator : communicators)
      EXPECT_EQ(settle(communicator), ncclSuccess);
  }
  /// The value on a device of a rank.
  float *give(size_t rank, std::vector<float> values) {
    EXPECT_CUDA(cudaSetDevice(int(rank)));
    kept.push_back(std::move(values));
    return upload(kept.back(), streams[rank]);
  }
  std::vector<float> take(size_t rank, const float *from, size_t count) {
    EXPECT_CUDA(cudaSetDevice(int(rank)));
    return read(from, count, streams[rank]);
  }

  std::vector<ncclComm_t> communicators;
  std::vector<cudaStream_t> streams;
  std::list<std::vector<float>> kept;
};

TEST_F(NcclTest, MembersWaitForTheLast) {
  connect(3);
  std::vector<float *> values;
  for (size_t rank = 0; rank < 3; ++rank)
    values.push_back(give(rank, {float(rank + 1), 10 * float(rank + 1)}));
  // Two come; their streams stand still.
  for (size_t rank : {0, 2})
    (void)ncclAllReduce(values[rank], values[rank], 2, ncclFloat32, ncclSum, communicators[rank],
                        streams[rank]);
  settleAll();
  EXPECT_CUDA(cudaSetDevice(0));
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(cudaStreamQuery(streams[0]), cudaErrorNotReady);
  (void)ncclAllReduce(values[1], values[1], 2, ncclFloat32, ncclSum, communicators[1], streams[1]);
  settleAll();
  for (size_t rank = 0; rank < 3; ++rank)
    EXPECT_EQ(take(rank, values[rank], 2), (std::vector<float>{6, 60}));
}

/// The order in which NCCL's ring adds an element that the rank owns.
static float ringSum(const std::vector<std::vector<float>> &values, size_t i, size_t owner) {
  const size_t ranks = values.size();
  float sum = values[(owner + 1) % ranks][i];
  for (size_t step = 2; step <= ranks; ++step)
    sum = values[(owner + step) % ranks][i] + sum;
  return sum;
}

TEST_F(NcclTest, PartsAreAddedRoundTheRing) {
  // The order decides about the bits of each sum of three, whose first two add up first.
  const std::vector<std::vector<float>> values = {
      std::vector<float>(12, 0x1p24F), std::vector<float>(12, 1), std::vector<float>(12, -0x1p24F)};
  connect(3);
  std::vector<float *> in, parts;
  for (size_t rank = 0; rank < 3; ++rank) {
    in.push_back(give(rank, values[rank]));
    parts.push_back(onDevice<float>(4));
  }
  for (size_t rank = 0; rank < 3; ++rank) {
    (void)ncclReduceScatter(in[rank], parts[rank], 4, ncclFloat32, ncclSum, communicators[rank],
                            streams[rank]);
    EXPECT_EQ(settle(communicators[rank]), ncclSuccess);
    (void)ncclAllReduce(in[rank], in[rank], 12, ncclFloat32, ncclSum, communicators[rank],
                        streams[rank]);
    EXPECT_EQ(settle(communicators[rank]), ncclSuccess);
  }
  std::vector<float> expected;
  for (size_t i = 0; i < 12; ++i)
    expected.push_back(ringSum(values, i, i / 4)); // 16 bytes of each rank
  EXPECT_EQ(expected, (std::vector<float>{1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0}));
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(take(rank, in[rank], 12), expected);
    EXPECT_EQ(take(rank, parts[rank], 4),
              std::vector<float>(expected.begin() + std::ptrdiff_t(4 * rank),
                                 expected.begin() + std::ptrdiff_t(4 * rank + 4)));
  }
}

// As NCCL does: none, fewer at most than at least, and what it would silently make 64.
TEST_F(NcclTest, ChannelsAreInRange) {
  connect(1);
  collect();
  auto refuses = [](int least, int most) {
    ncclUniqueId id;
    EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    config.minCTAs = least;
    config.maxCTAs = most;
    ncclComm_t communicator = nullptr;
    ncclResult_t result = ncclCommInitRankConfig(&communicator, 1, id, 0, &config);
    if (result == ncclSuccess)
      EXPECT_EQ(ncclCommAbort(communicator), ncclSuccess);
    return result != ncclSuccess;
  };
  constexpr int unset = NCCL_CONFIG_UNDEF_INT;
  EXPECT_FALSE(refuses(unset, unset));
  EXPECT_FALSE(refuses(unset, 1));
  EXPECT_FALSE(refuses(2, 64));
  for (auto [least, most] : {std::pair(unset, 0), {unset, 65}, {0, unset}, {3, 2}}) {
    EXPECT_TRUE(refuses(least, most)) << least << ", " << most;
    expectViolation("minCTAs or maxCTAs out of range");
  }
}

TEST_F(NcclTest, ConnectionsTakeMemory) {
  connect(2);
  auto freeBytes = [](int device) {
    size_t free = 0, total = 0;
    EXPECT_CUDA(cudaSetDevice(device));
    EXPECT_CUDA(cudaMemGetInfo(&free, &total));
    return free;
  };
  float *values[] = {give(0, {1}), give(1, {2})};
  const size_t before[] = {freeBytes(0), freeBytes(1)};
  auto add = [&] {
    for (size_t rank : {0, 1})
      (void)ncclAllReduce(values[rank], values[rank], 1, ncclFloat32, ncclSum, communicators[rank],
                          streams[rank]);
    settleAll();
    for (int device : {0, 1})
      (void)take(size_t(device), values[device], 1);
  };
  for (int i = 0; i < 2; ++i) {
    add();
    for (int device : {0, 1})
      EXPECT_EQ(before[device] - freeBytes(device), 2 * kNcclConnectionBytes);
  }
  // A message takes some where it is received.
  (void)ncclSend(values[0], 1, ncclFloat32, 1, communicators[0], streams[0]);
  (void)ncclRecv(values[1], 1, ncclFloat32, 0, communicators[1], streams[1]);
  settleAll();
  EXPECT_EQ(before[0] - freeBytes(0), 2 * kNcclConnectionBytes);
  EXPECT_EQ(before[1] - freeBytes(1), 4 * kNcclConnectionBytes);
  for (size_t rank : {0, 1}) {
    (void)take(rank, values[rank], 1);
    EXPECT_EQ(ncclCommDestroy(std::exchange(communicators[rank], nullptr)), ncclSuccess);
    EXPECT_EQ(freeBytes(int(rank)), before[rank]);
  }
}

TEST_F(NcclTest, WithoutMemoryACallFails) {
  Settings settings;
  settings.memoryBytes = 2 * kNcclConnectionBytes; // with which nothing else has room
  restart(settings);
  for (int rank : {0, 1}) {
    ASSERT_CUDA(cudaSetDevice(rank));
    streams.push_back(openStream());
  }
  communicators = connectMore(2);
  float *value = give(0, {1});
  (void)ncclAllReduce(value, value, 1, ncclFloat32, ncclSum, communicators[0], streams[0]);
  EXPECT_EQ(settle(communicators[0]), ncclUnhandledCudaError);
  EXPECT_NE(std::string(ncclGetLastError(communicators[0])).find("out of memory"),
            std::string::npos);
}

TEST_F(NcclTest, AStalledCollectiveEndsWithItsCommunicator) {
  connect(2);
  float *values[] = {give(0, {1}), give(1, {2})};
  stallCollective(0, 1);
  for (size_t rank : {0, 1})
    (void)ncclAllReduce(values[rank], values[rank], 1, ncclFloat32, ncclSum, communicators[rank],
                        streams[rank]);
  settleAll();
  EXPECT_EQ(collectivesOf(0), 1u);
  EXPECT_CUDA(cudaSetDevice(1));
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(cudaStreamQuery(streams[1]), cudaErrorNotReady);
  for (size_t rank : {0, 1})
    EXPECT_EQ(ncclCommAbort(std::exchange(communicators[rank], nullptr)), ncclSuccess);
  EXPECT_CUDA(cudaStreamSynchronize(streams[1]));
}

TEST_F(NcclTest, MessagesMatchInOrder) {
  connect(2);
  float *from = give(0, {1, 2, 3}), *to = give(1, {0, 0, 0});
  ncclGroupStart();
  for (size_t i = 0; i < 3; ++i)
    ncclSend(from + i, 1, ncclFloat32, 1, communicators[0], streams[0]);
  ncclGroupEnd();
  settleAll();
  for (size_t i = 0; i < 3; ++i) {
    (void)ncclRecv(to + 2 - i, 1, ncclFloat32, 0, communicators[1], streams[1]);
    settleAll();
  }
  EXPECT_EQ(take(1, to, 3), (std::vector<float>{3, 2, 1}));
}

TEST_F(NcclTest, MembersThatCallOtherThings) {
  connect(2);
  float *a = give(0, {1, 2}), *b = give(1, {3, 4});
  collect();
  (void)ncclAllReduce(a, a, 2, ncclFloat32, ncclSum, communicators[0], streams[0]);
  settleAll();
  (void)ncclAllReduce(b, b, 1, ncclFloat32, ncclSum, communicators[1], streams[1]);
  settleAll();
  expectViolation("rank 1 calls ncclAllReduce of 1 elements");
}

TEST_F(NcclTest, CallsThatAreNotAllowed) {
  connect(2);
  float *a = give(0, {1, 2}), *b = give(1, {3, 4});
  collect();
  (void)ncclAllReduce(a, a, 2, ncclFloat32, ncclSum, communicators[0], streams[1]);
  expectViolation("on a stream of device 1");
  (void)ncclAllReduce(b, a, 2, ncclFloat32, ncclSum, communicators[0], streams[0]);
  expectViolation("device 0");
  (void)ncclAllReduce(a, a, 3, ncclFloat32, ncclSum, communicators[0], streams[0]);
  expectViolation("not all in an allocation");
  // Some call is not taken at once; another one before that is wrong.
  for (int i = 0; i < 40; ++i)
    if (ncclAllReduce(a, a, 2, ncclFloat32, ncclSum, communicators[0], streams[0]) ==
        ncclInProgress)
      break;
  (void)ncclAllReduce(a, a, 2, ncclFloat32, ncclSum, communicators[0], streams[0]);
  expectViolation("in progress");
}

TEST_F(NcclTest, AnAbortLetsTheStreamGoOn) {
  connect(2);
  float *a = give(0, {1, 2});
  (void)ncclAllReduce(a, a, 2, ncclFloat32, ncclSum, communicators[0], streams[0]);
  settleAll();
  EXPECT_EQ(ncclCommAbort(communicators[0]), ncclSuccess);
  communicators[0] = nullptr;
  EXPECT_CUDA(cudaSetDevice(0));
  EXPECT_CUDA(cudaStreamSynchronize(streams[0]));
}

TEST_F(NcclTest, TheEndWaitsForGraphs) {
  connect(2, std::chrono::milliseconds(50));
  cudaGraphExec_t first = capture(0, give(0, {1})), second = capture(1, give(1, {2}));
  collect();
  EXPECT_EQ(ncclCommAbort(communicators[0]), ncclSuccess);
  expectViolation("rank 0 has waited 50 ms for the end of a graph");
  EXPECT_EQ(ncclCommDestroy(communicators[1]), ncclSuccess);
  expectViolation("rank 1 has waited 50 ms for the end of a graph");
  communicators.clear();
  EXPECT_CUDA(cudaGraphExecDestroy(first));
  EXPECT_CUDA(cudaGraphExecDestroy(second));
}

TEST_F(NcclTest, TheEndComesAfterTheGraphs) {
  connect(2);
  cudaGraphExec_t graph = capture(0, give(0, {1}));
  // It has no other rank to meet: only the abort ends it.
  EXPECT_CUDA(cudaGraphLaunch(graph, streams[0]));
  std::atomic<bool> isDestroyed = false;
  std::thread aborting([&, communicator = std::exchange(communicators[0], nullptr)] {
    EXPECT_EQ(ncclCommAbort(communicator), ncclSuccess);
    EXPECT_TRUE(isDestroyed);
  });
  EXPECT_CUDA(cudaSetDevice(0));
  EXPECT_CUDA(cudaStreamSynchronize(streams[0]));
  isDestroyed = true;
  EXPECT_CUDA(cudaGraphExecDestroy(graph));
  aborting.join();
}

TEST_F(NcclTest, AnAbortWaitsForKernelsOfOthers) {
  for (bool isGrouped : {false, true}) {
    connect(2, std::chrono::milliseconds(isGrouped ? 20000 : 50));
    std::vector<ncclComm_t> others = connectMore(2);
    float *value = give(0, {1});
    float *other = give(1, {1});
    // The first collective of a communicator may wait for the device, and so has none before it.
    for (const std::vector<ncclComm_t> *all : {&others, &communicators}) {
      for (size_t rank : {0, 1}) {
        EXPECT_CUDA(cudaSetDevice(int(rank)));
        float *own = rank == 0 ? value : other;
        (void)ncclAllReduce(own, own, 1, ncclFloat32, ncclSum, (*all)[rank], streams[rank]);
        EXPECT_EQ(settle((*all)[rank]), ncclSuccess);
      }
      for (size_t rank : {0, 1}) {
        EXPECT_CUDA(cudaSetDevice(int(rank)));
        EXPECT_CUDA(cudaStreamSynchronize(streams[rank]));
      }
    }
    EXPECT_CUDA(cudaSetDevice(0));
    // Rank 1 comes to none of the two.
    for (ncclComm_t communicator : {others[0], communicators[0]}) {
      (void)ncclAllReduce(value, value, 1, ncclFloat32, ncclSum, communicator, streams[0]);
      EXPECT_EQ(settle(communicator), ncclSuccess);
    }
    communicators.insert(communicators.end(), others.begin(), others.end());
    collect();
    if (isGrouped)
      ncclGroupStart();
    for (ncclComm_t communicator : std::exchange(communicators, {}))
      EXPECT_EQ(ncclCommAbort(communicator), ncclSuccess);
    if (isGrouped)
      EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    if (!isGrouped)
      expectViolation("rank 0 has waited 50 ms for the end of a kernel");
    EXPECT_TRUE(violations.empty());
    streams.clear();
  }
}

TEST_F(NcclTest, ALostMemberIsAnErrorThatComesLater) {
  connect(2);
  float *a = give(0, {1, 2}), *b = give(1, {3, 4});
  EXPECT_CUDA(cudaSetDevice(1));
  EXPECT_CUDA(cudaStreamSynchronize(streams[1]));
  (void)ncclAllReduce(b, b, 2, ncclFloat32, ncclSum, communicators[1], streams[1]);
  settleAll();
  loseDevice(1, cudaErrorLaunchFailure);
  EXPECT_CUDA(cudaSetDevice(0));
  (void)ncclAllReduce(a, a, 2, ncclFloat32, ncclSum, communicators[0], streams[0]);
  EXPECT_EQ(settle(communicators[0]), ncclSuccess);
  EXPECT_CUDA(cudaStreamSynchronize(streams[0]));
  EXPECT_EQ(settle(communicators[0]), ncclRemoteError);
}

} // namespace

} // namespace dtc::standin
