//===- BatchLoaderTest.cpp - Tests of prefetched batches ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/BatchLoader.h"

#include "test/lib/RandomCases.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"

#include <atomic>
#include <gtest/gtest.h>
#include <latch>
#include <random>
#include <set>
#include <stdexcept>

namespace batchLoaderTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

constexpr int64_t kNoLast = INT64_MAX / 2;

/// A batch that says its number.
Batch batchOf(int64_t number) {
  Batch batch;
  batch.emplace("n", TensorType{DType::I32, {1}}).first->second.as<int32_t>()[0] =
      static_cast<int32_t>(number);
  return batch;
}

/// The number that a loader's batch says; -1 for an error.
int64_t taken(BatchLoader &loader, int64_t number) {
  auto batch = loader.take(number);
  EXPECT_OK(batch);
  return batch ? batch->at("n").as<int32_t>()[0] : -1;
}

std::unique_ptr<BatchLoader> start(BatchLoader::Read read, size_t ahead, int64_t last = kNoLast) {
  auto loader = BatchLoader::start(std::move(read), ahead, last);
  EXPECT_OK(loader);
  return std::move(*loader);
}

} // namespace

TEST(BatchLoader, GivesBatchesInOrder) {
  for (size_t ahead : {0, 1, 2, 7}) {
    auto loader = start(batchOf, ahead, 50);
    for (int64_t number = 1; number <= 50; ++number)
      EXPECT_EQ(taken(*loader, number), number);
  }
}

TEST(BatchLoader, StartsAgainAtAnyNumber) {
  dtc::test::forEachRandomCase(50, [](uint64_t seed) {
    std::mt19937_64 random(seed);
    auto loader = start(batchOf, 1 + random() % 4, 1 + static_cast<int64_t>(random() % 40));
    int64_t number = 1;
    for (int i = 0; i < 100; ++i) {
      number = random() % 4 == 0 ? static_cast<int64_t>(random() % 50) : number + 1;
      ASSERT_EQ(taken(*loader, number), number);
    }
  });
}

TEST(BatchLoader, ReadsAsFarAheadAsItMay) {
  std::atomic<int64_t> largest = 0;
  std::latch third(1);
  auto loader = start(
      [&](int64_t number) {
        largest = number;
        if (number == 3)
          third.count_down();
        return batchOf(number);
      },
      2);
  EXPECT_EQ(largest, 0); // none before the first is taken
  EXPECT_EQ(taken(*loader, 1), 1);
  third.wait(); // and then two, though nobody takes them
  loader.reset();
  EXPECT_EQ(largest, 3);
}

TEST(BatchLoader, ReadsNoneAfterTheLast) {
  std::atomic<int64_t> largest = 0;
  auto read = [&](int64_t number) {
    largest = std::max(largest.load(), number);
    return batchOf(number);
  };
  auto loader = start(read, 5, 3);
  for (int64_t number : {1, 2, 3})
    EXPECT_EQ(taken(*loader, number), number);
  EXPECT_EQ(taken(*loader, 1), 1); // as an evaluation does
  EXPECT_EQ(taken(*loader, 2), 2);
  EXPECT_EQ(largest, 3);
  EXPECT_EQ(taken(*loader, 4), 4); // unless it is taken
}

TEST(BatchLoader, AnErrorBelongsToItsBatch) {
  std::atomic<bool> fails = true;
  auto loader = start(
      [&](int64_t number) -> Expected<Batch> {
        if (number == 3 && fails)
          return Error{"batch 3 is bad"};
        return batchOf(number);
      },
      4);
  EXPECT_EQ(taken(*loader, 1), 1);
  EXPECT_EQ(taken(*loader, 2), 2);
  EXPECT_ERROR(loader->take(3), "batch 3 is bad");
  EXPECT_EQ(taken(*loader, 4), 4);
  EXPECT_ERROR(loader->take(3), "batch 3 is bad");
  fails = false;
  EXPECT_EQ(taken(*loader, 3), 3);
  // One that is not taken is nobody's.
  fails = true;
  EXPECT_EQ(taken(*loader, 2), 2);
  EXPECT_EQ(taken(*loader, 4), 4);
}

TEST(BatchLoader, AnExceptionBelongsToItsBatch) {
  auto loader = start(
      [](int64_t number) -> Expected<Batch> {
        if (number == 2)
          throw std::bad_alloc();
        return batchOf(number);
      },
      2);
  EXPECT_EQ(taken(*loader, 1), 1);
  EXPECT_THROW((void)loader->take(2), std::bad_alloc);
  EXPECT_EQ(taken(*loader, 3), 3);
}

TEST(BatchLoader, StopsWhereverItIs) {
  // Without a take, with a full queue, and while it reads.
  for (int taking = 0; taking < 20; ++taking) {
    auto loader = start(batchOf, 3);
    for (int64_t number = 1; number <= taking; ++number)
      EXPECT_EQ(taken(*loader, number), number);
  }
}

TEST(BatchLoader, AStartDuringAReadDropsItsBatch) {
  // The read of batch 2 is at work when batch 7 is asked for, and ends afterwards.
  std::latch isReading(1), mayEnd(1);
  auto loader = start(
      [&](int64_t number) {
        if (number == 2) {
          isReading.count_down();
          mayEnd.wait();
        }
        return batchOf(number);
      },
      3);
  EXPECT_EQ(taken(*loader, 1), 1);
  isReading.wait();
  std::thread other([&] { mayEnd.count_down(); });
  EXPECT_EQ(taken(*loader, 7), 7);
  EXPECT_EQ(taken(*loader, 8), 8);
  other.join();
}

TEST(BatchLoader, GivesTheBatchesOfADataSet) {
  TempDir dir;
  std::string text;
  for (int i = 0; i < 1000; ++i)
    text += static_cast<char>('a' + i % 26);
  TensorType type{DType::I32, {4, 5}};
  for (Sampling sampling : {Sampling::Random, Sampling::Epochs}) {
    auto source = openDataSource({dir.write("x.txt", text)},
                                 {{"tokens", type, 0, {}}, {"labels", type, 0, {}}}, {1, sampling});
    ASSERT_OK(source);
    BatchRows rows = {{"tokens", {{1, 3}}}};
    auto loader = start([&](int64_t number) { return (*source)->batch(number, rows); }, 3);
    for (int64_t number = 1; number <= 100; ++number) {
      auto batch = loader->take(number), expected = (*source)->batch(number, rows);
      ASSERT_OK(batch);
      EXPECT_EQ(batch->at("tokens").bytes, expected->at("tokens").bytes);
      EXPECT_EQ(batch->at("labels").bytes, expected->at("labels").bytes);
    }
    std::filesystem::resize_file(dir.path("x.txt"), 0);
    EXPECT_ERROR(loader->take(1000), "x.txt: had 1000 bytes when it was opened, and has 0 now");
  }
}

TEST(BatchLoader, HoldsTheBatchesOfAStep) {
  std::vector<DataInput> small = {{"x", {DType::F32, {4, 256}}, 0, {}}}; // 4 KiB
  EXPECT_EQ(batchesAhead(small, 1), 2u);
  EXPECT_EQ(batchesAhead(small, 8), 8u);
  EXPECT_EQ(batchesAhead(small, 1 << 20), (size_t{64} << 20) / 4097);
  std::vector<DataInput> large = {{"x", {DType::F32, {1 << 10, 1 << 15}}, 0, {}}}; // 128 MiB
  EXPECT_EQ(batchesAhead(large, 8), 2u);
}

} // namespace batchLoaderTest
