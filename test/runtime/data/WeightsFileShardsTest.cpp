//===- WeightsFileShardsTest.cpp - Tests of split weights files -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/WeightsFileShards.h"

#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace weightsFileShardsTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

constexpr const char *kFirstShard = "model-00001-of-00002.safetensors";
constexpr const char *kSecondShard = "model-00002-of-00002.safetensors";
constexpr const char *kIndexName = "model.safetensors.index.json";

class WeightsFileShardsTest : public ::testing::Test {
protected:
  /// A file of these tensors, f32[2]. The first element of each is `value`.
  void write(const std::string &name, const std::vector<std::string> &tensors, float value) {
    std::map<std::string, HostTensor> all;
    for (const std::string &tensor : tensors) {
      HostTensor &added = all.emplace(tensor, TensorType{DType::F32, {2}}).first->second;
      added.as<float>()[0] = value++;
    }
    ASSERT_OK(writeSafetensors(dir.path(name), all));
  }

  void writeIndex(const nlohmann::json &weightMap) {
    dir.write(kIndexName,
              nlohmann::json{{"metadata", {{"total_size", 24}}}, {"weight_map", weightMap}}.dump());
  }

  /// As Hugging Face writes a model of two shards.
  void writeModel() {
    write(kFirstShard, {"a", "b"}, 1);
    write(kSecondShard, {"c"}, 3);
    writeIndex({{"a", kFirstShard}, {"b", kFirstShard}, {"c", kSecondShard}});
  }

  std::string errorOf(const std::string &path) {
    std::string message = messageOf(WeightsFileShards::open(path));
    // Nothing of where the test runs.
    for (size_t at; (at = message.find(dir.path(""))) != std::string::npos;)
      message.erase(at, dir.path("").size());
    return message;
  }

  TempDir dir;
};

} // namespace

TEST_F(WeightsFileShardsTest, AFolderAndItsIndexAreTheModel) {
  writeModel();
  std::string folder = dir.path("").substr(0, dir.path("").size() - 1);
  for (const std::string &path : {folder, folder + "/", dir.path(kIndexName)}) {
    auto shards = WeightsFileShards::open(path);
    ASSERT_OK(shards);
    EXPECT_EQ(shards->path(), path);
    ASSERT_EQ(shards->tensors().size(), 3u);
    float expected = 1;
    for (const char *name : {"a", "b", "c"}) {
      EXPECT_EQ(shards->tensors().at(name).str(), "F32[2]");
      auto tensor = shards->read(name, DType::F32);
      ASSERT_OK(tensor);
      EXPECT_EQ(*tensor->as<float>(), expected++);
    }
    auto files = safetensorsFilesOf(path);
    ASSERT_OK(files);
    EXPECT_EQ(files->size(), 3u);
    for (const std::string &file : *files)
      EXPECT_TRUE(std::filesystem::is_regular_file(file)) << file;
  }
}

TEST_F(WeightsFileShardsTest, OneFileIsAModelToo) {
  write("w.safetensors", {"a"}, 1);
  auto shards = WeightsFileShards::open(dir.path("w.safetensors"));
  ASSERT_OK(shards);
  EXPECT_EQ(shards->tensors().count("a"), 1u);
  EXPECT_EQ(*safetensorsFilesOf(dir.path("w.safetensors")),
            std::vector<std::string>{dir.path("w.safetensors")});
}

TEST_F(WeightsFileShardsTest, AFolderIsReadAsTransformersDoes) {
  write("adapter_model.safetensors", {"adapter"}, 1);
  auto hasTensor = [&](const char *name) {
    auto shards = WeightsFileShards::open(dir.path(""));
    EXPECT_OK(shards);
    return shards && shards->tensors().count(name) == 1;
  };
  EXPECT_TRUE(hasTensor("adapter"));
  writeModel();
  EXPECT_TRUE(hasTensor("a"));
  write("model.safetensors", {"whole"}, 1);
  EXPECT_TRUE(hasTensor("whole"));
}

TEST_F(WeightsFileShardsTest, WhatIsMissingIsNamed) {
  EXPECT_EQ(errorOf(dir.path("")),
            ": the folder has no weights; expected one of model.safetensors, "
            "model.safetensors.index.json, adapter_model.safetensors");
  dir.write("training_args.txt", "PK\3\4 archive/data.pkl");
  EXPECT_EQ(errorOf(dir.path("")).find("PyTorch"), std::string::npos);
  dir.write("pytorch_model.bin", "PK\3\4 archive/data.pkl");
  EXPECT_TRUE(contains(errorOf(dir.path("")), "pytorch_model.bin: is a file of PyTorch; convert"));
  EXPECT_TRUE(contains(errorOf(dir.path("pytorch_model.bin")), "is a file of PyTorch; convert"));
  std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n";
  dir.write(kIndexName, pointer);
  EXPECT_TRUE(
      contains(errorOf(dir.path("")), std::string(kIndexName) + ": is a pointer of Git LFS"));
  dir.write("model.safetensors", pointer);
  EXPECT_TRUE(contains(errorOf(dir.path("")), "model.safetensors: is a pointer of Git LFS"));
  std::filesystem::remove(dir.path("model.safetensors"));
  writeModel();
  std::filesystem::remove(dir.path(kFirstShard));
  EXPECT_EQ(errorOf(dir.path("")),
            "model.safetensors.index.json: the shard of \"a\" and 1 more tensors: "
            "model-00001-of-00002.safetensors: cannot open: No such file or directory");
  writeModel();
  write(kFirstShard, {"a"}, 1);
  EXPECT_EQ(errorOf(dir.path(kIndexName)),
            "model.safetensors.index.json: tensor \"b\" should be in "
            "model-00001-of-00002.safetensors, which does not have it");
  EXPECT_EQ(errorOf(dir.path("none")), "none: cannot open: No such file or directory");
}

TEST_F(WeightsFileShardsTest, ATensorIsInOneShard) {
  writeModel();
  write(kSecondShard, {"b", "c"}, 3);
  EXPECT_EQ(errorOf(dir.path("")),
            "model.safetensors.index.json: tensor \"b\" is in two shards, "
            "model-00001-of-00002.safetensors and model-00002-of-00002.safetensors");
  dir.write(kIndexName, R"({"weight_map": {"a": "x.safetensors", "a": "y.safetensors"}})");
  EXPECT_EQ(errorOf(dir.path("")),
            "model.safetensors.index.json: weight_map names the tensor \"a\" twice");
}

TEST_F(WeightsFileShardsTest, WhatIsNoIndexIsRefused) {
  auto refused = [&](const std::string &text, const std::string &reason) {
    dir.write(kIndexName, text);
    EXPECT_EQ(errorOf(dir.path(kIndexName)),
              "model.safetensors.index.json: is no index of safetensors files: it " + reason +
                  "; expected a JSON object with weight_map");
  };
  for (const char *text : {"", "{", "[]", "\xFF", R"({"weight_map": {"a": "x"}} 1)"})
    refused(text, "is no JSON object");
  for (const char *text : {"{}", R"({"weight_map": ["a"]})", R"({"weight_map": 1})",
                           R"({"metadata": {"weight_map": {"a": "x"}}})"})
    refused(text, "has no object \"weight_map\"");
  refused(R"({"weight_map": {"a": [[[[[[[)", "is nested too deep");
  refused(R"({"weight_map": {"a": "x"}, "weight_map": {}})", "names \"weight_map\" twice");
  refused(R"({"metadata": )" + std::string(10'000'000, '['), "is nested too deep");
  dir.write(kIndexName, R"({"weight_map": {}})");
  EXPECT_EQ(errorOf(dir.path(kIndexName)),
            "model.safetensors.index.json: weight_map names no tensor");
  write("elsewhere.safetensors", {"a"}, 1);
  for (const char *shard : {R"("../x.safetensors")", R"("/etc/passwd")", R"("")", R"("..")", "1",
                            R"(["x.safetensors"])", R"("x\u0000.safetensors")"}) {
    dir.write(kIndexName, std::string(R"({"weight_map": {"a": )") + shard + "}}");
    EXPECT_EQ(errorOf(dir.path(kIndexName)),
              std::string("model.safetensors.index.json: weight_map has ") + shard +
                  " for the tensor \"a\"; expected the name of a file in the folder of the index");
  }
}

} // namespace weightsFileShardsTest
