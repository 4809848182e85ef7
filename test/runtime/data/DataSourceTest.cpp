//===- DataSourceTest.cpp - Batches for the steps -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/DataSource.h"

#include "runtime/data/Safetensors.h"
#include "runtime/data/Sampling.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"
#include "test/lib/plans/TestPlans.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <set>

namespace dataSourceTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

std::vector<DataInput> tokenInputs(int64_t batch = 4, int64_t seq = 5, int64_t limit = 0) {
  TensorType type{DType::I32, {batch, seq}};
  return {{"tokens", type, limit}, {"labels", type, limit}};
}

Expected<std::unique_ptr<DataSource>> openFile(const std::string &path,
                                               std::vector<DataInput> inputs, uint64_t seed) {
  return openDataSource({path}, std::move(inputs), {seed});
}

std::vector<int32_t> values(const HostTensor &tensor) {
  return {tensor.as<int32_t>(), tensor.as<int32_t>() + tensor.type.numElements()};
}

template <typename T> std::string bytesOf(const std::vector<T> &elements) {
  return {reinterpret_cast<const char *>(elements.data()), elements.size() * sizeof(T)};
}

std::vector<uint16_t> countingTokens(size_t count) {
  std::vector<uint16_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), uint16_t{0});
  return tokens;
}

template <typename T>
std::string llmcFile(const std::vector<T> &tokens, int32_t magic = 20240520, int32_t version = 1,
                     int32_t extra = 0) {
  std::vector<int32_t> header(256, 0);
  header[0] = magic;
  header[1] = version;
  header[2] = static_cast<int32_t>(tokens.size()) + extra;
  return bytesOf(header) + bytesOf(tokens);
}

} // namespace

TEST(TokenSource, TokensMayHave32Bits) {
  TempDir dir;
  std::vector<uint32_t> tokens(300);
  std::iota(tokens.begin(), tokens.end(), 128'000 - 300);
  auto raw = openFile(dir.write("a.u32", bytesOf(tokens)), tokenInputs(4, 5, 128'256), 1);
  auto llmc =
      openFile(dir.write("a.bin", llmcFile(tokens, 20240801, 7)), tokenInputs(4, 5, 128'256), 1);
  for (auto *source : {&raw, &llmc}) {
    ASSERT_OK(*source);
    EXPECT_TRUE(contains((**source)->describe(), "300 32-bit tokens"));
    auto batch = (**source)->batch(1);
    ASSERT_OK(batch);
    std::vector<int32_t> inputs = values(batch->at("tokens")), labels = values(batch->at("labels"));
    for (size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_GE(inputs[i], 128'000 - 300);
      EXPECT_EQ(labels[i], inputs[i] + 1);
    }
  }
  // Larger ones than any input takes.
  std::string path = dir.write("b.u32", bytesOf<uint32_t>({1, 2, 3, 0x8000'0001, 5, 6}));
  for (int64_t limit : {int64_t{0}, int64_t{1000}}) {
    auto source = openFile(path, tokenInputs(1, 5, limit), 1);
    ASSERT_OK(source);
    EXPECT_ERROR((*source)->batch(1), "b.u32: token 2147483649 at position 3 is out of range");
  }
}

TEST(TokenSource, AWrongWidthIsNoticed) {
  TempDir dir;
  std::vector<uint32_t> wide(300);
  for (size_t i = 0; i < wide.size(); ++i)
    wide[i] = static_cast<uint32_t>(i * 7919 % 50'000);
  auto error = [&](const std::string &name, const std::string &content, int64_t vocabulary) {
    return messageOf(openFile(dir.write(name, content), tokenInputs(4, 5, vocabulary), 1));
  };
  for (int64_t vocabulary : {0, 50'257})
    EXPECT_TRUE(contains(error("a.bin", bytesOf(wide), vocabulary),
                         "a.bin: every second of its first 600 16-bit numbers is 0, as in a file "
                         "of 32-bit tokens; name such a file .u32"));
  wide[7] = 128'000;
  EXPECT_EQ(error("a.bin", bytesOf(wide), 50'257), ""); // a token that no such file has
  EXPECT_TRUE(contains(error("a.bin", bytesOf(wide), 128'256), "16-bit numbers is at most 1, as"));
  // Files that look like 16-bit tokens, that have few tokens, and that do not show their type.
  EXPECT_EQ(error("b.bin", bytesOf(countingTokens(600)), 128'256), "");
  EXPECT_EQ(error("b.bin", bytesOf(std::vector<uint16_t>(600, 0)), 50'257), "");
  EXPECT_EQ(error("b.bin", bytesOf(std::vector<uint32_t>(wide.begin(), wide.begin() + 20)), 50'257),
            "");
  // A header says it.
  std::vector<uint16_t> sparse(600, 0);
  for (size_t i = 0; i < sparse.size(); i += 2)
    sparse[i] = static_cast<uint16_t>(i);
  EXPECT_TRUE(contains(error("c.bin", bytesOf(sparse), 50'257), "is 0, as in a file of 32-bit"));
  EXPECT_EQ(error("c.bin", llmcFile(sparse), 50'257), "");
  // 16-bit tokens that are named otherwise have large numbers.
  auto source =
      openFile(dir.write("d.u32", bytesOf(countingTokens(600))), tokenInputs(4, 5, 128'256), 1);
  ASSERT_OK(source);
  EXPECT_ERROR((*source)->batch(1), "is out of range; the input \"tokens\" takes tokens from 0 to "
                                    "128255");
}

TEST(TokenSource, TokensOf64BitsAreNoticed) {
  TempDir dir;
  std::vector<int64_t> tokens(400);
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<int64_t>(i * 7919 % 50'000);
  auto error = [&](const std::string &name, const std::string &content, int64_t vocabulary) {
    return messageOf(openFile(dir.write(name, content), tokenInputs(4, 5, vocabulary), 1));
  };
  for (int64_t vocabulary : {0, 512, 50'257}) {
    EXPECT_TRUE(contains(error("a.bin", bytesOf(tokens), vocabulary),
                         "a.bin: all but every fourth of its first 1600 16-bit numbers is 0, as in "
                         "a file of 64-bit tokens; write it with 16 or 32 bits each"));
    EXPECT_TRUE(contains(error("a.u32", bytesOf(tokens), vocabulary),
                         "a.u32: every second of its first 800 32-bit numbers is 0, as in a file "
                         "of 64-bit tokens; write it with 16 or 32 bits each"));
  }
  tokens[5] = 70'000;
  EXPECT_TRUE(contains(error("a.bin", bytesOf(tokens), 128'256),
                       "numbers is at most 1, as in a file of 64"));
  EXPECT_EQ(error("a.bin", bytesOf(tokens), 50'257), "");
  // Usual 32-bit tokens: 0 is one of them, but not every second.
  std::vector<uint32_t> honest(400);
  for (size_t i = 0; i < honest.size(); ++i)
    honest[i] = i % 2 == 1 && i != 301 ? 0 : static_cast<uint32_t>(i);
  EXPECT_EQ(error("b.u32", bytesOf(honest), 512), "");
  honest[301] = 0;
  EXPECT_TRUE(contains(error("b.u32", bytesOf(honest), 512), "64-bit"));
  EXPECT_EQ(error("b.bin", llmcFile(honest, 20240801, 7), 512), ""); // its header says it
  EXPECT_EQ(error("c.u32", bytesOf(std::vector<uint32_t>(400, 0)), 512), "");
}

TEST(TokenSource, CapitalLettersInANameChangeNothing) {
  TempDir dir;
  auto source = openFile(dir.write("A.BIN", bytesOf(countingTokens(500))), tokenInputs(), 1);
  ASSERT_OK(source);
  EXPECT_TRUE(contains((*source)->describe(), "500 16-bit tokens"));
}

TEST(TokenSource, FilesOfOtherProgramsAreRefused) {
  TempDir dir;
  using namespace std::string_literals;
  std::string rest(1000, 'x');
  struct Case {
    std::string bytes, expected;
  };
  std::vector<Case> cases = {
      {"\x93NUMPY\1\0v\0{'descr': '<i8'}"s, "is a NumPy file (.npy); write its tokens"},
      {"PK\3\4\0\0\x08\x08\0\0 archive/data.pkl"s,
       "is a file of PyTorch; convert weights in Python"},
      {"\x80\x02\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19."s, "is a file of PyTorch"},
      {"PK\3\4\x14\0\0\0\0\0 arr_0.npy"s, "is a NumPy file of several arrays"},
      {"PK\3\4\x14\0\0\0\0\0 a.txt"s, "is compressed (zip); unpack it: unzip"},
      {"\x1F\x8B\x08\0\1\2\3\4\0\3"s, "is compressed (gzip); unpack it: gzip -dk"},
      {"\x1F\x8B\x08\x08\0\0\0\0\2\xFF"s, "is compressed (gzip)"},
      {"\x28\xB5\x2F\xFD\4"s, "is compressed (zstd); unpack it: zstd -dk"},
      {"\xFD\x37zXZ\0\0"s, "is compressed (xz)"},
      {"BZh91AY&SY"s, "is compressed (bzip2)"},
      {"\x04\x22\x4D\x18"s, "is compressed (lz4)"},
      {"ARROW1\0\0"s, "is an Arrow file"},
      {"\x89HDF\r\n\x1A\n"s, "is an HDF5 file"},
      {"GGUF\3\0\0\0"s, "is a GGUF file"},
      {"MMIDIDX\0\0"s, "is the index of a Megatron dataset"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"s,
       "is a pointer of Git LFS and not the file that it stands for; fetch that: git lfs pull"}};
  auto error = [&](const std::string &name, const std::string &bytes) {
    return messageOf(openFile(dir.write(name, bytes), tokenInputs(1, 5, 0), 1));
  };
  for (const Case &each : cases)
    for (const char *name : {"a.bin", "a.u32", "a.txt", "a", "a.safetensors"})
      EXPECT_TRUE(
          contains(error(name, each.bytes + rest), std::string(name) + ": " + each.expected))
          << error(name, each.bytes + rest);
  // The last bytes tell these.
  EXPECT_TRUE(contains(error("a", "PAR1" + rest + "PAR1"), "is a Parquet file"));
  EXPECT_TRUE(contains(error("a.bin", "\x80\x04\x95\xF0\3\0\0\0\0\0\0"s + rest + "."),
                       "is a pickle of Python; convert"));
  EXPECT_TRUE(contains(error("a.bin", "\x80\x02}q\1"s + rest + "."), "is a pickle of Python"));
  // Text and tokens that begin alike.
  for (const char *text : {"PK is a name, and so", "version https://git", "BZh91", "GGUF files",
                           "PAR1", "ARROW1 and ARROW2", "NUMPY"})
    EXPECT_EQ(error("a.txt", text + rest), "") << text;
  for (const std::string &tokens :
       {"\x1F\x8B\x08\x20\1\2\3\4\0\3"s, "\x1F\x8B\x08\0\1\2\3\4\0\x20"s, "\x80\x02}q\1\2"s,
        "\x80\x02\1\2"s, "PK\3\5"s, "\x93NUMP"s, "\x1F\x8B"s})
    EXPECT_EQ(error("a.bin", tokens + rest + (tokens.size() % 2 ? "x" : "")), "") << tokens;
  // Raw tokens under the name of a NumPy file.
  EXPECT_TRUE(
      contains(error("a.npy", rest), "a.npy: has the name of a NumPy file and not its first"));
}

TEST(TokenSource, ATextThatIsNoneHasANote) {
  TempDir dir;
  auto noteOf = [&](const std::string &name, const std::string &bytes) {
    auto source = openFile(dir.write(name, bytes), tokenInputs(1, 5, 0), 1);
    EXPECT_OK(source);
    auto notes = (*source)->notes();
    EXPECT_OK(notes);
    EXPECT_LE(notes->size(), 1u);
    return notes->empty() ? "" : notes->front().substr(dir.path("").size());
  };
  using namespace std::string_literals;
  EXPECT_EQ(noteOf("a.txt", "some text {\"a\": 1}"), "");
  EXPECT_EQ(noteOf("a.bin", std::string(40, '\0')), "");
  EXPECT_TRUE(contains(noteOf("a.dat", "a\0b\0c\0"s), "a.dat: has bytes of 0, which no text has"));
  for (const char *name : {"a.jsonl", "a.JSON", "a.txt"})
    EXPECT_TRUE(contains(noteOf(name, "\n{\"text\": 1}"), std::string(name) +
                                                              ": is JSON, and each byte of it "
                                                              "would be a token"));
}

TEST(TokenSource, ATextIsASequenceOfBytes) {
  TempDir dir;
  std::string text = "abcdefghijklmnopqrstuvwxyz\xff";
  auto source = openFile(dir.write("x.txt", text), tokenInputs(), 1);
  ASSERT_OK(source);
  EXPECT_TRUE(contains((*source)->describe(), "x.txt: 27 bytes of text"));
  for (int64_t step = 1; step <= 20; ++step) {
    auto batch = (*source)->batch(step);
    ASSERT_OK(batch);
    std::vector<int32_t> tokens = values(batch->at("tokens")), labels = values(batch->at("labels"));
    for (size_t row = 0; row < 4; ++row) {
      std::string window;
      for (size_t i = 0; i < 5; ++i)
        window += static_cast<char>(tokens[row * 5 + i]);
      window += static_cast<char>(labels[row * 5 + 4]);
      EXPECT_NE(text.find(window), std::string::npos);
      EXPECT_TRUE(std::equal(tokens.begin() + static_cast<int64_t>(row) * 5 + 1,
                             tokens.begin() + static_cast<int64_t>(row) * 5 + 5,
                             labels.begin() + static_cast<int64_t>(row) * 5));
    }
  }
}

TEST(TokenSource, EveryWindowIsDrawn) {
  TempDir dir;
  auto source = openFile(dir.write("x.txt", std::string("0123456789")), tokenInputs(), 1);
  ASSERT_OK(source);
  std::set<int32_t> starts;
  for (int64_t step = 1; step <= 50; ++step)
    for (size_t row = 0; row < 4; ++row)
      starts.insert(values((*source)->batch(step)->at("tokens"))[row * 5]);
  // Windows of six in ten bytes.
  EXPECT_EQ(starts, (std::set<int32_t>{'0', '1', '2', '3', '4'}));
}

TEST(TokenSource, BatchesDependOnSeedAndStepOnly) {
  TempDir dir;
  std::string path = dir.write("x.bin", bytesOf(countingTokens(60000)));
  auto first = openFile(path, tokenInputs(), 1), again = openFile(path, tokenInputs(), 1);
  auto other = openFile(path, tokenInputs(), 2);
  ASSERT_OK(first);
  EXPECT_EQ((*first)->batch(3)->at("tokens").bytes, (*again)->batch(3)->at("tokens").bytes);
  EXPECT_NE((*first)->batch(3)->at("tokens").bytes, (*first)->batch(4)->at("tokens").bytes);
  EXPECT_NE((*first)->batch(3)->at("tokens").bytes, (*other)->batch(3)->at("tokens").bytes);
  // A larger batch begins with the samples of the smaller one.
  auto large = openFile(path, tokenInputs(8), 1);
  std::vector<int32_t> small = values((*first)->batch(3)->at("tokens"));
  std::vector<int32_t> start = values((*large)->batch(3)->at("tokens"));
  start.resize(small.size());
  EXPECT_EQ(start, small);
  // Without labels, the tokens are the same.
  auto alone = openFile(path, {tokenInputs()[0]}, 1);
  ASSERT_OK(alone);
  EXPECT_EQ(values((*alone)->batch(3)->at("tokens")), small);
  EXPECT_EQ((*alone)->batch(3)->size(), 1u);
}

TEST(TokenSource, LlmcAndNanoGptAreToldApart) {
  TempDir dir;
  auto llmc = openFile(dir.write("a.bin", llmcFile(countingTokens(500))), tokenInputs(), 1);
  auto nano = openFile(dir.write("b.bin", bytesOf(countingTokens(500))), tokenInputs(), 1);
  ASSERT_OK(llmc);
  ASSERT_OK(nano);
  EXPECT_TRUE(contains((*llmc)->describe(), "500 16-bit tokens (llm.c)"));
  EXPECT_TRUE(contains((*nano)->describe(), "500 16-bit tokens"));
  EXPECT_EQ(values((*llmc)->batch(1)->at("labels")), values((*nano)->batch(1)->at("labels")));
}

TEST(TokenSource, SaysWhatIsWrongWithAFile) {
  TempDir dir;
  auto error = [&](const std::string &name, const std::string &content) {
    return messageOf(openFile(dir.write(name, content), tokenInputs(), 1));
  };
  EXPECT_ERROR(openFile(dir.path("none.txt"), tokenInputs(), 1), "none.txt: cannot open");
  EXPECT_ERROR(openFile(dir.path(""), tokenInputs(), 1), "is not a regular file");
  EXPECT_TRUE(contains(error("a.txt", ""), "a.txt: the file is empty"));
  EXPECT_TRUE(contains(error("a.txt", "hello"), "a.txt: has 5 tokens; a sample takes 6"));
  EXPECT_EQ(error("a.txt", "hello!"), "");
  EXPECT_TRUE(contains(error("a.bin", "odd"), "has 3 bytes; a file of 16-bit tokens"));
  EXPECT_TRUE(contains(error("a.bin", "ok"), "has 1 tokens; a sample takes 6"));
  std::vector<uint16_t> tokens = countingTokens(100);
  EXPECT_TRUE(contains(error("a.bin", llmcFile(tokens, 20240520, 2)), "of version 2; expected 1"));
  EXPECT_TRUE(contains(error("a.bin", llmcFile(tokens, 20240801, 1)), "of version 1; expected 7"));
  EXPECT_TRUE(contains(error("a.bin", llmcFile(tokens, 20240801, 7)), "is truncated or damaged"));
  EXPECT_TRUE(contains(error("a.u32", "123456"), "has 6 bytes; a file of 32-bit tokens has a "
                                                 "multiple of 4"));
  EXPECT_TRUE(
      contains(error("a.bin", llmcFile(tokens, 20240520, 1, 1)), "101 tokens by its header"));
  EXPECT_TRUE(contains(error("a.bin", llmcFile(tokens, 20240520, 1, -200)), "-100 tokens by its"));
  EXPECT_TRUE(contains(error("a.bin", llmcFile(tokens).substr(0, 100)), "fewer than its header"));
}

TEST(TokenSource, SaysWhichInputItCannotServe) {
  TempDir dir;
  std::string path = dir.write("a.txt", "some text of some length");
  auto inputs = tokenInputs();
  inputs.push_back({"mask", {DType::F32, {4}}, 0});
  EXPECT_ERROR(openFile(path, inputs, 1), "the plan also needs \"mask\"");
  EXPECT_ERROR(openFile(path, {tokenInputs()[1]}, 1), "the plan has no input \"tokens\"");
  inputs = tokenInputs();
  inputs[0].type.dtype = DType::F32;
  EXPECT_ERROR(openFile(path, inputs, 1), "is f32[4,5]; expected i32[batch,seq]");
  inputs = tokenInputs();
  inputs[1].type.shape[1] = 6;
  EXPECT_ERROR(openFile(path, inputs, 1),
               "\"tokens\" (i32[4,5]) and \"labels\" (i32[4,6]) of the plan differ");
}

TEST(TokenSource, NamesATokenThatIsOutOfRange) {
  TempDir dir;
  std::string path = dir.write("a.bin", bytesOf<uint16_t>({1, 2, 3, 9, 5, 6}));
  auto source = openFile(path, tokenInputs(4, 5, 9), 1);
  ASSERT_OK(source);
  EXPECT_ERROR((*source)->batch(1), "a.bin: token 9 at position 3 is out of range; the input "
                                    "\"tokens\" takes tokens from 0 to 8");
  // The label is the first to be out of range.
  path = dir.write("b.bin", bytesOf<uint16_t>({1, 2, 3, 4, 5, 9}));
  source = openFile(path, tokenInputs(4, 5, 9), 1);
  EXPECT_ERROR((*source)->batch(1), "token 9 at position 5 is out of range; the input \"labels\"");
}

namespace {

/// A file of 10 samples: "x" f32[10,2] with rows (i, -i), "y" i32[10] with i.
std::string writeSamples(const TempDir &dir) {
  HostTensor x(TensorType{DType::F32, {10, 2}}), y(TensorType{DType::I32, {10}});
  for (int i = 0; i < 10; ++i) {
    x.as<float>()[2 * i] = static_cast<float>(i);
    x.as<float>()[2 * i + 1] = static_cast<float>(-i);
    y.as<int32_t>()[i] = i;
  }
  EXPECT_OK(writeSafetensors(dir.path("d.safetensors"),
                             std::map<std::string, HostTensor>{{"x", x}, {"y", y}}));
  return dir.path("d.safetensors");
}

std::vector<DataInput> sampleInputs() {
  return {{"x", {DType::F32, {4, 2}}, 0}, {"y", {DType::I32, {4}}, 10}};
}

} // namespace

TEST(SafetensorsSource, ASampleIsTheSameRowOfAllTensors) {
  TempDir dir;
  auto source = openFile(writeSamples(dir), sampleInputs(), 1);
  ASSERT_OK(source);
  EXPECT_TRUE(contains((*source)->describe(), "d.safetensors: 10 samples"));
  std::set<int32_t> seen;
  for (int64_t step = 1; step <= 50; ++step) {
    auto batch = (*source)->batch(step);
    ASSERT_OK(batch);
    for (int i = 0; i < 4; ++i) {
      int32_t y = batch->at("y").as<int32_t>()[i];
      EXPECT_EQ(batch->at("x").as<float>()[2 * i], static_cast<float>(y));
      EXPECT_EQ(batch->at("x").as<float>()[2 * i + 1], static_cast<float>(-y));
      seen.insert(y);
    }
  }
  EXPECT_EQ(seen.size(), 10u);
}

TEST(SafetensorsSource, SaysWhatDoesNotFit) {
  TempDir dir;
  std::string path = writeSamples(dir);
  auto errorOf = [&](const std::vector<DataInput> &inputs) {
    return messageOf(openFile(path, inputs, 1));
  };
  EXPECT_TRUE(contains(errorOf({}), "the plan has no data inputs"));
  EXPECT_TRUE(contains(errorOf({{"z", {DType::F32, {4}}, 0}}), "has no tensor \"z\""));
  EXPECT_TRUE(contains(errorOf({{"x", {DType::F32, {}}, 0}}), "is a scalar"));
  EXPECT_TRUE(contains(errorOf({{"x", {DType::F32, {4, 3}}, 0}}),
                       "tensor \"x\" is F32[10, 2], the input of the plan is f32[4,3]"));
  EXPECT_TRUE(contains(errorOf({{"x", {DType::F32, {4}}, 0}}), "tensor \"x\" is F32[10, 2]"));
  EXPECT_TRUE(contains(errorOf({{"x", {DType::I32, {4, 2}}, 0}}),
                       "tensor \"x\": elements of type F32 cannot be read as i32"));
  EXPECT_TRUE(contains(errorOf({{"x", {DType::F32, {4, 2}}, 0}, {"y", {DType::I32, {5}}, 0}}),
                       "have 4 and 5 samples"));
  EXPECT_ERROR(openFile(dir.write("bad.safetensors", "x"), sampleInputs(), 1),
               "bad.safetensors: is no safetensors file");
  ASSERT_OK(writeSafetensors(
      dir.path("e.safetensors"),
      std::map<std::string, HostTensor>{{"x", HostTensor(TensorType{DType::F32, {3, 2}})},
                                        {"y", HostTensor(TensorType{DType::I32, {2}})}}));
  EXPECT_ERROR(openFile(dir.path("e.safetensors"), sampleInputs(), 1),
               "tensors \"x\" and \"y\" have 3 and 2 samples");
}

TEST(SafetensorsSource, NamesAnIndexThatIsOutOfRange) {
  TempDir dir;
  HostTensor y(TensorType{DType::I32, {1, 3}});
  y.as<int32_t>()[2] = -7;
  ASSERT_OK(
      writeSafetensors(dir.path("d.safetensors"), std::map<std::string, HostTensor>{{"y", y}}));
  auto source = openFile(dir.path("d.safetensors"), {{"y", {DType::I32, {2, 3}}, 10}}, 1);
  ASSERT_OK(source);
  EXPECT_ERROR((*source)->batch(1), "d.safetensors: tensor \"y\" has -7 at element 2 of sample 0; "
                                    "expected an index from 0 to 9");
}

TEST(DataSource, ChecksAllTokens) {
  TempDir dir;
  std::vector<uint16_t> tokens(3 << 20, 7);
  auto check = [&](std::vector<DataInput> inputs) {
    auto source = openFile(dir.write("x.bin", bytesOf(tokens)), std::move(inputs), 1);
    EXPECT_OK(source);
    uint64_t last = 0;
    return (*source)->check([&](uint64_t done, uint64_t all) {
      EXPECT_EQ(all, tokens.size());
      EXPECT_TRUE(done == 0 || done > last);
      last = done;
      return true;
    });
  };
  EXPECT_OK(check(tokenInputs(4, 5, 8)));
  EXPECT_ERROR(check(tokenInputs(4, 5, 7)), "x.bin: token 7 at position 0 is out of range");
  // The last token is a label only, the first one never is.
  tokens.back() = 9;
  EXPECT_ERROR(check(tokenInputs(4, 5, 8)),
               "x.bin: token 9 at position 3145727 is out of range; the input \"labels\" takes");
  EXPECT_OK(check({tokenInputs(4, 5, 8)[0]}));
  tokens.back() = 7;
  tokens.front() = 9;
  EXPECT_ERROR(check(tokenInputs(4, 5, 8)), "token 9 at position 0 is out of range; the input "
                                            "\"tokens\" takes tokens from 0 to 7");
  tokens.front() = 7;
  tokens[2 << 20] = 9; // the first one of a part
  EXPECT_ERROR(check(tokenInputs(4, 5, 8)), "token 9 at position 2097152 is out of range");
  EXPECT_OK(check(tokenInputs(4, 5, 10)));
  EXPECT_OK(check(tokenInputs(4, 5, 0)));
}

TEST(DataSource, ACheckCanBeEnded) {
  TempDir dir;
  std::vector<uint16_t> tokens(3 << 20, 7);
  tokens.back() = 9;
  auto source = openFile(dir.write("x.bin", bytesOf(tokens)), tokenInputs(4, 5, 8), 1);
  ASSERT_OK(source);
  int calls = 0;
  EXPECT_OK((*source)->check([&](uint64_t, uint64_t) { return ++calls < 3; }));
  EXPECT_EQ(calls, 3);
}

TEST(DataSource, ChecksAllIndicesOfTensors) {
  TempDir dir;
  HostTensor x(TensorType{DType::F32, {300'000, 1}}), y(TensorType{DType::I32, {300'000, 5}});
  auto check = [&]() -> MaybeError {
    EXPECT_OK(writeSafetensors(dir.path("d.safetensors"),
                               std::map<std::string, HostTensor>{{"x", x}, {"y", y}}));
    auto source =
        openFile(dir.path("d.safetensors"),
                 {{"x", {DType::F32, {4, 1}}, 0}, {"y", {DType::I32, {4, 5}}, 10, -1}}, 1);
    EXPECT_OK(source);
    return (*source)->check([](uint64_t done, uint64_t all) {
      EXPECT_LT(done, all);
      return true;
    });
  };
  y.as<int32_t>()[1'499'999] = -1; // ignored
  EXPECT_OK(check());
  y.as<int32_t>()[1'499'998] = 10;
  EXPECT_ERROR(check(), "d.safetensors: tensor \"y\" has 10 at element 3 of sample 299999; "
                        "expected an index from 0 to 9");
}

TEST(DataSource, FindsWhetherAnyLabelCounts) {
  TempDir dir;
  HostTensor x(TensorType{DType::F32, {300, 1}}), y(TensorType{DType::I32, {300, 5}});
  std::fill_n(y.as<int32_t>(), 1500, -100);
  auto counts = [&](const std::vector<DataInput> &inputs) {
    EXPECT_OK(writeSafetensors(dir.path("d.safetensors"),
                               std::map<std::string, HostTensor>{{"x", x}, {"y", y}}));
    auto source = openFile(dir.path("d.safetensors"), inputs, 1);
    EXPECT_OK(source);
    auto found = (*source)->hasLabelThatCounts([] { return true; });
    EXPECT_OK(found);
    return *found;
  };
  DataInput floats{"x", {DType::F32, {4, 1}}, 0};
  EXPECT_FALSE(counts({floats, {"y", {DType::I32, {4, 5}}, 10, -100}}));
  EXPECT_TRUE(counts({floats, {"y", {DType::I32, {4, 5}}, 0, -1}}));
  EXPECT_TRUE(counts({floats, {"y", {DType::I32, {4, 5}}, 0}}));
  EXPECT_TRUE(counts({floats}));
  y.as<int32_t>()[1499] = 3;
  EXPECT_TRUE(counts({floats, {"y", {DType::I32, {4, 5}}, 10, -100}}));
  // The labels of tokens are the next tokens.
  auto inputs = tokenInputs(2, 5, 100);
  inputs[1].ignoredIndex = 7;
  for (uint16_t last : {7, 8}) {
    std::vector<uint16_t> tokens(21, 7);
    tokens[0] = 8;
    tokens[20] = last;
    auto source = openFile(dir.write("x.bin", bytesOf(tokens)), inputs, 1);
    ASSERT_OK(source);
    EXPECT_EQ(*(*source)->hasLabelThatCounts([] { return true; }), last == 8);
    EXPECT_TRUE(*(*source)->hasLabelThatCounts([] { return false; })); // not known
  }
}

TEST(DataSource, ALabelThatIsNoIndexNamesTheOptionOfDtcImport) {
  TempDir dir;
  HostTensor y(TensorType{DType::I32, {1, 3}});
  y.as<int32_t>()[2] = -100;
  ASSERT_OK(writeSafetensors(dir.path("d.safetensors"),
                             std::map<std::string, HostTensor>{{"labels", y}}));
  auto errorOf = [&](std::optional<int64_t> ignored) {
    auto source =
        openFile(dir.path("d.safetensors"), {{"labels", {DType::I32, {2, 3}}, 10, ignored}}, 1);
    EXPECT_OK(source);
    return messageOf((*source)->batch(1));
  };
  EXPECT_TRUE(contains(errorOf({}),
                       "has -100 at element 2 of sample 0; expected an index from 0 to 9; if "
                       "labels of -100 shall not count in the loss, import the model with "
                       "dtc-import --ignore-index -100"));
  EXPECT_TRUE(
      contains(errorOf(-1), "expected an index from 0 to 9, or -1 for none; if labels of -100"));
  EXPECT_EQ(errorOf(-100), "");
}

TEST(DataSource, TensorsThatAreNoInputsHaveANote) {
  TempDir dir;
  std::map<std::string, HostTensor> tensors;
  for (const char *name : {"x", "y"})
    tensors.emplace(name, TensorType{DType::I32, {10}});
  auto notesOf = [&]() {
    EXPECT_OK(writeSafetensors(dir.path("d.safetensors"), tensors));
    auto source = openFile(dir.path("d.safetensors"),
                           {{"x", {DType::I32, {4}}, 0}, {"y", {DType::I32, {4}}, 0}}, 1);
    EXPECT_OK(source);
    return *(*source)->notes();
  };
  EXPECT_TRUE(notesOf().empty());
  tensors.emplace("z", TensorType{DType::I32, {10}});
  ASSERT_EQ(notesOf().size(), 1u);
  EXPECT_TRUE(
      notesOf()[0].ends_with("d.safetensors: 1 tensor is no input of the plan and is not used: z"));
  tensors.emplace("attention_mask", TensorType{DType::I32, {10}});
  EXPECT_TRUE(contains(notesOf()[0],
                       "d.safetensors: 2 tensors are no input of the plan and are not used: "
                       "attention_mask, z; for a token not to count in the loss, give it the label "
                       "of dtc-import --ignore-index"));
}

TEST(DataSource, LabelsCountWhereMasksAreOne) {
  TempDir dir;
  auto tensorOf = [](const std::vector<int32_t> &elements) {
    HostTensor tensor({DType::I32, {2, 3}});
    std::ranges::copy(elements, tensor.as<int32_t>());
    return tensor;
  };
  std::map<std::string, HostTensor> tensors;
  tensors.emplace("labels", tensorOf({1, 2, 3, 4, -7, 6}));
  tensors.emplace("attention_mask", tensorOf({1, 1, 0, 1, 0, 0}));
  tensors.emplace("loss_mask", tensorOf({0, 1, 1, 1, 1, 1}));
  const std::string path = dir.path("d.safetensors");
  ASSERT_OK(writeSafetensors(path, tensors));
  const TensorType row{DType::I32, {1, 3}};
  auto source =
      openFile(path, {{"labels", row, 9, -100}, {"segments", row}, {"positions", row, 3}}, 1);
  ASSERT_OK(source);
  // Labels that do not count are not looked at: -7 is no index.
  ASSERT_OK((*source)->check([](uint64_t, uint64_t) { return true; }));
  auto first = (*source)->sequentialBatch(0), second = (*source)->sequentialBatch(1);
  ASSERT_OK(first);
  ASSERT_OK(second);
  EXPECT_EQ(values(first->at("labels")), (std::vector<int32_t>{-100, 2, -100}));
  EXPECT_EQ(values(second->at("labels")), (std::vector<int32_t>{4, -100, -100}));
  EXPECT_EQ(values(first->at("segments")), (std::vector<int32_t>{0, 0, -1}));
  EXPECT_EQ(values(second->at("segments")), (std::vector<int32_t>{0, -1, -1}));
  EXPECT_EQ(values(second->at("positions")), (std::vector<int32_t>{0, 1, 2}));

  // A mask that is an input of the plan changes no label.
  source = openFile(path, {{"labels", row, 9, -100}, {"attention_mask", row}}, 1);
  ASSERT_OK(source);
  first = (*source)->sequentialBatch(0);
  ASSERT_OK(first);
  EXPECT_EQ(values(first->at("labels")), (std::vector<int32_t>{-100, 2, 3}));
  EXPECT_EQ(values(first->at("attention_mask")), (std::vector<int32_t>{1, 1, 0}));
  EXPECT_TRUE(contains((*(*source)->notes())[0], "labels count where loss_mask is 1"));

  // A mask of another shape is of something else.
  tensors.at("loss_mask") = HostTensor({DType::I32, {2, 1}});
  ASSERT_OK(writeSafetensors(path, tensors));
  source = openFile(path, {{"labels", row, 9, -100}}, 1);
  ASSERT_OK(source);
  ASSERT_EQ((*(*source)->notes()).size(), 2u);
  EXPECT_TRUE(contains((*(*source)->notes())[1], "not used: loss_mask; "));

  // Where the file has the segments of documents, a mask does not tell their positions.
  tensors.emplace("segments", tensorOf({0, 0, 1, 0, 1, 1}));
  ASSERT_OK(writeSafetensors(path, tensors));
  EXPECT_ERROR(
      openFile(path, {{"labels", row, 9, -100}, {"segments", row}, {"positions", row, 3}}, 1),
      "has no tensor \"positions\", which the plan needs as an input");
  tensors.erase("segments");

  // A number other than 0 and 1 is an error, and so is a file without segments or a mask.
  tensors.at("loss_mask") = tensorOf({1, 1, 1, 1, 1, 2});
  ASSERT_OK(writeSafetensors(path, tensors));
  source = openFile(path, {{"labels", row, 9, -100}}, 1);
  ASSERT_OK(source);
  EXPECT_ERROR((*source)->check([](uint64_t, uint64_t) { return true; }),
               "tensor \"loss_mask\" has 2 at element 2 of sample 1; expected 0 or 1");
  tensors.erase("attention_mask");
  ASSERT_OK(writeSafetensors(path, tensors));
  EXPECT_ERROR(openFile(path, {{"labels", row, 9, -100}, {"segments", row}}, 1),
               "has no tensor \"segments\", which the plan needs as an input");
}

TEST(DataSource, AFileThatBecomesShorterIsAnError) {
  TempDir dir;
  std::string path = dir.write("x.bin", bytesOf(countingTokens(100)));
  auto source = openFile(path, tokenInputs(), 1);
  ASSERT_OK(source);
  std::filesystem::resize_file(path, 0);
  EXPECT_ERROR((*source)->batch(1), "x.bin: had 200 bytes when it was opened, and has 0 now");
}

TEST(DataSource, InputsComeFromThePlan) {
  std::vector<DataInput> inputs = dataInputsOf(*trainingPlan());
  ASSERT_EQ(inputs.size(), 1u); // and not the learning rate
  EXPECT_EQ(inputs[0].name, "tokens");
  EXPECT_EQ(inputs[0].type.str(), "i32[8,6]");
  EXPECT_EQ(inputs[0].indexLimit, 256);
}

TEST(Sampling, IsEvenOverTheRange) {
  std::vector<int> counts(7);
  for (int64_t step = 1; step <= 1000; ++step)
    for (int64_t sample = 0; sample < 7; ++sample)
      ++counts[drawSample(3, step, sample, 7)];
  for (int count : counts)
    EXPECT_NEAR(count, 1000, 150);
  EXPECT_EQ(drawSample(3, 1, 1, 1), 0u);
  EXPECT_LT(drawSample(3, 1, 1, UINT64_MAX), UINT64_MAX);
}

} // namespace dataSourceTest
