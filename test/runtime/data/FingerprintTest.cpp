//===- FingerprintTest.cpp - Tests of fingerprints of data sets -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Fingerprint.h"

#include "runtime/data/DataSource.h"
#include "runtime/data/Safetensors.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"

#include <gtest/gtest.h>
#include <vector>

namespace fingerprintTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

constexpr size_t kMiB = size_t{1} << 20;

/// The fingerprint of files with these contents.
std::string fingerprint(const std::vector<std::string> &contents) {
  TempDir dir;
  std::vector<InputFile> files;
  for (size_t i = 0; i < contents.size(); ++i) {
    auto file = InputFile::open(dir.write(std::to_string(i), contents[i]));
    EXPECT_OK(file);
    files.push_back(std::move(*file));
  }
  std::vector<const InputFile *> pointers;
  for (const InputFile &file : files)
    pointers.push_back(&file);
  auto result = fingerprintOf("x", 1, pointers);
  EXPECT_OK(result);
  return *result;
}

/// The text with another byte at `position`.
std::string changed(std::string text, size_t position) {
  text[position] ^= 1;
  return text;
}

} // namespace

TEST(Fingerprint, CoversAllBytesOfASmallSet) {
  std::string first(200'000, 'a'), second(70'000, 'b');
  std::string print = fingerprint({first, second});
  EXPECT_EQ(print, fingerprint({first, second}));
  for (size_t position :
       {size_t{0}, size_t{65'535}, size_t{65'536}, size_t{131'072}, first.size() - 1})
    EXPECT_NE(print, fingerprint({changed(first, position), second})) << position;
  for (size_t position : {size_t{0}, size_t{40'000}, second.size() - 1})
    EXPECT_NE(print, fingerprint({first, changed(second, position)})) << position;
}

TEST(Fingerprint, CoversOrderAndSizesOfFiles) {
  EXPECT_NE(fingerprint({"ab", "c"}), fingerprint({"c", "ab"}));
  EXPECT_NE(fingerprint({"ab", "c"}), fingerprint({"a", "bc"}));
  EXPECT_NE(fingerprint({"abc"}), fingerprint({"ab", "c"}));
  EXPECT_NE(fingerprint({"abc"}), fingerprint({"abc", ""}));
}

TEST(Fingerprint, CoversBothEndsOfEachFileOfALargeSet) {
  std::string large(80 * kMiB, 'a'), small(kMiB, 'b');
  std::string print = fingerprint({large, small});
  EXPECT_EQ(print, fingerprint({large, small}));
  EXPECT_NE(print, fingerprint({changed(large, 0), small}));
  EXPECT_NE(print, fingerprint({changed(large, large.size() - 1), small}));
  EXPECT_NE(print, fingerprint({large, changed(small, 0)}));
  EXPECT_NE(print, fingerprint({large, changed(small, small.size() - 1)}));
  EXPECT_NE(print, fingerprint({large + 'a', small}));
  // Most of the rest counts: a change of 64 KiB is seen wherever it is.
  std::string middle = large;
  std::fill_n(middle.begin() + 33'333'333, 64 << 10, 'x');
  EXPECT_NE(print, fingerprint({middle, small}));
}

TEST(Fingerprint, IsThatOfTheDataAlone) {
  TempDir dir;
  std::vector<DataInput> inputs = {{"tokens", {DType::I32, {2, 4}}, 0}};
  auto printOf = [&](const std::string &path, uint64_t seed) {
    auto source = openDataSource({path}, inputs, {seed});
    EXPECT_OK(source);
    auto print = (*source)->fingerprint();
    EXPECT_OK(print);
    return *print;
  };
  std::string text = "some text, not a long one.";
  std::string print = printOf(dir.write("a.txt", text), 1);
  EXPECT_TRUE(print.starts_with("u8-26-")) << print;
  EXPECT_EQ(print, printOf(dir.write("b.txt", text), 2));
  EXPECT_NE(print, printOf(dir.write("c.txt", "Some text, not a long one."), 1));
  EXPECT_TRUE(printOf(dir.write("a.bin", text), 1).starts_with("u16-13-"));
  inputs[0].type.shape = {5, 3};
  EXPECT_EQ(print, printOf(dir.path("a.txt"), 1));

  HostTensor x(TensorType{DType::I32, {7, 3}});
  std::string path = dir.path("d.safetensors");
  ASSERT_OK(writeSafetensors(path, std::map<std::string, HostTensor>{{"tokens", x}}));
  print = printOf(path, 1);
  EXPECT_TRUE(print.starts_with("safetensors-7-")) << print;
  x.as<int32_t>()[20] = 5;
  ASSERT_OK(writeSafetensors(path, std::map<std::string, HostTensor>{{"tokens", x}}));
  EXPECT_NE(print, printOf(path, 1));
}

TEST(Fingerprint, NamesAFileThatCannotBeRead) {
  TempDir dir;
  auto file = InputFile::open(dir.write("a", "0123456789"));
  ASSERT_OK(file);
  std::filesystem::resize_file(dir.path("a"), 4);
  const InputFile *files[] = {&*file};
  EXPECT_ERROR(fingerprintOf("x", 10, files), "/a: had 10 bytes when it was opened, and has 4 now");
}

} // namespace fingerprintTest
