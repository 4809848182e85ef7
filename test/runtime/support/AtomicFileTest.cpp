//===- AtomicFileTest.cpp - Files that appear whole or not at all ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/support/AtomicFile.h"

#include "test/runtime/testing/Expect.h"
#include "test/runtime/testing/TempDir.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

using namespace dtc::runtime;
using namespace dtc::runtime::testing;

TEST(AtomicFile, AppearsWithCommit) {
  TempDir dir;
  auto file = AtomicFile::create(dir.path("out"));
  ASSERT_OK(file);
  EXPECT_OK(file->write("hello"));
  EXPECT_FALSE(std::filesystem::exists(dir.path("out")));
  EXPECT_OK(file->commit());
  EXPECT_EQ(dir.read("out"), "hello");
  EXPECT_EQ(dir.numFiles(), 1u);
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  TempDir dir;
  dir.write("out", "old");
  {
    auto file = AtomicFile::create(dir.path("out"));
    ASSERT_OK(file);
    EXPECT_OK(file->write("new"));
  }
  EXPECT_EQ(dir.read("out"), "old");
  EXPECT_EQ(dir.numFiles(), 1u);
}

TEST(AtomicFile, ReplacesAndKeepsTheMode) {
  TempDir dir;
  std::string path = dir.write("out", "old");
  chmod(path.c_str(), 0640);
  auto file = AtomicFile::create(path);
  ASSERT_OK(file);
  EXPECT_OK(file->write("new"));
  EXPECT_OK(file->commit());
  struct stat status;
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
  EXPECT_EQ(dir.read("out"), "new");
}

TEST(AtomicFile, WritesThroughASymbolicLink) {
  TempDir dir;
  dir.write("real", "old");
  std::filesystem::create_symlink("real", dir.path("link"));
  auto file = AtomicFile::create(dir.path("link"));
  ASSERT_OK(file);
  EXPECT_OK(file->write("new"));
  EXPECT_OK(file->commit());
  EXPECT_TRUE(std::filesystem::is_symlink(dir.path("link")));
  EXPECT_EQ(dir.read("real"), "new");
}

TEST(AtomicFile, DoesNotReplaceADevice) {
  auto file = AtomicFile::create("/dev/null");
  ASSERT_OK(file);
  EXPECT_OK(file->write("gone"));
  EXPECT_OK(file->commit());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(AtomicFile, FindsUnwritablePaths) {
  TempDir dir;
  EXPECT_ERROR(checkWritable(dir.path("missing/out")), "missing/out: cannot write");
  EXPECT_ERROR(checkWritable(dir.path("")), "cannot write");
  EXPECT_ERROR(checkWritable(""), "cannot write");
  EXPECT_OK(checkWritable(dir.path("out")));
  EXPECT_EQ(dir.numFiles(), 0u);
}
