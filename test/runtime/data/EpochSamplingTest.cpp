//===- EpochSamplingTest.cpp - Each sample once in an epoch ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/DataSource.h"
#include "runtime/data/Safetensors.h"
#include "test/lib/RandomCases.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

namespace epochSamplingTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

/// A file of `count` samples, each with its number, read in batches.
std::unique_ptr<DataSource> numbers(const TempDir &dir, int64_t count, int64_t batch,
                                    uint64_t seed) {
  HostTensor x(TensorType{DType::I32, {count}});
  for (int64_t i = 0; i < count; ++i)
    x.as<int32_t>()[i] = static_cast<int32_t>(i);
  std::string path = dir.path(std::to_string(count) + ".safetensors");
  EXPECT_OK(writeSafetensors(path, std::map<std::string, HostTensor>{{"x", x}}));
  auto source =
      openDataSource({path}, {{"x", {DType::I32, {batch}}, 0, {}}}, {seed, Sampling::Epochs});
  EXPECT_OK(source);
  return std::move(*source);
}

/// The samples of batches 1 to `batches`, one after the other.
std::vector<int32_t> sequenceOf(const DataSource &source, int64_t batches) {
  std::vector<int32_t> sequence;
  for (int64_t number = 1; number <= batches; ++number) {
    auto batch = source.batch(number);
    EXPECT_OK(batch);
    const auto *first = batch->at("x").as<int32_t>();
    sequence.insert(sequence.end(), first, first + source.batchSize());
  }
  return sequence;
}

} // namespace

TEST(EpochSampling, EachSampleIsThereOnceInAnEpoch) {
  dtc::test::forEachRandomCase(40, [](uint64_t seed) {
    std::mt19937_64 random(seed);
    TempDir dir;
    auto count = static_cast<int64_t>(1 + random() % (uint64_t{1} << (1 + random() % 8)));
    auto batch = static_cast<int64_t>(1 + random() % 9);
    auto source = numbers(dir, count, batch, random());
    EXPECT_EQ(source->samplesPerEpoch(), static_cast<uint64_t>(count));
    std::vector<int32_t> sequence = sequenceOf(*source, 3 * count / batch + 1), epochBefore;
    for (int epoch = 0; epoch < 3; ++epoch) {
      auto begin = sequence.begin() + epoch * count;
      std::vector<int32_t> order(begin, begin + count), sorted = order;
      std::sort(sorted.begin(), sorted.end());
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(sorted[static_cast<size_t>(i)], i);
      // By accident in one of 10! cases.
      EXPECT_TRUE(count < 10 || order != epochBefore);
      epochBefore = order;
    }
  });
}

TEST(EpochSampling, TheSequenceDoesNotDependOnTheBatch) {
  TempDir dir;
  std::vector<int32_t> ones = sequenceOf(*numbers(dir, 23, 1, 5), 60);
  EXPECT_EQ(sequenceOf(*numbers(dir, 23, 4, 5), 15), ones);
  EXPECT_EQ(sequenceOf(*numbers(dir, 23, 30, 5), 2), ones); // a batch may have more than an epoch
  EXPECT_NE(sequenceOf(*numbers(dir, 23, 1, 6), 60), ones);
}

TEST(EpochSampling, AnyBatchCanBeReadFirst) {
  TempDir dir;
  auto source = numbers(dir, 23, 4, 5);
  std::vector<int32_t> sequence = sequenceOf(*source, 20);
  auto again = numbers(dir, 23, 4, 5);
  for (int64_t number : {20, 7, 1, 13}) {
    auto batch = again->batch(number);
    ASSERT_OK(batch);
    EXPECT_TRUE(std::equal(batch->at("x").as<int32_t>(), batch->at("x").as<int32_t>() + 4,
                           sequence.begin() + (number - 1) * 4));
  }
}

TEST(EpochSampling, WindowsOfTokensCoverAFile) {
  TempDir dir;
  TensorType type{DType::I32, {3, 4}};
  // 6 windows of 4; one of the last 3 bytes is a label.
  auto source =
      openDataSource({dir.write("a.txt", "abcdefghijklmnopqrstuvwxyz0")},
                     {{"tokens", type, 0, {}}, {"labels", type, 0, {}}}, {1, Sampling::Epochs});
  ASSERT_OK(source);
  EXPECT_EQ((*source)->samplesPerEpoch(), 6u);
  std::string tokens, labels;
  for (int64_t number : {1, 2}) {
    auto batch = (*source)->batch(number);
    ASSERT_OK(batch);
    for (int i = 0; i < 12; ++i) {
      tokens += static_cast<char>(batch->at("tokens").as<int32_t>()[i]);
      labels += static_cast<char>(batch->at("labels").as<int32_t>()[i]);
    }
  }
  for (size_t i = 0; i < tokens.size(); ++i)
    EXPECT_EQ(labels[i], tokens[i] + 1);
  std::sort(tokens.begin(), tokens.end());
  EXPECT_EQ(tokens, "abcdefghijklmnopqrstuvwx");
}

TEST(BatchRows, AreThoseOfTheBatch) {
  TempDir dir;
  TensorType type{DType::I32, {8, 3}};
  std::string text = "the quick brown fox jumps over the lazy dog";
  for (Sampling sampling : {Sampling::Random, Sampling::Epochs}) {
    auto source = openDataSource({dir.write("a.txt", text)},
                                 {{"tokens", type, 0, {}}, {"labels", type, 0, {}}}, {1, sampling});
    ASSERT_OK(source);
    auto whole = (*source)->batch(5);
    auto part = (*source)->batch(5, {{"tokens", {{1, 3}, {3, 3}, {6, 8}}}, {"labels", {}}});
    ASSERT_OK(part);
    EXPECT_EQ(part->at("tokens").type.str(), "i32[4,3]");
    EXPECT_EQ(part->at("labels").type.str(), "i32[0,3]");
    const auto *all = whole->at("tokens").as<int32_t>(), *some = part->at("tokens").as<int32_t>();
    EXPECT_TRUE(std::equal(some, some + 6, all + 3));
    EXPECT_TRUE(std::equal(some + 6, some + 12, all + 18));
    // An input that is not named is whole; so are sequential batches.
    part = (*source)->sequentialBatch(0, {{"labels", {{7, 8}}}});
    ASSERT_OK(part);
    EXPECT_EQ(part->at("tokens").bytes, (*source)->sequentialBatch(0)->at("tokens").bytes);
    EXPECT_EQ(part->at("labels").type.str(), "i32[1,3]");
  }
}

TEST(SequentialBatches, AreFilledWithSamplesThatDoNotCount) {
  TempDir dir;
  // 14 windows of 3 tokens.
  std::string path = dir.write("a.txt", "the quick brown fox jumps over the lazy dog");
  auto open = [&](int64_t batch, std::optional<int64_t> ignored) {
    TensorType type{DType::I32, {batch, 3}};
    return openDataSource({path}, {{"tokens", type, 0, {}}, {"labels", type, 128, ignored}}, {});
  };
  auto exact = open(14, -7), ragged = open(4, -7), large = open(16, -7), plain = open(4, {});
  ASSERT_OK(ragged);
  EXPECT_EQ((*exact)->sequentialBatches(), 1);
  EXPECT_EQ((*ragged)->sequentialBatches(), 4);
  EXPECT_EQ((*large)->sequentialBatches(), 1);
  EXPECT_EQ((*plain)->sequentialBatches(), 3);
  EXPECT_EQ((*plain)->samplesLeftOut(), 2u);
  EXPECT_EQ((*ragged)->samplesLeftOut(), 0u);
  auto all = (*exact)->sequentialBatch(0), last = (*ragged)->sequentialBatch(3),
       filled = (*large)->sequentialBatch(0);
  ASSERT_OK(last);
  ASSERT_OK(filled);
  for (const char *name : {"tokens", "labels"}) {
    const auto *expected = all->at(name).as<int32_t>(), *found = last->at(name).as<int32_t>();
    EXPECT_TRUE(std::equal(found, found + 6, expected + 36)) << name;
    EXPECT_TRUE(std::equal(expected, expected + 42, filled->at(name).as<int32_t>())) << name;
  }
  // The rows beyond have tokens of the vocabulary, and labels that are ignored.
  for (int64_t i = 6; i < 12; ++i) {
    EXPECT_EQ(last->at("labels").as<int32_t>()[i], -7);
    EXPECT_EQ(last->at("tokens").as<int32_t>()[i], all->at("tokens").as<int32_t>()[i % 3]);
  }
  EXPECT_EQ((*ragged)->sequentialBatch(3, {{"labels", {{2, 4}}}})->at("labels").as<int32_t>()[5],
            -7);
}

TEST(BatchRows, OnlyTheseAreRead) {
  TempDir dir;
  // The third of six sequential samples has a token that the input does not take.
  TensorType type{DType::I32, {6, 2}};
  auto source =
      openDataSource({dir.write("a.txt", "aaaaa~aaaaaaa")}, {{"tokens", type, 'z', {}}}, {});
  ASSERT_OK(source);
  EXPECT_ERROR((*source)->sequentialBatch(0), "token 126 at position 5 is out of range");
  EXPECT_OK((*source)->sequentialBatch(0, {{"tokens", {{0, 2}, {3, 6}}}}));
}

TEST(BatchRows, ThatABatchDoesNotHaveAreErrors) {
  TempDir dir;
  TensorType type{DType::I32, {4, 2}};
  auto source = openDataSource({dir.write("a.txt", "0123456789")}, {{"tokens", type, 0, {}}}, {});
  ASSERT_OK(source);
  auto error = [&](std::vector<RowRange> rows) {
    return messageOf((*source)->batch(1, {{"tokens", std::move(rows)}}));
  };
  EXPECT_EQ(error({{0, 4}}), "");
  EXPECT_TRUE(contains(error({{2, 5}}), "rows 2 to 5 of the input \"tokens\" were asked for"));
  EXPECT_TRUE(contains(error({{3, 2}}), "rows 3 to 2 of the input"));
  EXPECT_TRUE(contains(error({{-1, 2}}), "rows -1 to 2 of the input"));
  EXPECT_TRUE(contains(error({{0, 2}, {1, 3}}), "after those up to 2; it has 4"));
  EXPECT_ERROR((*source)->batch(1, {{"x", {{0, 1}}}}), "rows of \"x\" were asked for, which is no");
}

} // namespace epochSamplingTest
