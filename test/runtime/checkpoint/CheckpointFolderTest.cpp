//===- CheckpointFolderTest.cpp - The checkpoints of a run ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/CheckpointFolder.h"

#include "runtime/checkpoint/CheckpointWriter.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"

#include <gtest/gtest.h>

namespace checkpointFolderTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;
namespace fs = std::filesystem;

namespace {

class CheckpointFolders : public ::testing::Test {
protected:
  CheckpointFolder open() {
    auto opened = CheckpointFolder::open(path);
    EXPECT_OK(opened);
    return std::move(*opened);
  }

  static MaybeError write(const CheckpointFolder &folder, int64_t step) {
    static const float value = 1;
    CheckpointManifest manifest;
    manifest.position.step = step;
    return writeCheckpoint(folder, CheckpointFileMap({{"w", {DType::F32, {1}}}}),
                           {{"w", {1}, {0}, {1}, reinterpret_cast<const std::byte *>(&value)}},
                           manifest);
  }

  std::vector<int64_t> steps() {
    auto steps = checkpointSteps(path);
    EXPECT_OK(steps);
    return *steps;
  }

  TempDir dir;
  std::string path = dir.path("a/b");
};

} // namespace

TEST_F(CheckpointFolders, MakesFoldersAndTellsSteps) {
  EXPECT_EQ(steps(), std::vector<int64_t>());
  CheckpointFolder folder = open();
  EXPECT_OK(write(folder, 5));
  EXPECT_OK(write(folder, 12345678));
  for (const char *name : {"step-", "step-5", "step-000000x", "step--000005", "other"})
    fs::create_directory(path + "/" + name);
  EXPECT_EQ(steps(), (std::vector<int64_t>{5, 12345678}));
  EXPECT_TRUE(fs::exists(path + "/step-0000005/manifest.json"));
}

TEST_F(CheckpointFolders, OneRunAtATime) {
  CheckpointFolder folder = open();
  EXPECT_ERROR(CheckpointFolder::open(path), "another process");
  EXPECT_ERROR(CheckpointFolder::open(path + "/"), "another process");
}

TEST_F(CheckpointFolders, IsFreeAgainAfterwards) {
  { CheckpointFolder folder = open(); }
  open();
}

TEST_F(CheckpointFolders, NamesWhatIsNoFolder) {
  dir.write("file", "");
  EXPECT_ERROR(CheckpointFolder::open(dir.path("file")), "is not a folder");
  EXPECT_ERROR(CheckpointFolder::open(dir.path("file/x")), "cannot make the folder");
}

TEST_F(CheckpointFolders, NamesWhereADanglingLinkLeads) {
  fs::create_directory_symlink("missing", dir.path("link"));
  EXPECT_ERROR(CheckpointFolder::open(dir.path("link")),
               "link: is a link to missing, which does not exist; make that folder, or remove the "
               "link");
  fs::create_directory(dir.path("missing"));
  EXPECT_OK(CheckpointFolder::open(dir.path("link")));
}

TEST_F(CheckpointFolders, RemovesWhatKilledRunsLeft) {
  fs::create_directories(path + "/.tmp-step-0000003");
  std::ofstream(path + "/.tmp-step-0000003/state-00001-of-00001.safetensors") << "half";
  fs::create_directories(path + "/.tmp-old-step-0000001");
  std::ofstream(path + "/mine.txt") << "kept";
  CheckpointFolder folder = open();
  EXPECT_FALSE(fs::exists(path + "/.tmp-step-0000003"));
  EXPECT_FALSE(fs::exists(path + "/.tmp-old-step-0000001"));
  EXPECT_TRUE(fs::exists(path + "/mine.txt"));
}

TEST_F(CheckpointFolders, KeepsTheNewest) {
  CheckpointFolder folder = open();
  for (int64_t step : {1, 2, 3, 4})
    EXPECT_OK(write(folder, step));
  EXPECT_OK(folder.keepNewest(4, 2));
  EXPECT_EQ(steps(), (std::vector<int64_t>{3, 4}));
  // Checkpoints after the step are of another trajectory.
  EXPECT_OK(folder.keepNewest(3, 1));
  EXPECT_EQ(steps(), (std::vector<int64_t>{3, 4}));
}

TEST_F(CheckpointFolders, RefusedOnesDoNotCount) {
  CheckpointFolder folder = open();
  for (int64_t step : {1, 2, 3})
    EXPECT_OK(write(folder, step));
  fs::remove(folder.pathOf(2) + "/manifest.json");
  fs::remove(folder.pathOf(3) + "/manifest.json");
  std::vector<std::string> refused;
  auto newest = folder.newest(refused);
  ASSERT_OK(newest);
  EXPECT_EQ((*newest)->manifest().position.step, 1);
  EXPECT_EQ(refused.size(), 2u);
  // The run comes to step 3 again, and replaces what is there.
  EXPECT_OK(write(folder, 3));
  EXPECT_OK(folder.keepNewest(3, 2));
  EXPECT_EQ(steps(), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_OK(folder.keepNewest(3, 1));
  EXPECT_EQ(steps(), (std::vector<int64_t>{3}));
  refused.clear();
  EXPECT_EQ((*folder.newest(refused))->manifest().position.step, 3);
}

TEST_F(CheckpointFolders, NeverReplacesAGoodOne) {
  CheckpointFolder folder = open();
  EXPECT_OK(write(folder, 1));
  EXPECT_ERROR(write(folder, 1), "cannot rename");
  EXPECT_EQ(steps(), std::vector<int64_t>{1});
}

TEST_F(CheckpointFolders, ReplacesALinkThatLeadsNowhere) {
  CheckpointFolder folder = open();
  EXPECT_OK(write(folder, 1));
  fs::create_directory_symlink("missing", folder.pathOf(2));
  std::vector<std::string> refused;
  ASSERT_OK(folder.newest(refused));
  EXPECT_EQ(refused.size(), 1u);
  EXPECT_OK(write(folder, 2));
  EXPECT_FALSE(fs::is_symlink(folder.pathOf(2)));
  EXPECT_OK(Checkpoint::open(folder.pathOf(2)));
}

TEST_F(CheckpointFolders, DiscardsWhatHasBegun) {
  CheckpointFolder folder = open();
  folder.discard(1); // nothing is there
  EXPECT_OK(folder.begin(1));
  std::ofstream(folder.temporaryPath(1) + "/file") << "half";
  folder.discard(1);
  EXPECT_FALSE(fs::exists(folder.temporaryPath(1)));
}

} // namespace checkpointFolderTest
