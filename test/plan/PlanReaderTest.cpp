//===- PlanReaderTest.cpp - Plans in files --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanReader.h"

#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"
#include "test/lib/plans/TestPlans.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

namespace planReaderTest {

using namespace dtc;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

TEST(PlanReader, ReadsWhatWasWritten) {
  TempDir dir;
  auto original = trainingPlan({2, 2, 2});
  ASSERT_OK(writePlan(*original, dir.path("m.plan")));
  auto read = readPlan(dir.path("m.plan"));
  ASSERT_OK(read);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(*original, **read));
  EXPECT_EQ(dir.numFiles(), 1u);
}

TEST(PlanReader, EqualPlansGiveEqualBytes) {
  // Attributes are a map, which has another order in every process and for every history.
  auto first = trainingPlan(), second = trainingPlan();
  plan::KernelCall *call = nullptr;
  for (auto &instruction : *second->mutable_programs(0)->mutable_tasks(1)->mutable_instructions())
    if (instruction.kernel().kernel() == "sgd")
      call = instruction.mutable_kernel();
  ASSERT_TRUE(call);
  for (int i = 0; i < 100; ++i)
    (*call->mutable_attributes())[std::to_string(i)].set_i(i);
  for (int i = 0; i < 100; ++i)
    call->mutable_attributes()->erase(std::to_string(i));
  EXPECT_EQ(serializePlan(*first), serializePlan(*second));
}

TEST(PlanReader, SaysWhatIsWrongWithAFile) {
  TempDir dir;
  EXPECT_ERROR(readPlan(dir.path("none.plan")), "none.plan: cannot open: No such file");
  EXPECT_ERROR(readPlan(dir.path("")), "is not a regular file");
  EXPECT_ERROR(readPlan(dir.write("empty.plan", "")), "empty.plan: the file is empty");
  EXPECT_ERROR(readPlan(dir.write("text.plan", "once upon a time\n")), "is not a plan");
  EXPECT_ERROR(readPlan(dir.write("zero.plan", std::string(100, '\0'))), "is not a plan");
  std::string bytes = serializePlan(*trainingPlan());
  EXPECT_ERROR(readPlan(dir.write("cut.plan", bytes.substr(0, bytes.size() / 2))),
               "the plan is truncated or damaged");
}

TEST(PlanReader, RefusesOtherVersions) {
  auto plan = trainingPlan();
  plan->set_version(kPlanVersion + 1);
  std::string bytes = plan->SerializeAsString();
  EXPECT_ERROR(parsePlan(bytes.data(), bytes.size()),
               "plan version 11 is newer than this runtime reads (10); update the runtime");
  plan->set_version(3);
  bytes = plan->SerializeAsString();
  EXPECT_ERROR(parsePlan(bytes.data(), bytes.size()),
               "plan version 3 is older than this runtime reads (10); compile the model again");
  plan->set_version(0);
  bytes = plan->SerializeAsString();
  EXPECT_ERROR(parsePlan(bytes.data(), bytes.size()), "states no version");
}

TEST(PlanReader, NamesANewerVersionThatItCannotParse) {
  // Version 11, then field 100 with a length beyond the end.
  std::string bytes("\x08\x0b\xa2\x06\x7f", 5);
  EXPECT_ERROR(parsePlan(bytes.data(), bytes.size()), "plan version 11 is newer");
}

TEST(PlanReader, RefusesHugeFilesBeforeParsing) {
  TempDir dir;
  std::string path = dir.write("huge.plan", "x");
  std::filesystem::resize_file(path, kMaxPlanFileBytes + 1);
  EXPECT_ERROR(readPlan(path), "the largest plan that is read has 256.0 MiB");
}

TEST(PlanReader, WritesWholeFilesOnly) {
  TempDir dir;
  EXPECT_ERROR(writePlan(*trainingPlan(), dir.path("no/m.plan")), "no/m.plan: cannot write");
  EXPECT_EQ(dir.numFiles(), 0u);
}

} // namespace planReaderTest
