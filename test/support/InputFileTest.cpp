//===- InputFileTest.cpp - Tests of reading in parts ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/InputFile.h"

#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"

#include <array>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace inputFileTest {

using namespace dtc;
using namespace dtc::runtime::testing;

namespace {

Expected<std::string> readAt(const InputFile &file, uint64_t offset, size_t count) {
  std::string text(count, '?');
  if (MaybeError error = file.read(offset, std::as_writable_bytes(std::span(text))))
    return *error;
  return text;
}

} // namespace

TEST(InputFile, ReadsParts) {
  TempDir dir;
  auto file = InputFile::open(dir.write("a", "0123456789"));
  ASSERT_OK(file);
  EXPECT_EQ(file->size(), 10u);
  EXPECT_EQ(*readAt(*file, 0, 10), "0123456789");
  EXPECT_EQ(*readAt(*file, 7, 3), "789");
  EXPECT_EQ(*readAt(*file, 10, 0), "");
  InputFile moved = std::move(*file);
  EXPECT_EQ(*readAt(moved, 2, 1), "2");
}

TEST(InputFile, SaysThatTheFileHasBecomeShorter) {
  TempDir dir;
  std::string path = dir.write("a", "0123456789");
  auto file = InputFile::open(path);
  ASSERT_OK(file);
  std::filesystem::resize_file(path, 4);
  EXPECT_EQ(*readAt(*file, 0, 4), "0123");
  EXPECT_ERROR(readAt(*file, 2, 4), "/a: had 10 bytes when it was opened, and has 4 now; do not");
  EXPECT_ERROR(readAt(*file, 8, 2), "/a: had 10 bytes when it was opened, and has 4 now; do not");
}

TEST(InputFile, ReadsRegularFilesOnly) {
  TempDir dir;
  EXPECT_ERROR(InputFile::open(dir.path("none")), "/none: cannot open: No such file");
  EXPECT_ERROR(InputFile::open(dir.path("")), ": is not a regular file");
  ASSERT_EQ(mkfifo(dir.path("pipe").c_str(), 0600), 0);
  EXPECT_ERROR(InputFile::open(dir.path("pipe")), "/pipe: is not a regular file");
}

} // namespace inputFileTest
