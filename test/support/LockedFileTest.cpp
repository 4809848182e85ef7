//===- LockedFileTest.cpp - Tests of files with a lock --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/LockedFile.h"

#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"

#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockedFileTest {

using namespace dtc;
using namespace dtc::runtime::testing;

TEST(LockedFile, IsOfOneWriter) {
  TempDir dir;
  std::string path = dir.write("f", "old");
  {
    auto file = LockedFile::open(path);
    ASSERT_OK(file);
    std::filesystem::create_symlink(path, dir.path("link"));
    for (const std::string &name : {path, dir.path("link")})
      EXPECT_ERROR(LockedFile::open(name), name + ": another process");
    EXPECT_EQ(dir.read("f"), "old");
    ASSERT_OK(file->clear());
    ASSERT_OK(file->write("a\n"));
    EXPECT_EQ(dir.read("f"), "a\n");
    ASSERT_OK(file->write("b\n"));
    EXPECT_EQ(dir.read("f"), "a\nb\n");
  }
  EXPECT_OK(LockedFile::open(path));
  EXPECT_EQ(dir.read("f"), "a\nb\n");
}

TEST(LockedFile, NamesTheProcessThatHoldsIt) {
  TempDir dir;
  auto file = LockedFile::open(dir.path("f"));
  ASSERT_OK(file);
  if (access("/proc/locks", R_OK) != 0)
    GTEST_SKIP() << "there is no /proc/locks";
  EXPECT_ERROR(LockedFile::open(dir.path("f")),
               "(process " + std::to_string(getpid()) + ") is writing to it; name another file");
}

TEST(LockedFile, IsFreeWhenItsProcessIsKilled) {
  TempDir dir;
  std::string path = dir.path("f");
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  pid_t child = fork();
  if (child == 0) {
    auto file = LockedFile::open(path);
    bool isOpen = file && !file->write("line\n");
    if (write(ready[1], isOpen ? "y" : "n", 1) == 1)
      pause();
    _exit(1);
  }
  char answer = 0;
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  EXPECT_ERROR(LockedFile::open(path), "another process");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_OK(LockedFile::open(path));
  EXPECT_EQ(dir.read("f"), "line\n");
}

TEST(LockedFile, LeavesNoFileToWhichNothingWasDone) {
  TempDir dir;
  ASSERT_OK(LockedFile::open(dir.path("new")));
  EXPECT_EQ(dir.numFiles(), 0u);
  std::filesystem::create_symlink(dir.path("target"), dir.path("link"));
  ASSERT_OK(LockedFile::open(dir.path("link")));
  EXPECT_EQ(dir.numFiles(), 1u); // the link itself
  {
    auto file = LockedFile::open(dir.path("empty"));
    ASSERT_OK(file);
    ASSERT_OK(file->clear());
  }
  EXPECT_TRUE(std::filesystem::exists(dir.path("empty")));
}

TEST(LockedFile, WhatIsNoRegularFileIsNotLocked) {
  auto one = LockedFile::open("/dev/null"), other = LockedFile::open("/dev/null");
  for (auto *file : {&one, &other}) {
    ASSERT_OK(*file);
    EXPECT_OK((*file)->clear());
    EXPECT_OK((*file)->write("text"));
  }
}

TEST(LockedFile, APipeThatNobodyReadsIsNotWaitedFor) {
  TempDir dir;
  ASSERT_EQ(mkfifo(dir.path("pipe").c_str(), 0600), 0);
  EXPECT_ERROR(LockedFile::open(dir.path("pipe")), "pipe: cannot write: it is a pipe that nobody "
                                                   "reads");
  int reader = open(dir.path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  {
    auto file = LockedFile::open(dir.path("pipe"));
    ASSERT_OK(file);
    ASSERT_OK(file->clear());
    ASSERT_OK(file->write("text"));
  }
  char text[8];
  EXPECT_EQ(read(reader, text, sizeof(text)), 4);
  close(reader);
}

TEST(LockedFile, Errors) {
  TempDir dir;
  EXPECT_ERROR(LockedFile::open(dir.path("no/f")), "no/f: cannot write: No such file or directory");
  EXPECT_ERROR(LockedFile::open(dir.path("")), ": cannot write: Is a directory");
  auto full = LockedFile::open("/dev/full");
  ASSERT_OK(full);
  EXPECT_ERROR(full->write("text"), "/dev/full: cannot write: No space left on device");
}

} // namespace lockedFileTest
