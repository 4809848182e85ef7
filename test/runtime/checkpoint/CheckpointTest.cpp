//===- CheckpointTest.cpp - Files of checkpoints, whole and damaged -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/Checkpoint.h"

#include "runtime/checkpoint/CheckpointListing.h"
#include "runtime/checkpoint/CheckpointWriter.h"
#include "runtime/executor/ShardRegion.h"
#include "test/lib/RandomCases.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <list>
#include <random>

namespace checkpointTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;
namespace fs = std::filesystem;

namespace {

/// Writes checkpoints of tensors of several types to several files.
class CheckpointFiles : public ::testing::Test {
protected:
  CheckpointFiles() {
    std::mt19937_64 random(3);
    for (const auto &[name, type] : layout.tensors()) {
      HostTensor &value = values[name] = HostTensor(type);
      for (std::byte &byte : value.bytes)
        byte = std::byte(random());
    }
    auto opened = CheckpointFolder::open(dir.path("ckpt"));
    EXPECT_OK(opened);
    folder.emplace(std::move(*opened));
  }

  /// A piece with memory of its own.
  CheckpointPiece piece(const std::string &name, const std::vector<int64_t> &shape,
                        const std::vector<int64_t> &offset, const std::vector<int64_t> &size) {
    const HostTensor &whole = values.at(name);
    ShardRegion region{shape, offset, size, size};
    std::vector<std::byte> &part =
        parts.emplace_back(TensorType{whole.type.dtype, size}.numBytes());
    copyToShard(region, byteWidth(whole.type.dtype), whole.bytes.data(), part.data());
    return {name, shape, offset, size, part.data()};
  }

  MaybeError write(int64_t step) {
    CheckpointManifest manifest;
    manifest.position.step = step;
    return writeCheckpoint(*folder, layout,
                           {piece("a", {4, 6}, {0, 0}, {4, 2}), piece("a", {4, 6}, {0, 2}, {4, 4}),
                            piece("b", {10}, {0}, {7}), piece("b", {10}, {7}, {3}),
                            piece("c", {}, {}, {}), piece("d", {0, 3}, {0, 0}, {0, 3}),
                            piece("e", {2, 2}, {0, 0}, {2, 2})},
                           manifest);
  }

  /// The files of a checkpoint.
  std::vector<fs::path> filesOf(int64_t step) {
    std::vector<fs::path> files;
    for (const fs::directory_entry &entry : fs::directory_iterator(folder->pathOf(step)))
      files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
  }

  /// Changes one file of the checkpoint of step 2, and expects the one of step 1 to be taken.
  void expectRefused(const std::string &part) {
    std::vector<std::string> refused;
    auto newest = folder->newest(refused);
    ASSERT_OK(newest);
    ASSERT_TRUE(newest->has_value());
    EXPECT_EQ((*newest)->manifest().position.step, 1);
    ASSERT_EQ(refused.size(), 1u);
    EXPECT_TRUE(contains(refused[0], part));
    EXPECT_TRUE(contains(refused[0], "step-0000002"));
  }

  TempDir dir;
  CheckpointFileMap layout = CheckpointFileMap({{"a", {DType::F32, {4, 6}}},
                                                {"b", {DType::F64, {2, 5}}},
                                                {"c", {DType::F16, {}}},
                                                {"d", {DType::I32, {0, 3}}},
                                                {"e", {DType::BF16, {2, 2}}}},
                                               /*maxFileBytes=*/100);
  std::map<std::string, HostTensor> values;
  std::list<std::vector<std::byte>> parts;
  std::optional<CheckpointFolder> folder;
};

} // namespace

TEST_F(CheckpointFiles, LayoutFollowsFromNamesAndTypes) {
  ASSERT_EQ(layout.files().size(), 2u);
  EXPECT_EQ(layout.files()[0].name, "state-00001-of-00002.safetensors");
  EXPECT_EQ(layout.placeOf("a").file, 0u);
  EXPECT_EQ(layout.placeOf("b").file, 1u);
  EXPECT_EQ(layout.placeOf("e").file, 1u);
  // The copy of a file's tensors is one range of it, and lies in the blocks of memory as the file
  // lies in those of the disk.
  for (const auto &[name, type] : layout.tensors())
    EXPECT_EQ(layout.placeOf(name).copyOffset % 4096, layout.placeOf(name).offset % 4096) << name;
  EXPECT_EQ(layout.placeOf("e").copyOffset - layout.placeOf("b").copyOffset, 80u + 2 + 0);
  EXPECT_EQ(layout.placeOf("b").copyOffset / 4096, 1u);
  EXPECT_EQ(layout.copyBytes(), layout.placeOf("e").copyOffset + 8);
}

TEST_F(CheckpointFiles, AnyReaderReadsWhatPiecesMake) {
  ASSERT_OK(write(7));
  auto checkpoint = Checkpoint::open(folder->pathOf(7));
  ASSERT_OK(checkpoint);
  EXPECT_OK(checkpoint->verify());
  EXPECT_EQ(checkpoint->manifest().tensors.at("a").regions.size(), 2u);
  uint64_t bytes = 0;
  for (const fs::path &path : filesOf(7))
    if (path.extension() == ".safetensors")
      bytes += fs::file_size(path);
  EXPECT_EQ(bytes, layout.fileBytes());
  EXPECT_EQ(bytes, checkpoint->manifest().numBytes());
  for (const auto &[name, value] : values) {
    auto read = checkpoint->read(name);
    ASSERT_OK(read);
    EXPECT_EQ(read->type, value.type);
    EXPECT_EQ(read->bytes, value.bytes) << name;
    // By the file alone, without the manifest.
    auto file = SafetensorsFile::open(folder->pathOf(7) + "/" +
                                      layout.files()[layout.placeOf(name).file].name);
    ASSERT_OK(file);
    EXPECT_EQ(file->read(name, value.type.dtype)->bytes, value.bytes) << name;
  }
}

TEST_F(CheckpointFiles, EveryChangedBitIsRefused) {
  ASSERT_OK(write(2));
  std::mt19937_64 random(dtc::test::randomSeed());
  for (const fs::path &path : filesOf(2)) {
    std::string content = dir.read(fs::relative(path, dir.path("")).string());
    // Every byte of the small files, and with it all of the headers.
    for (size_t i = 0; i < content.size(); ++i) {
      std::string damaged = content;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << random() % 8));
      std::ofstream(path, std::ios::binary) << damaged;
      auto checkpoint = Checkpoint::open(folder->pathOf(2));
      EXPECT_TRUE(!checkpoint || checkpoint->verify()) << path << " byte " << i;
    }
    std::ofstream(path, std::ios::binary) << content;
    auto checkpoint = Checkpoint::open(folder->pathOf(2));
    ASSERT_OK(checkpoint);
    ASSERT_OK(checkpoint->verify());
  }
}

TEST_F(CheckpointFiles, TakesTheOneBeforeADamagedOne) {
  ASSERT_OK(write(1));
  auto damage = [&](const std::function<void(const fs::path &)> &change, const std::string &file,
                    const std::string &message) {
    SCOPED_TRACE(message);
    fs::remove_all(folder->pathOf(2));
    ASSERT_OK(write(2));
    change(fs::path(folder->pathOf(2)) / file);
    expectRefused(message);
  };
  const std::string first = "state-00001-of-00002.safetensors", manifest = "manifest.json";
  auto remove = [](const fs::path &path) { fs::remove(path); };
  auto truncate = [](const fs::path &path) { fs::resize_file(path, fs::file_size(path) - 1); };
  auto empty = [](const fs::path &path) { fs::resize_file(path, 0); };
  auto grow = [](const fs::path &path) { std::ofstream(path, std::ios::app) << "x"; };
  auto replace = [](const fs::path &path) {
    fs::remove(path);
    fs::create_directory(path);
  };
  damage(remove, manifest, "manifest.json: ");
  damage(remove, first, first + ": cannot open");
  damage(truncate, first, "bytes, expected");
  damage(truncate, manifest, "its checksum is another");
  damage(empty, first, "has 0 bytes, expected");
  damage(empty, manifest, "is no manifest of a checkpoint, or damaged");
  damage(grow, first, "bytes, expected");
  damage(grow, manifest, "is no manifest of a checkpoint, or damaged");
  damage(replace, first, first);
  damage(replace, manifest, "manifest.json");
  // Another checkpoint's folder under this name.
  fs::remove_all(folder->pathOf(2));
  fs::copy(folder->pathOf(1), folder->pathOf(2));
  expectRefused("is the checkpoint of step 1");
  // A folder of something else.
  fs::remove_all(folder->pathOf(2));
  fs::create_directory(folder->pathOf(2));
  std::ofstream(folder->pathOf(2) + "/notes.txt") << "mine";
  expectRefused("manifest.json");
}

TEST_F(CheckpointFiles, TheFileOfAnotherCheckpointIsRefused) {
  ASSERT_OK(write(1));
  values["b"].bytes[3] ^= std::byte{1};
  ASSERT_OK(write(2));
  fs::copy(filesOf(1)[2], filesOf(2)[2], fs::copy_options::overwrite_existing);
  expectRefused("the checksum of tensor \"b\" is another");
}

TEST_F(CheckpointFiles, NoneLeftIsAnError) {
  std::vector<std::string> refused;
  auto none = folder->newest(refused);
  ASSERT_OK(none);
  EXPECT_FALSE(none->has_value());
  ASSERT_OK(write(1));
  fs::remove(folder->pathOf(1) + "/manifest.json");
  EXPECT_ERROR(folder->newest(refused), "no checkpoint can be used; to start anew, remove them");
}

TEST_F(CheckpointFiles, AManifestOfOtherFilesIsRefused) {
  ASSERT_OK(write(2));
  auto checkpoint = Checkpoint::open(folder->pathOf(2));
  ASSERT_OK(checkpoint);
  auto rewrite = [&](const std::function<void(CheckpointManifest &)> &change) {
    CheckpointManifest manifest = checkpoint->manifest();
    change(manifest);
    std::ofstream(folder->pathOf(2) + "/manifest.json") << toJson(manifest);
    return Checkpoint::open(folder->pathOf(2));
  };
  EXPECT_OK(rewrite([](CheckpointManifest &) {}));
  EXPECT_ERROR(rewrite([](CheckpointManifest &m) { m.files[0].name = "../x"; }),
               "is named by the manifest, but is not in the folder");
  EXPECT_ERROR(rewrite([](CheckpointManifest &m) { m.files[0].headerChecksum = ""; }),
               "the checksum of its header is another");
  EXPECT_ERROR(rewrite([](CheckpointManifest &m) { m.tensors["x"] = m.tensors["a"]; }),
               "has no tensor \"x\" of type f32[4,6]");
  EXPECT_ERROR(rewrite([](CheckpointManifest &m) {
                 m.tensors["a"].type.shape = {6, 4};
               }),
               "has no tensor \"a\" of type f32[6,4]");
}

TEST_F(CheckpointFiles, AreListedWithWhatIsWrong) {
  EXPECT_ERROR(listCheckpoints(folder->path(), false), "has no checkpoints; expected a folder");
  ASSERT_OK(write(1));
  ASSERT_OK(write(2));
  fs::resize_file(filesOf(2)[1], 5);
  auto table = listCheckpoints(folder->path(), false);
  ASSERT_OK(table);
  EXPECT_TRUE(contains(*table, "verified"));
  EXPECT_TRUE(contains(*table, "refused: "));
  EXPECT_TRUE(contains(*table, "has 5 bytes, expected"));
  auto json = listCheckpoints(folder->path(), true);
  ASSERT_OK(json);
  EXPECT_TRUE(contains(*json, "\"verified\": true"));
  EXPECT_TRUE(contains(*json, "\"verified\": false"));
}

} // namespace checkpointTest
