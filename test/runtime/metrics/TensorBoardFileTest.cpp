//===- TensorBoardFileTest.cpp - Metrics for TensorBoard -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/metrics/TensorBoardFile.h"

#include "runtime/metrics/tensorboard.pb.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>

namespace tensorBoardFileTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

/// The names of the files of a folder.
std::vector<std::string> namesIn(const std::string &folder) {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

template <typename T> T numberAt(const std::string &bytes, size_t at) {
  T number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

/// The check that a mask hides: TensorFlow adds a constant and turns the bits by 15.
uint32_t unmasked(uint32_t check) {
  uint32_t turned = check - 0xa282ead8u;
  return (turned >> 17) | (turned << 15);
}

std::vector<dtc::tensorboard::Event> eventsOf(const std::string &bytes) {
  std::vector<dtc::tensorboard::Event> events;
  for (size_t at = 0; at < bytes.size();) {
    EXPECT_GE(bytes.size() - at, 16u);
    auto length = numberAt<uint64_t>(bytes, at);
    EXPECT_EQ(crc32c(std::string_view(bytes).substr(at, 8)),
              unmasked(numberAt<uint32_t>(bytes, at + 8)));
    std::string event = bytes.substr(at + 12, length);
    EXPECT_EQ(crc32c(event), unmasked(numberAt<uint32_t>(bytes, at + 12 + length)));
    EXPECT_TRUE(events.emplace_back().ParseFromString(event));
    at += length + 16;
  }
  return events;
}

} // namespace

TEST(TensorBoardFile, ChecksAreThoseOfTheStandard) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  // RFC 3720, section B.4
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
}

TEST(TensorBoardFile, HasTheScalarsOfEachStep) {
  TempDir dir;
  std::string folder = dir.path("runs/first");
  auto file = TensorBoardFile::open(folder);
  ASSERT_OK(file);
  ASSERT_OK((*file)->begin(4));
  ASSERT_OK((*file)->begin(7)); // once only
  StepMetrics metrics{.step = 5, .loss = 2.5, .gradNorm = NAN, .seconds = 0.25};
  ASSERT_OK((*file)->write(metrics));
  metrics.step = 6;
  metrics.evalLoss = 0;
  ASSERT_OK((*file)->write(metrics));
  std::vector<std::string> names = namesIn(folder);
  ASSERT_EQ(names.size(), 1u);
  EXPECT_TRUE(names.front().starts_with("events.out.tfevents."));
  auto events = eventsOf(dir.read("runs/first/" + names.front()));
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_EQ(events[1].session_log().status(), dtc::tensorboard::SessionLog::START);
  EXPECT_EQ(events[1].step(), 5);
  for (size_t i : {2, 3}) {
    EXPECT_EQ(events[i].step(), static_cast<int64_t>(i + 3));
    EXPECT_GT(events[i].wall_time(), 1.7e9);
    std::map<std::string, float> values;
    for (const auto &value : events[i].summary().value())
      values[value.tag()] = value.simple_value();
    EXPECT_EQ(values.at("train/loss"), 2.5f);
    EXPECT_TRUE(std::isnan(values.at("train/grad_norm")));
    EXPECT_EQ(values.at("speed/step_seconds"), 0.25f);
    EXPECT_FALSE(values.contains("train/learning_rate"));
    EXPECT_EQ(values.contains("eval/loss"), i == 3);
  }
  EXPECT_TRUE(events[3].summary().value(6).has_simple_value()); // 0 as well
}

TEST(TensorBoardFile, HasTheScalarsOfTheModel) {
  TempDir dir;
  auto file = TensorBoardFile::open(dir.path("runs"));
  ASSERT_OK(file);
  ASSERT_OK((*file)->begin(0));
  StepMetrics metrics{.step = 1};
  metrics.expertImbalance = 1.25;
  metrics.droppedTokens = 3;
  metrics.ofModel = {{.name = "expert_tokens", .of = "h.0", .elements = {5, 3}},
                     {.name = "balance", .of = "", .elements = {2.5}, .isScalar = true},
                     {.name = "lost", .of = "h.0", .elements = {7}, .isScalar = true}};
  ASSERT_OK((*file)->write(metrics));
  auto events = eventsOf(dir.read("runs/" + namesIn(dir.path("runs")).front()));
  std::map<std::string, float> values;
  for (const auto &value : events.back().summary().value())
    values[value.tag()] = value.simple_value();
  EXPECT_EQ(values.at("experts/imbalance"), 1.25f);
  EXPECT_EQ(values.at("experts/dropped_tokens"), 3.0f);
  EXPECT_EQ(values.at("model/balance"), 2.5f);
  EXPECT_EQ(values.at("model/lost/h.0"), 7.0f);
  for (const auto &[tag, value] : values)
    EXPECT_FALSE(contains(tag, "expert_tokens")) << "it is no scalar";
}

TEST(TensorBoardFile, ARunThatNeverBeginsLeavesNoFile) {
  TempDir dir;
  ASSERT_OK(TensorBoardFile::open(dir.path("runs")));
  EXPECT_TRUE(namesIn(dir.path("runs")).empty());
}

TEST(TensorBoardFile, AFileInPlaceOfTheFolderIsAnError) {
  TempDir dir;
  dir.write("runs", "");
  EXPECT_ERROR(TensorBoardFile::open(dir.path("runs")), "runs: cannot make the folder: ");
  EXPECT_ERROR(TensorBoardFile::open("/proc/runs"), "/proc/runs: cannot make the folder: ");
}

} // namespace tensorBoardFileTest
