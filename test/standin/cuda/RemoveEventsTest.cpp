//===- RemoveEventsTest.cpp - Programs without one of their events -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/RemoveEvents.h"
#include "test/standin/cuda/StandinFixture.h"

namespace dtc::standin {

namespace {

__global__ void increment(float *to, const float *from) { *to = *from + 1; }

class RemoveEventsTest : public StandinFixture {
protected:
  static std::string bytes(const std::vector<float> &values) {
    return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float)};
  }
  static void order(cudaStream_t first, cudaStream_t last) {
    cudaEvent_t event = openEvent();
    EXPECT_CUDA(cudaEventRecord(event, first));
    EXPECT_CUDA(cudaStreamWaitEvent(last, event));
  }
};

TEST_F(RemoveEventsTest, EveryNeededEventIsFoundAndNoOther) {
  RemovedEvents removed = removeEvents(
      [] {
        cudaStream_t a = openStream(), b = openStream(), c = openStream();
        float *x = upload<float>({0}, a), *y = onDevice<float>(1), *z = onDevice<float>(1);
        float *w = onDevice<float>(1);
        order(a, b); // 0
        EXPECT_CUDA(launch(b, 1, 1, increment, y, x));
        order(b, c); // 1
        order(a, c); // 2 is implied by 0 and 1
        EXPECT_CUDA(launch(c, 1, 1, increment, z, y));
        EXPECT_CUDA(launch(c, 1, 1, increment, w, x));
        order(c, a); // 3: x is written again
        EXPECT_CUDA(launch(a, 1, 1, increment, x, x));
        order(a, b); // 4
        EXPECT_CUDA(launch(b, 1, 1, increment, y, x));
        EXPECT_CUDA(cudaDeviceSynchronize());
        std::vector<float> values = {read(y, 1, b)[0], read(z, 1, b)[0], read(w, 1, b)[0]};
        return bytes(values);
      },
      20);
  EXPECT_EQ(removed.unstableSeed, std::nullopt);
  EXPECT_EQ(removed.calls.size(), 10u);
  EXPECT_EQ(removed.redundant(), "record 2, wait 2");
}

TEST_F(RemoveEventsTest, ProgramsThatRaceAreUnstable) {
  RemovedEvents removed = removeEvents(
      [] {
        cudaStream_t a = openStream(), b = openStream();
        float *x = upload<float>({0}, a);
        EXPECT_CUDA(launch(a, 1, 1, increment, x, x));
        return bytes(read(x, 1, b));
      },
      20);
  EXPECT_NE(removed.unstableSeed, std::nullopt);
  EXPECT_TRUE(removed.calls.empty());
}

} // namespace

} // namespace dtc::standin
