//===- PlanFixturesTest.cpp - Tests of stored plans -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// fixtures/version-N.plan is a plan as dtc-compile wrote it at version N: examples/mlp.mlir with
// --mesh dp=2,pp=2 --microbatches 2 --zero 2 --dtype bf16. One is added with each version from the
// first that was kept, and none is changed. fixtures/invalid has plans as text, each with one
// defect and in its first line the error that tells it.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanReader.h"
#include "support/ReadText.h"
#include "test/lib/files/SourcePath.h"
#include "test/lib/plans/Expect.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <vector>

namespace planFixturesTest {

using namespace dtc;
using namespace dtc::runtime::testing;

constexpr uint32_t kFirstFixture = 8;

static std::vector<std::filesystem::path> filesIn(const char *folder, const char *extension) {
  std::vector<std::filesystem::path> files;
  for (const auto &entry : std::filesystem::directory_iterator(dtc::test::sourcePath(folder)))
    if (entry.path().extension() == extension)
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

static std::string fixture(uint32_t version) {
  return dtc::test::sourcePath(fmt::format("test/plan/fixtures/version-{}.plan", version));
}

TEST(PlanFixtures, ThisVersionsPlanIsRead) {
  VerifierResult facts;
  auto plan = readPlan(fixture(kPlanVersion), &facts);
  ASSERT_OK(plan);
  EXPECT_EQ((*plan)->model(), "mlp");
  EXPECT_EQ((*plan)->programs_size(), 2);
  EXPECT_EQ((*plan)->axes_size(), 3);
}

TEST(PlanFixtures, ThisVersionsPlanSurvivesText) {
  auto plan = readPlan(fixture(kPlanVersion));
  ASSERT_OK(plan);
  std::string text;
  plan::Plan copy;
  ASSERT_TRUE(google::protobuf::TextFormat::PrintToString(**plan, &text));
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &copy));
  EXPECT_TRUE(serializePlan(copy) == serializePlan(**plan));
}

TEST(PlanFixtures, PlansOfOtherVersionsAreRefused) {
  for (uint32_t version = kFirstFixture; version < kPlanVersion; ++version)
    EXPECT_ERROR(readPlan(fixture(version)), "is older than this runtime reads");
}

// Fields that this version no longer has are kept as they were read.
TEST(PlanFixtures, EachVersionHasOneThatIsWrittenAsItWasRead) {
  EXPECT_EQ(filesIn("test/plan/fixtures", ".plan").size(), kPlanVersion - kFirstFixture + 1);
  for (uint32_t version = kFirstFixture; version <= kPlanVersion; ++version) {
    SCOPED_TRACE(version);
    Expected<std::string> bytes = readText(fixture(version));
    ASSERT_OK(bytes);
    plan::Plan plan;
    ASSERT_TRUE(plan.ParseFromString(*bytes));
    EXPECT_EQ(plan.version(), version);
    EXPECT_EQ(plan.model(), "mlp");
    // Not EXPECT_EQ, which prints the bytes.
    EXPECT_TRUE(serializePlan(plan) == *bytes);
  }
}

TEST(PlanFixtures, InvalidPlansAreRefusedWithTheirErrors) {
  std::vector<std::filesystem::path> plans = filesIn("test/plan/fixtures/invalid", ".textproto");
  EXPECT_GE(plans.size(), 12u);
  for (const std::filesystem::path &path : plans) {
    SCOPED_TRACE(path.filename());
    std::ifstream file(path);
    std::string first, mark = "# error: ";
    std::getline(file, first);
    ASSERT_TRUE(first.starts_with(mark));
    dtc::plan::Plan plan;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        std::string(std::istreambuf_iterator<char>(file), {}), &plan));
    if (!path.stem().string().starts_with("version-"))
      plan.set_version(kPlanVersion);
    std::string bytes = serializePlan(plan);
    EXPECT_EQ(messageOf(parsePlan(bytes.data(), bytes.size())), first.substr(mark.size()));
  }
}

} // namespace planFixturesTest
