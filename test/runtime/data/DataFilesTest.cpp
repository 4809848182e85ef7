//===- DataFilesTest.cpp - The files of a data set ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/DataFiles.h"

#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"

#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

namespace dataFilesTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

/// The files that names and patterns stand for, both below the folder.
std::vector<std::string> found(const TempDir &dir, std::vector<std::string> patterns) {
  for (std::string &pattern : patterns)
    pattern = dir.path(pattern);
  auto files = findDataFiles(patterns);
  EXPECT_OK(files);
  for (std::string &file : *files)
    file = file.substr(dir.path("").size());
  return *files;
}

using Names = std::vector<std::string>;

} // namespace

TEST(DataFiles, PatternsAreSorted) {
  TempDir dir;
  std::filesystem::create_directories(dir.path("shards"));
  for (const char *name : {"shards/b.bin", "shards/a.bin", "shards/B.bin", "shards/10.bin",
                           "shards/2.bin", "shards/c.txt", "shards/.hidden.bin", "x.bin"})
    dir.write(name, "x");
  Names shards = {"shards/10.bin", "shards/2.bin", "shards/B.bin", "shards/a.bin", "shards/b.bin"};
  EXPECT_EQ(found(dir, {"shards/*.bin"}), shards);
  EXPECT_EQ(found(dir, {"*/*.bin"}), shards);
  EXPECT_EQ(found(dir, {"shards/?.bin"}),
            (Names{"shards/2.bin", "shards/B.bin", "shards/a.bin", "shards/b.bin"}));
  EXPECT_EQ(found(dir, {"shards/[a-c].*"}),
            (Names{"shards/a.bin", "shards/b.bin", "shards/c.txt"}));
  // In whatever order they are given.
  shards.push_back("x.bin");
  EXPECT_EQ(found(dir, {"x.bin", "shards/*.bin"}), shards);
  EXPECT_EQ(found(dir, {"shards/*.bin", "x.bin"}), shards);
  EXPECT_EQ(found(dir, {}), Names());
}

TEST(DataFiles, ANameIsTakenAsItIs) {
  TempDir dir;
  dir.write("a[1].bin", "x");
  dir.write("a1.bin", "x");
  EXPECT_EQ(found(dir, {"a[1].bin"}), (Names{"a[1].bin"}));
  EXPECT_EQ(found(dir, {"a[12].bin"}), (Names{"a1.bin"}));
  EXPECT_EQ(found(dir, {"none.bin"}), (Names{"none.bin"})); // opening it says that it is not there
}

TEST(DataFiles, APatternWithoutAMatchIsAnError) {
  TempDir dir;
  std::filesystem::create_directories(dir.path("shards"));
  dir.write("shards/a.txt", "x");
  EXPECT_ERROR(findDataFiles({dir.path("shards/*.bin")}),
               "/shards/*.bin: no file matches this pattern");
  EXPECT_ERROR(findDataFiles({dir.path("shards/a.txt"), dir.path("none/*.bin")}),
               "/none/*.bin: no file matches this pattern");
  EXPECT_ERROR(findDataFiles({dir.path("shards/a.txt/*.bin")}), "no file matches this pattern");
}

TEST(DataFiles, AFileThatIsThereTwiceIsAnError) {
  TempDir dir;
  dir.write("a.bin", "x");
  dir.write("b.bin", "x");
  std::string a = dir.path("a.bin"), pattern = dir.path("*.bin");
  EXPECT_ERROR(findDataFiles({a, a}), a + ": is given twice; give each file once");
  EXPECT_ERROR(findDataFiles({a, pattern}), a + ": is given twice, by " + a + " and by " + pattern);
  EXPECT_ERROR(findDataFiles({dir.path("./a.bin"), a}), "are one file; give each file once");
  std::filesystem::create_symlink("a.bin", dir.path("link.bin"));
  EXPECT_ERROR(findDataFiles({pattern}), fmt::format("{} of {} and {} of {} are one file", a,
                                                     pattern, dir.path("link.bin"), pattern));
  std::filesystem::remove(dir.path("link.bin"));
  std::filesystem::create_hard_link(a, dir.path("other"));
  EXPECT_ERROR(findDataFiles({dir.path("other"), pattern}),
               fmt::format("{} of {} and {} are one file", a, pattern, dir.path("other")));
  EXPECT_OK(findDataFiles({dir.path("other"), dir.path("b.bin")}));
}

TEST(DataFiles, TheLimitOfOpenFilesIsRaised) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 100;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_OK(allowOpenFiles(300));
  rlimit now;
  getrlimit(RLIMIT_NOFILE, &now);
  EXPECT_GE(now.rlim_cur, std::min<rlim_t>(300, before.rlim_max));
  if (before.rlim_max != RLIM_INFINITY) {
    EXPECT_ERROR(allowOpenFiles(before.rlim_max + 1),
                 "files are more than this process may have open");
  }
  setrlimit(RLIMIT_NOFILE, &before);
}

} // namespace dataFilesTest
