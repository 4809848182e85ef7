//===- PackedDocumentsTest.cpp - Batches of packed documents --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/DataSource.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"

#include <gtest/gtest.h>
#include <numeric>
#include <set>

namespace packedDocumentsTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

constexpr int32_t kIgnored = -7;

std::vector<DataInput> packedInputs(int64_t batch, int64_t seq, int64_t positions = 0) {
  TensorType type{DType::I32, {batch, seq}};
  return {{"tokens", type},
          {"labels", type, 0, kIgnored},
          {"segments", type},
          {"positions", type, positions}};
}

template <typename T> std::string bytesOf(const std::vector<T> &elements) {
  return {reinterpret_cast<const char *>(elements.data()), elements.size() * sizeof(T)};
}

/// A file whose token i is i, with documents that begin at these places.
std::string writeDocuments(const TempDir &dir, const std::string &name, uint16_t tokens,
                           std::vector<uint64_t> begins) {
  std::vector<uint16_t> all(tokens);
  std::iota(all.begin(), all.end(), uint16_t{0});
  begins.push_back(tokens);
  dir.write(name + ".documents", bytesOf(begins));
  return dir.write(name, bytesOf(all));
}

std::vector<int32_t> values(const Batch &batch, const char *name) {
  const HostTensor &tensor = batch.at(name);
  return {tensor.as<int32_t>(), tensor.as<int32_t>() + tensor.type.numElements()};
}

using Row = std::vector<int32_t>;

} // namespace

TEST(PackedDocuments, AreToldApart) {
  TempDir dir;
  // Documents of 3, 2, none, 1, 6 and 5 tokens.
  std::string path = writeDocuments(dir, "a.bin", 17, {0, 3, 5, 5, 6, 12});
  auto source = openDataSource({path}, packedInputs(2, 8), {1});
  ASSERT_OK(source);
  EXPECT_TRUE(contains((*source)->describe(), "a.bin: 17 16-bit tokens, 6 documents"))
      << (*source)->describe();
  ASSERT_EQ((*source)->sequentialBatches(), 1);
  auto batch = (*source)->sequentialBatch(0);
  ASSERT_OK(batch);
  EXPECT_EQ(values(*batch, "tokens"), Row({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(values(*batch, "segments"), Row({0, 0, 0, 1, 1, 2, 3, 3, 0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(values(*batch, "positions"), Row({0, 1, 2, 0, 1, 0, 0, 1, 0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(values(*batch, "labels"), Row({1, 2, kIgnored, 4, kIgnored, kIgnored, 7, 8, //
                                           9, 10, 11, kIgnored, 13, 14, 15, 16}));
  EXPECT_OK((*source)->check([](uint64_t, uint64_t) { return true; }));
}

/// The document after a window tells that its last token has no label.
TEST(PackedDocuments, AWindowEndsWithItsDocument) {
  TempDir dir;
  std::string path = writeDocuments(dir, "a.bin", 9, {0, 4, 8});
  auto source = openDataSource({path}, packedInputs(1, 4), {1});
  ASSERT_OK(source);
  for (int64_t index : {0, 1}) {
    auto batch = (*source)->sequentialBatch(index);
    ASSERT_OK(batch);
    EXPECT_EQ(values(*batch, "segments"), Row({0, 0, 0, 0}));
    EXPECT_EQ(values(*batch, "positions"), Row({0, 1, 2, 3}));
    EXPECT_EQ(values(*batch, "labels").back(), kIgnored);
  }
}

/// Random windows of many documents, against the list of all that begin.
TEST(PackedDocuments, RandomWindows) {
  TempDir dir;
  std::vector<uint64_t> begins{0};
  for (uint64_t i = 0; begins.back() < 5000; ++i)
    begins.push_back(begins.back() + (i * 7919 % 13 == 0 ? 40 : i * 31 % 4));
  std::string path = writeDocuments(dir, "a.bin", 6000, begins);
  std::set<uint64_t> all(begins.begin(), begins.end());
  auto source = openDataSource({path}, packedInputs(16, 60), {3});
  ASSERT_OK(source);
  for (int64_t number : {1, 2, 3}) {
    auto batch = (*source)->batch(number);
    ASSERT_OK(batch);
    Row tokens = values(*batch, "tokens"), labels = values(*batch, "labels");
    Row segments = values(*batch, "segments"), positions = values(*batch, "positions");
    for (size_t i = 0; i < tokens.size(); ++i) {
      bool begun = i % 60 != 0 && all.contains(static_cast<uint64_t>(tokens[i]));
      EXPECT_EQ(positions[i], i % 60 == 0 || begun ? 0 : positions[i - 1] + 1) << i;
      EXPECT_EQ(segments[i], i % 60 == 0 ? 0 : segments[i - 1] + begun) << i;
      EXPECT_EQ(labels[i],
                all.contains(static_cast<uint64_t>(tokens[i]) + 1) ? kIgnored : tokens[i] + 1)
          << i;
    }
  }
}

TEST(PackedDocuments, BelongToTheFingerprint) {
  TempDir dir;
  std::string path = writeDocuments(dir, "a.bin", 20, {0, 4, 8});
  auto fingerprint = [&](std::vector<DataInput> inputs) {
    auto source = openDataSource({path}, std::move(inputs), {1});
    EXPECT_OK(source);
    return *(*source)->fingerprint();
  };
  TensorType type{DType::I32, {1, 4}};
  std::string packed = fingerprint(packedInputs(1, 4)), plain = fingerprint({{"tokens", type}});
  writeDocuments(dir, "a.bin", 20, {0, 5, 8});
  EXPECT_NE(fingerprint(packedInputs(1, 4)), packed);
  EXPECT_EQ(fingerprint({{"tokens", type}}), plain);
}

/// Also where no window of a run ever gets to what is damaged.
TEST(PackedDocuments, AreCheckedBeforeTheFirstStep) {
  TempDir dir;
  std::vector<uint64_t> begins(100'000);
  for (size_t i = 0; i < begins.size(); ++i)
    begins[i] = i / 4;
  auto check = [&](int64_t vocabulary, const DataSource::Progress &progress) {
    std::string path = writeDocuments(dir, "a.bin", 30'000, begins);
    std::vector<DataInput> inputs = packedInputs(2, 4);
    inputs[0].indexLimit = vocabulary;
    auto source = openDataSource({path}, inputs, {1});
    EXPECT_OK(source);
    return (*source)->check(progress);
  };
  uint64_t calls = 0, last = 0, all = 0;
  auto count = [&](uint64_t done, uint64_t of) {
    EXPECT_GE(done, last);
    last = done;
    all = of;
    ++calls;
    return true;
  };
  for (int64_t vocabulary : {30'000, 65'536}) { // tokens need a look, or not
    last = 0;
    EXPECT_OK(check(vocabulary, count));
    EXPECT_EQ(all, vocabulary == 30'000 ? 130'000u : 100'000u);
  }
  EXPECT_GE(calls, 4u);
  begins[90'000] = 7;
  for (int64_t vocabulary : {30'000, 65'536}) {
    EXPECT_ERROR(check(vocabulary, [](uint64_t, uint64_t) { return true; }),
                 "a.bin.documents: has a document at token 7 after one at 22499, of 30000 tokens; "
                 "the file is damaged");
    // Nobody waits any more.
    EXPECT_OK(check(vocabulary, [](uint64_t, uint64_t) { return false; }));
  }
  begins[90'000] = 30'001;
  EXPECT_ERROR(check(65'536, [](uint64_t, uint64_t) { return true; }),
               "has a document at token 30001 after one at 22499, of 30000 tokens");
}

TEST(PackedDocuments, Errors) {
  TempDir dir;
  std::vector<uint16_t> tokens(20);
  auto error = [&](std::vector<DataInput> inputs) {
    return messageOf(openDataSource({dir.path("a.bin")}, std::move(inputs), {1}));
  };
  dir.write("a.bin", bytesOf(tokens));
  EXPECT_TRUE(
      contains(error(packedInputs(2, 4)),
               "a.bin.documents: cannot open: No such file or directory; a packed model needs the "
               "positions of the documents, which dtc-data tokens writes"))
      << error(packedInputs(2, 4));
  dir.write("a.bin.documents", "1234567");
  EXPECT_TRUE(contains(error(packedInputs(2, 4)), "a.bin.documents: has 7 bytes, expected 8 for"));
  dir.write("a.bin.documents", bytesOf<uint64_t>({0, 3, 19}));
  EXPECT_TRUE(contains(error(packedInputs(2, 4)),
                       "has documents from token 0 to 19, and the file of tokens has 20"));
  dir.write("a.bin.documents", bytesOf<uint64_t>({0, 9, 3, 20}));
  auto damaged = openDataSource({dir.path("a.bin")}, packedInputs(1, 16), {1});
  ASSERT_OK(damaged);
  EXPECT_ERROR((*damaged)->sequentialBatch(0), "has a document at token 3 after one at 9");

  writeDocuments(dir, "a.bin", 20, {0, 12});
  std::vector<DataInput> counted = packedInputs(2, 4);
  counted[1].ignoredIndex.reset();
  EXPECT_TRUE(contains(error(counted), "import with dtc-import --packed"));
  std::vector<DataInput> narrow = packedInputs(2, 4);
  narrow[2].type.shape[1] = 5;
  EXPECT_TRUE(
      contains(error(narrow), "the inputs \"tokens\" (i32[2,4]) and \"segments\" (i32[2,5])"));
  // More tokens of one document than the model has positions.
  auto longer = openDataSource({dir.path("a.bin")}, packedInputs(1, 19, 10), {1});
  ASSERT_OK(longer);
  EXPECT_ERROR((*longer)->sequentialBatch(0), "a.bin: has 12 tokens of one document in a row from "
                                              "position 0 on; the model has 10 positions");
}

} // namespace packedDocumentsTest
