//===- MultipleFilesTest.cpp - Data sets of several files -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/DataSource.h"
#include "runtime/data/Safetensors.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <set>

namespace multipleFilesTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

using Paths = std::vector<std::string>;

std::vector<DataInput> tokenInputs(int64_t batch = 4, int64_t seq = 5, int64_t limit = 0) {
  TensorType type{DType::I32, {batch, seq}};
  return {{"tokens", type, limit, {}}, {"labels", type, limit, {}}};
}

std::string tokensOf(const Batch &batch, int64_t row, const char *input = "tokens") {
  const HostTensor &tensor = batch.at(input);
  int64_t length = tensor.type.shape[1];
  const auto *first = tensor.as<int32_t>() + row * length;
  return {first, first + length};
}

/// "x" i32[count] with numbers from `first` on, and "y" with their negatives.
std::string writeNumbers(const TempDir &dir, const std::string &name, int32_t first,
                         int64_t count) {
  HostTensor x(TensorType{DType::I32, {count}}), y = x;
  for (int64_t i = 0; i < count; ++i) {
    x.as<int32_t>()[i] = first + static_cast<int32_t>(i);
    y.as<int32_t>()[i] = -first - static_cast<int32_t>(i);
  }
  EXPECT_OK(
      writeSafetensors(dir.path(name), std::map<std::string, HostTensor>{{"x", x}, {"y", y}}));
  return dir.path(name);
}

std::vector<DataInput> numberInputs(int64_t batch) {
  return {{"x", {DType::I32, {batch}}, 0, {}}, {"y", {DType::I32, {batch}}, 0, {}}};
}

} // namespace

TEST(MultipleFiles, NoSampleLiesInTwo) {
  TempDir dir;
  Paths paths = {dir.write("a.txt", "abcdefg"), dir.write("b.txt", "012345"),
                 dir.write("c.txt", "ABCDEFGHIJKL")};
  std::string all = "abcdefg|012345|ABCDEFGHIJKL";
  for (Sampling sampling : {Sampling::Random, Sampling::Epochs}) {
    auto source = openDataSource(paths, tokenInputs(), {1, sampling});
    ASSERT_OK(source);
    EXPECT_EQ((*source)->describe(),
              "3 files, " + paths[0] + " to " + paths[2] + ": 25 bytes of text");
    std::set<std::string> seen;
    for (int64_t number = 1; number <= 100; ++number) {
      auto batch = (*source)->batch(number);
      ASSERT_OK(batch);
      for (int64_t row = 0; row < 4; ++row) {
        std::string window = tokensOf(*batch, row) + tokensOf(*batch, row, "labels").back();
        EXPECT_NE(all.find(window), std::string::npos) << window;
        seen.insert(window);
      }
    }
    // All windows of six, or those of an epoch.
    std::set<std::string> expected = {"abcdef", "012345", "ABCDEF", "FGHIJK"};
    if (sampling == Sampling::Random)
      expected.insert({"bcdefg", "BCDEFG", "CDEFGH", "DEFGHI", "EFGHIJ", "GHIJKL"});
    EXPECT_EQ(seen, expected);
    EXPECT_EQ((*source)->samplesPerEpoch(), 4u);
    // In their order.
    ASSERT_EQ((*source)->sequentialBatches(), 1);
    auto batch = (*source)->sequentialBatch(0);
    ASSERT_OK(batch);
    EXPECT_EQ(tokensOf(*batch, 0) + tokensOf(*batch, 1) + tokensOf(*batch, 2) + tokensOf(*batch, 3),
              "abcde01234ABCDEFGHIJ");
  }
}

TEST(MultipleFiles, TensorsAreJoined) {
  TempDir dir;
  Paths paths = {writeNumbers(dir, "a.safetensors", 0, 3), writeNumbers(dir, "b.safetensors", 3, 1),
                 writeNumbers(dir, "c.safetensors", 4, 6)};
  auto source = openDataSource(paths, numberInputs(5), {1, Sampling::Epochs});
  ASSERT_OK(source);
  EXPECT_TRUE(contains((*source)->describe(), "c.safetensors: 10 samples"));
  std::multiset<int32_t> seen;
  for (int64_t number : {1, 2}) {
    auto batch = (*source)->batch(number), inOrder = (*source)->sequentialBatch(number - 1);
    ASSERT_OK(batch);
    ASSERT_OK(inOrder);
    for (int i = 0; i < 5; ++i) {
      seen.insert(batch->at("x").as<int32_t>()[i]);
      EXPECT_EQ(batch->at("y").as<int32_t>()[i], -batch->at("x").as<int32_t>()[i]);
      EXPECT_EQ(inOrder->at("x").as<int32_t>()[i], (number - 1) * 5 + i);
    }
  }
  EXPECT_EQ(seen, (std::multiset<int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(MultipleFiles, OneFileIsASetAsSeveral) {
  // Files whose windows do not meet: batches of the set have the samples of the file.
  TempDir dir;
  Paths parts = {writeNumbers(dir, "a.safetensors", 0, 7),
                 writeNumbers(dir, "b.safetensors", 7, 9)};
  std::string whole = writeNumbers(dir, "whole.safetensors", 0, 16);
  for (Sampling sampling : {Sampling::Random, Sampling::Epochs}) {
    auto several = openDataSource(parts, numberInputs(6), {3, sampling});
    auto one = openDataSource({whole}, numberInputs(6), {3, sampling});
    ASSERT_OK(several);
    ASSERT_OK(one);
    for (int64_t number = 1; number <= 20; ++number)
      EXPECT_EQ((*several)->batch(number)->at("x").bytes, (*one)->batch(number)->at("x").bytes);
  }
}

TEST(MultipleFiles, FormatsAreNotMixed) {
  TempDir dir;
  std::string text = dir.write("a.txt", "some text"),
              narrow = dir.write("b.bin", "0123456789abcdef"),
              wide = dir.write("c.u32", "0123456789abcdef0123456789abcdef"),
              tensors = writeNumbers(dir, "d.safetensors", 0, 3);
  auto error = [&](const Paths &paths) {
    return messageOf(openDataSource(paths, tokenInputs(), {}));
  };
  EXPECT_EQ(error({text, narrow}),
            narrow + ": has 16-bit tokens, but " + text +
                " has bytes of text; the files of a data set have one format");
  EXPECT_EQ(error({narrow, wide}),
            wide + ": has 32-bit tokens, but " + narrow +
                " has 16-bit tokens; the files of a data set have one format");
  EXPECT_EQ(error({text, tensors}), tensors + ": is a file of tensors (.safetensors), but " + text +
                                        " is none; the files of a data set have one format");
  EXPECT_EQ(error({tensors, text}), text + ": is no file of tensors (.safetensors), but " +
                                        tensors +
                                        " is one; the files of a data set have one format");
  EXPECT_EQ(error({}), "a data set has at least one file");
}

TEST(MultipleFiles, ErrorsNameTheFile) {
  TempDir dir;
  std::string good = dir.write("a.txt", "abcdefgh");
  EXPECT_ERROR(openDataSource({good, dir.path("none.txt")}, tokenInputs(), {}),
               "none.txt: cannot open");
  EXPECT_ERROR(openDataSource({good, dir.write("b.txt", "abc"), good}, tokenInputs(), {}),
               "b.txt: has 3 tokens; a sample takes 6");
  EXPECT_ERROR(openDataSource({writeNumbers(dir, "a.safetensors", 0, 3),
                               writeNumbers(dir, "b.safetensors", 0, 0)},
                              numberInputs(2), {}),
               "b.safetensors: tensor \"x\" has no samples");
  // Positions are those in the file.
  std::string bad = dir.write("b.txt", "abcdefghi~");
  auto source = openDataSource({good, bad}, tokenInputs(4, 5, 'z'), {});
  ASSERT_OK(source);
  uint64_t last = 0;
  EXPECT_ERROR((*source)->check([&](uint64_t done, uint64_t all) {
    EXPECT_EQ(all, 18u);
    last = done;
    return true;
  }),
               "b.txt: token 126 at position 9 is out of range; the input \"labels\"");
  EXPECT_EQ(last, 8u); // of the file before it
  EXPECT_OK((*source)->check([](uint64_t done, uint64_t) { return done == 0; }));
  std::string failure;
  for (int64_t number = 1; number <= 100 && failure.empty(); ++number)
    failure = messageOf((*source)->batch(number));
  EXPECT_TRUE(contains(failure, "b.txt: token 126 at position 9 is out of range"));
  std::filesystem::resize_file(good, 2);
  EXPECT_ERROR((*source)->sequentialBatch(0),
               "a.txt: had 8 bytes when it was opened, and has 2 now");
}

TEST(MultipleFiles, FingerprintsKnowFilesAndTheirOrder) {
  TempDir dir;
  std::string a = dir.write("a.txt", "abcdefgh"), b = dir.write("b.txt", "ijklmnop"),
              both = dir.write("ab.txt", "abcdefghijklmnop");
  auto print = [&](const Paths &paths) {
    auto source = openDataSource(paths, tokenInputs(), {});
    EXPECT_OK(source);
    return *(*source)->fingerprint();
  };
  EXPECT_TRUE(print({a, b}).starts_with("u8-16-"));
  EXPECT_NE(print({a, b}), print({b, a}));
  EXPECT_NE(print({a, b}), print({both}));
}

} // namespace multipleFilesTest
