//===- ManifestTest.cpp - The manifest of a checkpoint --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/Manifest.h"

#include "runtime/checkpoint/Checksum.h"
#include "test/lib/plans/Expect.h"

#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>

namespace manifestTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

CheckpointManifest fullManifest() {
  CheckpointManifest manifest;
  manifest.identity = {
      .seed = std::numeric_limits<uint64_t>::max(),
      .samples = 16,
      .batches = 2,
      .sequence = 128,
      .optimizer = {{"adamw beta1=0.9", {"w", "v"}}, {"sgd \"checksum\": \"x", {}}},
      .data = "a \"checksum\": \"0\" b",
      .model = "abc",
      .adapters = "def",
      .operations = "0123",
      .updateSettings = "clip=1"};
  manifest.position = {
      .step = 12, .skippedInARow = 1, .lastFiniteStep = 11, .nextBatch = 24, .outerForgotten = 10};
  manifest.learningRate = "constant at 0.1";
  manifest.model = "m";
  manifest.producer = "p";
  manifest.planProducer = "q";
  manifest.planVersion = 7;
  manifest.files = {{"state-00001-of-00001.safetensors", 1000, "h"}};
  manifest.tensors["w"] = {.file = 0,
                           .type = {DType::BF16, {4, 3}},
                           .parameter = "",
                           .isStepState = false,
                           .regions = {{{12}, {0}, {5}, "one"}, {{12}, {5}, {7}, "two"}}};
  manifest.tensors["w.m"] = {.file = 0,
                             .type = {DType::F32, {}},
                             .parameter = "w",
                             .isStepState = false,
                             .regions = {{{}, {}, {}, "three"}}};
  manifest.tensors["steps"] = {.file = 0,
                               .type = {DType::I32, {}},
                               .parameter = "",
                               .isStepState = true,
                               .regions = {{{}, {}, {}, "four"}}};
  return manifest;
}

} // namespace

TEST(Manifest, ReadsWhatItWrites) {
  CheckpointManifest written = fullManifest();
  std::string text = toJson(written);
  Expected<CheckpointManifest> read = parseManifest(text);
  ASSERT_OK(read);
  EXPECT_EQ(toJson(*read), text);
  EXPECT_EQ(read->identity.seed, written.identity.seed);
  EXPECT_EQ(read->identity.optimizer, written.identity.optimizer);
  EXPECT_EQ(read->identity.adapters, "def");
  EXPECT_EQ(read->identity.operations, "0123");
  EXPECT_EQ(read->identity.updateSettings, "clip=1");
  EXPECT_EQ(read->position.skippedInARow, 1);
  EXPECT_EQ(read->position.lastFiniteStep, 11);
  EXPECT_EQ(read->position.nextBatch, 24);
  EXPECT_EQ(read->position.outerForgotten, 10);
  EXPECT_EQ(read->tensors.at("w").regions, written.tensors.at("w").regions);
  EXPECT_EQ(read->tensors.at("w.m").parameter, "w");
  EXPECT_TRUE(read->tensors.at("steps").isStepState);
  EXPECT_FALSE(read->tensors.at("w").isStepState);
  EXPECT_EQ(read->numBytes(), 1000u);
}

/// As it was before there were these.
TEST(Manifest, ReadsOnesThatSayLessOfTheModel) {
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(toJson(fullManifest()));
  for (const char *key : {"adapters", "operations", "update_settings"})
    EXPECT_EQ(json["identity"].erase(key), 1u);
  const std::string none(32, '0');
  json["checksum"] = none;
  std::string text = json.dump(1) + "\n";
  text.replace(text.find(none), none.size(), checksumOf(std::string_view(text)));
  Expected<CheckpointManifest> read = parseManifest(text);
  ASSERT_OK(read);
  EXPECT_EQ(read->identity.model, "abc");
  EXPECT_EQ(read->identity.adapters, "");
  EXPECT_EQ(read->identity.operations, "");
  EXPECT_EQ(read->identity.updateSettings, "");
}

TEST(Manifest, RefusesEveryChangedBit) {
  std::string text = toJson(fullManifest());
  for (size_t i = 0; i < text.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      EXPECT_FALSE(parseManifest(damaged)) << "bit " << bit << " of byte " << i;
    }
}

TEST(Manifest, RefusesEveryTruncation) {
  std::string text = toJson(fullManifest());
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(parseManifest(text.substr(0, size))) << size;
}

TEST(Manifest, SaysWhatIsWrong) {
  EXPECT_ERROR(parseManifest("[]"), "is no manifest of a checkpoint");
  EXPECT_ERROR(parseManifest(R"({"format": "x", "version": 3})"), "is no manifest of a checkpoint");
  EXPECT_ERROR(parseManifest(R"({"format": "dtc checkpoint", "version": 2})"),
               "the checkpoint has version 2, expected 3; use the dtc-run that wrote it");
  EXPECT_ERROR(parseManifest(R"({"format": "dtc checkpoint", "version": 3})"),
               "is damaged: its checksum is another");
}

TEST(Manifest, RefusesRegionsThatDoNotFit) {
  auto parse = [](const CheckpointRegion &region, size_t file) {
    CheckpointManifest manifest = fullManifest();
    manifest.tensors["w"].regions = {region};
    manifest.tensors["w"].file = file;
    return parseManifest(toJson(manifest));
  };
  EXPECT_OK(parse({{12}, {0}, {12}, ""}, 0));
  EXPECT_ERROR(parse({{12}, {0}, {12}, ""}, 1), "tensor \"w\": is in file 1 of 1");
  EXPECT_ERROR(parse({{12}, {0}, {11}, ""}, 0), "has 12 elements, and its regions 11");
  EXPECT_ERROR(parse({{12}, {1}, {12}, ""}, 0), "has a region that does not lie in it");
  EXPECT_ERROR(parse({{12}, {-1}, {12}, ""}, 0), "has a region that does not lie in it");
  EXPECT_ERROR(parse({{13}, {0}, {12}, ""}, 0), "has a region that does not lie in it");
  EXPECT_ERROR(parse({{12}, {0, 0}, {12}, ""}, 0), "has a region that does not lie in it");
}

} // namespace manifestTest
