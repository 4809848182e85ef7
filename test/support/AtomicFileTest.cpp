//===- AtomicFileTest.cpp - Tests of atomically written files -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/AtomicFile.h"

#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace atomicFileTest {

using namespace dtc;
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

TEST(AtomicFile, KeepsRoomOnTheDisk) {
  TempDir dir;
  auto file = AtomicFile::create(dir.path("out"));
  ASSERT_OK(file);
  EXPECT_OK(file->reserve(1 << 20));
  EXPECT_OK(file->write("less"));
  EXPECT_OK(file->commit());
  EXPECT_EQ(dir.read("out"), "less");

  struct statvfs disk;
  ASSERT_EQ(statvfs(dir.path("").c_str(), &disk), 0);
  uint64_t more = (disk.f_blocks + 1) * disk.f_frsize;
  dir.write("full", "old");
  auto other = AtomicFile::create(dir.path("full"));
  ASSERT_OK(other);
  EXPECT_ERROR(other->reserve(more), "/full: there is no room for its ");
  EXPECT_EQ(dir.read("full"), "old");
}

TEST(AtomicFile, FindsThatTheProcessMayNotWriteSoMuch) {
  TempDir dir;
  rlimit before, limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  limit = {1 << 16, before.rlim_max};
  auto file = AtomicFile::create(dir.path("out"));
  ASSERT_OK(file);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  MaybeError fits = file->reserve(1 << 16), tooLarge = file->reserve((1 << 16) + 1);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_OK(fits);
  EXPECT_ERROR(tooLarge, "/out: there is no room for its 64.0 KiB: File too large");
}

TEST(AtomicFile, APipeNeedsAReader) {
  TempDir dir;
  ASSERT_EQ(mkfifo(dir.path("pipe").c_str(), 0600), 0);
  EXPECT_OK(checkWritable(dir.path("pipe"))); // a reader may come
  EXPECT_ERROR(AtomicFile::create(dir.path("pipe")),
               "/pipe: cannot write: it is a pipe that nobody reads");
  int reader = open(dir.path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  {
    auto file = AtomicFile::create(dir.path("pipe"));
    ASSERT_OK(file);
    EXPECT_OK(file->reserve(1 << 20));
    EXPECT_OK(file->write("hello"));
    EXPECT_OK(file->commit());
  }
  char text[8] = {};
  EXPECT_EQ(::read(reader, text, sizeof(text)), 5);
  EXPECT_STREQ(text, "hello");
  EXPECT_EQ(::read(reader, text, sizeof(text)), 0); // closed
  close(reader);
}

TEST(AtomicFile, KeepsWhatIsFinishedButCannotBeRenamed) {
  TempDir dir;
  auto file = AtomicFile::create(dir.path("out"));
  ASSERT_OK(file);
  EXPECT_OK(file->write("precious"));
  std::filesystem::create_directory(dir.path("out"));
  MaybeError error = file->commit();
  EXPECT_ERROR(error, "/out: cannot rename the finished file, which is ");
  size_t begin = error->message.find("which is ") + 9;
  std::string kept = error->message.substr(begin, error->message.find(" now:") - begin);
  EXPECT_EQ(dir.read(std::filesystem::path(kept).filename()), "precious");
}

namespace {

/// Makes the folder "both" with two files.
MaybeError makeBoth(const TempDir &dir, const std::string &a, const std::string &b,
                    const std::string &path = "both") {
  auto folder = AtomicFolder::create(dir.path(path), {"a", "b"});
  if (!folder)
    return folder.error();
  EXPECT_OK(folder->file(0).write(a));
  EXPECT_OK(folder->file(1).write(b));
  return folder->commit();
}

} // namespace

TEST(AtomicFolder, AppearsWithCommit) {
  TempDir dir;
  {
    auto folder = AtomicFolder::create(dir.path("both"), {"a", "b"});
    ASSERT_OK(folder);
    EXPECT_OK(folder->file(0).write("1"));
    EXPECT_OK(folder->file(1).write("2"));
    EXPECT_FALSE(std::filesystem::exists(dir.path("both")));
  }
  EXPECT_EQ(dir.numFiles(), 0u);
  EXPECT_OK(makeBoth(dir, "1", "2"));
  EXPECT_EQ(dir.read("both/a") + dir.read("both/b"), "12");
  EXPECT_EQ(dir.numFiles(), 1u);
  struct stat status;
  ASSERT_EQ(stat(dir.path("both").c_str(), &status), 0);
  mode_t mask = umask(0);
  umask(mask);
  EXPECT_EQ(status.st_mode & 07777, 0777 & ~mask);
}

TEST(AtomicFolder, ReplacesAnOlderOne) {
  TempDir dir;
  std::filesystem::create_directory(dir.path("both"));
  chmod(dir.path("both").c_str(), 0750);
  EXPECT_OK(makeBoth(dir, "1", "2", "both/")); // empty
  EXPECT_OK(makeBoth(dir, "3", "4"));
  EXPECT_EQ(dir.read("both/a") + dir.read("both/b"), "34");
  EXPECT_EQ(dir.numFiles(), 1u);
  struct stat status;
  ASSERT_EQ(stat(dir.path("both").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0750u);
  // One that is not complete, and one through a link.
  std::filesystem::remove(dir.path("both/b"));
  std::filesystem::create_symlink("both", dir.path("link"));
  EXPECT_OK(makeBoth(dir, "5", "6", "link"));
  EXPECT_TRUE(std::filesystem::is_symlink(dir.path("link")));
  EXPECT_EQ(dir.read("both/a") + dir.read("both/b"), "56");
}

TEST(AtomicFolder, LeavesWhatIsNotItsOwn) {
  TempDir dir;
  EXPECT_OK(makeBoth(dir, "1", "2"));
  dir.write("both/notes", "mine");
  EXPECT_ERROR(makeBoth(dir, "3", "4"),
               "/both: is replaced as a whole, but holds \"notes\" too; give another folder, or "
               "one that has at most a and b");
  std::filesystem::remove(dir.path("both/notes"));
  std::filesystem::remove(dir.path("both/a"));
  std::filesystem::create_directory(dir.path("both/a"));
  EXPECT_ERROR(makeBoth(dir, "3", "4"), "/both: is replaced as a whole, but holds \"a\" too");
  EXPECT_EQ(dir.read("both/b"), "2");
  dir.write("file", "mine");
  EXPECT_ERROR(makeBoth(dir, "3", "4", "file"), "/file: is not a folder");
  EXPECT_ERROR(makeBoth(dir, "3", "4", "none/both"), "/none/both/a: cannot write: No such file");
  EXPECT_ERROR(AtomicFolder::create(".", {"a"}), ".: is the current folder, which cannot be");
  EXPECT_ERROR(AtomicFolder::create("/proc", {"a"}), "/proc: is a mount point, which cannot be");
  EXPECT_EQ(dir.numFiles(), 2u);
  // A file that comes while the new folder is written.
  std::filesystem::remove(dir.path("both/a"));
  auto folder = AtomicFolder::create(dir.path("both"), {"a", "b"});
  ASSERT_OK(folder);
  EXPECT_OK(folder->file(0).write("5"));
  dir.write("both/notes", "mine");
  MaybeError error = folder->commit();
  EXPECT_ERROR(error, "/both: is replaced as a whole, but holds \"notes\" too");
  EXPECT_EQ(dir.read("both/notes") + dir.read("both/b"), "mine2");
  size_t begin = error->message.find("the new one is ") + 15;
  std::string kept = error->message.substr(begin, error->message.find(" now") - begin);
  EXPECT_TRUE(std::filesystem::exists(kept + "/a")) << error->message;
}

} // namespace atomicFileTest
