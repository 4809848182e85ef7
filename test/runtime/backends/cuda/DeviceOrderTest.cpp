//===- DeviceOrderTest.cpp - Queues and events of CUDA devices ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A loop as a train step has it: batches come through staging memory and one queue, kernels of
// another queue use them, and results go back through a third. Without any one of its events the
// results have to be wrong.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/CudaBackend.h"
#include "test/lib/plans/Expect.h"
#include "test/standin/cuda/RemoveEvents.h"

#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>

namespace dtc::runtime::deviceOrderTest {

namespace {

using testing::check;
using testing::take;

constexpr size_t kElements = 5, kBytes = kElements * sizeof(float), kSteps = 4;

/// Adds what it finds to a list of the host.
class Collect final : public HostWork {
public:
  Collect(const std::byte *from, std::string &to) : from(from), to(to) {}
  MaybeError run() override {
    to.append(reinterpret_cast<const char *>(from), kBytes);
    return std::nullopt;
  }

private:
  const std::byte *from;
  std::string &to;
};

/// The sums of all batches up to each step, as bytes.
std::string runLoop() {
  std::unique_ptr<Backend> backend = createCudaBackend();
  std::unique_ptr<Device> device = take(backend->openDevice(0));
  TensorType type{DType::F32, {int64_t(kElements)}};
  std::unique_ptr<Kernel> add = take(backend->prepare({"add", {type, type}, {type}, {}, {}}));
  auto staging = take(device->allocateStaging(kBytes)), out = take(device->allocateStaging(kBytes));
  auto batch = take(device->allocate(kBytes)), sum = take(device->allocate(kBytes));
  auto result = take(device->allocate(kBytes));
  auto copies = take(device->openQueue(QueueKind::Copy));
  auto compute = take(device->openQueue(QueueKind::Compute));
  auto results = take(device->openQueue(QueueKind::Communication));
  auto arrived = take(device->createEvent(false)), used = take(device->createEvent(false));
  auto computed = take(device->createEvent(false)), sent = take(device->createEvent(false));

  std::string collected;
  std::vector<std::unique_ptr<Collect>> work;
  check(compute->clear(sum->data(), kBytes));
  for (size_t step = 0; step < kSteps; ++step) {
    // The staging memory is free when the last copy has read it.
    check(arrived->wait());
    std::vector<float> values(kElements);
    std::iota(values.begin(), values.end(), static_cast<float>(10 * step + 1));
    std::memcpy(staging->data(), values.data(), kBytes);
    check(copies->wait(*used));
    check(copies->copy(batch->data(), staging->data(), kBytes));
    check(copies->record(*arrived));

    check(compute->wait(*arrived));
    void *inputs[] = {sum->data(), batch->data()}, *outputs[] = {sum->data()};
    check(compute->enqueue(*add, {inputs, outputs, {}, nullptr}));
    check(compute->record(*used));
    check(compute->wait(*sent));
    check(compute->copy(result->data(), sum->data(), kBytes));
    check(compute->record(*computed));

    check(results->wait(*computed));
    check(results->copy(out->data(), result->data(), kBytes));
    check(results->record(*sent));
    work.push_back(std::make_unique<Collect>(out->data(), collected));
    check(results->call(*work.back()));
  }
  check(results->finish());
  check(compute->finish());
  check(copies->finish());
  return collected;
}

std::string expected() {
  std::vector<float> sums(kElements), all;
  for (size_t step = 0; step < kSteps; ++step) {
    for (size_t i = 0; i < kElements; ++i)
      sums[i] += static_cast<float>(10 * step + 1 + i);
    all.insert(all.end(), sums.begin(), sums.end());
  }
  return {reinterpret_cast<const char *>(all.data()), all.size() * sizeof(float)};
}

TEST(DeviceOrder, OrdersDoNotMatter) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    standin::Settings settings;
    settings.seed = seed;
    standin::reset(settings);
    ASSERT_EQ(runLoop(), expected()) << "DTC_CUDA_STANDIN_SEED=" << seed;
    EXPECT_EQ(standin::counts().allocations + standin::counts().streams + standin::counts().events,
              0u);
  }
  standin::reset();
}

TEST(DeviceOrder, EveryEventIsNeeded) {
  standin::RemovedEvents removed = standin::removeEvents(runLoop, 30);
  EXPECT_EQ(removed.unstableSeed, std::nullopt);
  EXPECT_GE(removed.calls.size(), 8 * (kSteps - 1));
  // Record 0 is that from which the device counts time. In the first step nothing has been recorded
  // that `copies` and `compute` could wait for (waits 0 and 2), and after the last one nothing
  // waits for `used` and `sent` (records 14 and 16).
  EXPECT_EQ(removed.redundant(), "record 0, record 14, record 16, wait 0, wait 2");
}

} // namespace

} // namespace dtc::runtime::deviceOrderTest
