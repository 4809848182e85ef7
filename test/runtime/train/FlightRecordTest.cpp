//===- FlightRecordTest.cpp - Tests of flight records ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/FlightRecord.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace flightRecordTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace std::chrono_literals;

TEST(FlightRecord, WritesWhatThereIs) {
  std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) /
                                 ("flight" + std::to_string(getpid())) / "of" / "a run";
  auto now = std::chrono::steady_clock::now();
  FlightOperation done{"all_reduce", false, {0, 2},   512,     "forward", 1, 4,
                       "m.mlir:7",   3,     now - 3s, now - 2s};
  FlightOperation begun{"receive", true, {1}, 64, "backward", 0, 0, "", 3, now - 1s, std::nullopt};
  FlightOperation next{"send", false, {1}, 64, "backward", 0, 2, "", 0, std::nullopt, std::nullopt};
  begun.predictedSeconds = 0.25;
  DeviceFlight device{2, "device 2 waits", {done, begun}, {next}};
  MaybeError error =
      writeFlightRecord(folder, 5, "node7", "process 1 was lost\nwith \xff bytes", {device});
  ASSERT_FALSE(error) << error->message;
  std::ifstream file(folder / "process-5.json");
  nlohmann::json json = nlohmann::json::parse(file);
  EXPECT_EQ(json["process"], 5);
  EXPECT_EQ(json["host"], "node7");
  EXPECT_TRUE(json["reason"].get<std::string>().starts_with("process 1 was lost\nwith "));
  ASSERT_EQ(json["devices"].size(), 1u);
  const nlohmann::json &found = json["devices"][0];
  EXPECT_EQ(found["device"], 2);
  EXPECT_EQ(found["place"], "device 2 waits");
  ASSERT_EQ(found["last"].size(), 2u);
  EXPECT_EQ(found["last"][0]["operation"], "all_reduce");
  EXPECT_EQ(found["last"][0]["devices"], (std::vector<int>{0, 2}));
  EXPECT_EQ(found["last"][0]["bytes"], 512);
  EXPECT_EQ(found["last"][0]["state"], "done");
  EXPECT_EQ(found["last"][0]["location"], "m.mlir:7");
  double begin = found["last"][0]["begun_seconds_ago"], end = found["last"][0]["ended_seconds_ago"];
  EXPECT_NEAR(begin - end, 1, 1e-3);
  EXPECT_EQ(found["last"][1]["state"], "begun");
  EXPECT_EQ(found["last"][1]["wait"], true);
  EXPECT_FALSE(found["last"][1].contains("ended_seconds_ago"));
  EXPECT_EQ(found["last"][1]["predicted_seconds"], 0.25);
  EXPECT_FALSE(found["last"][0].contains("predicted_seconds"));
  ASSERT_EQ(found["next"].size(), 1u);
  EXPECT_EQ(found["next"][0]["operation"], "send");
  EXPECT_FALSE(found["next"][0].contains("state"));
  std::filesystem::remove_all(folder.parent_path().parent_path());
}

TEST(FlightRecord, SaysWhereItCannot) {
  MaybeError error = writeFlightRecord("/dev/null/flight", 0, "node7", "", {});
  ASSERT_TRUE(error);
  EXPECT_TRUE(error->message.starts_with("--flight-record: /dev/null/flight: cannot be made: "))
      << error->message;
}

} // namespace flightRecordTest
