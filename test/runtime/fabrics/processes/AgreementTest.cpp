//===- AgreementTest.cpp - Small values of all processes -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/processes/Agreement.h"

#include "runtime/fabrics/processes/ProcessFabric.h"
#include "test/lib/fabrics/ThreadMessages.h"
#include "test/lib/plans/Expect.h"

#include <future>
#include <gtest/gtest.h>

namespace agreementTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

/// The results of call(messages) in each of `processes` processes.
template <typename Call> auto inProcesses(int64_t processes, const Call &call) {
  using Result = decltype(call(std::declval<Messages &>()));
  std::vector<std::future<Result>> futures;
  auto ends = openThreadMessages(processes);
  for (auto &end : ends)
    futures.push_back(std::async(std::launch::async, [&call, end] { return call(*end); }));
  std::vector<Result> results;
  for (std::future<Result> &future : futures)
    results.push_back(future.get());
  return results;
}

} // namespace

TEST(Agreement, AllGetTheSame) {
  for (int64_t processes : {1, 2, 3, 4, 7, 8, 13})
    for (auto [reduction, expected] :
         {std::pair(ReductionKind::Sum, processes * (processes - 1) / 2),
          std::pair(ReductionKind::Max, processes - 1), std::pair(ReductionKind::Min, int64_t{0})})
      for (const Expected<int64_t> &value :
           inProcesses(processes, [&, r = reduction](Messages &messages) {
             return agree(messages, r, messages.process());
           }))
        EXPECT_EQ(*value, expected) << processes;
}

TEST(Agreement, BroadcastsOfAnySizeInARow) {
  for (int64_t processes : {1, 2, 5, 8}) {
    auto results = inProcesses(processes, [](Messages &messages) {
      std::string all;
      for (int64_t from = 0; from < messages.numProcesses(); ++from)
        for (size_t size : {0, 1, 504, 505, 100000}) {
          std::string own(size, static_cast<char>('a' + messages.process()));
          Expected<std::string> got = broadcast(messages, from, std::move(own));
          if (!got || *got != std::string(size, static_cast<char>('a' + from)))
            return std::string("wrong");
          all += std::to_string(got->size()) + " ";
        }
      return all;
    });
    for (const std::string &result : results) {
      EXPECT_NE(result, "wrong");
      EXPECT_EQ(result, results.front());
    }
  }
}

TEST(Agreement, TheFirstHasWhatEachGives) {
  for (int64_t processes : {1, 2, 3, 4, 6, 7, 8, 13}) {
    auto results = inProcesses(processes, [](Messages &messages) {
      auto ignored = gather(messages, -1);
      return gather(messages, 0.5 + static_cast<double>(messages.process()));
    });
    for (size_t process = 0; process < results.size(); ++process) {
      ASSERT_OK(results[process]);
      ASSERT_EQ(results[process]->size(), process == 0 ? results.size() : 0u) << processes;
      for (size_t each = 0; each < results[process]->size(); ++each)
        EXPECT_EQ((*results[process])[each], 0.5 + static_cast<double>(each)) << processes;
    }
  }
}

TEST(Agreement, AnAbortEndsIt) {
  auto ends = openThreadMessages(3);
  auto waiting =
      std::async(std::launch::async, [&] { return agree(*ends[0], ReductionKind::Max, 1); });
  ends[2]->abort(Error{"the disk is full"});
  EXPECT_ERROR(waiting.get(), "the disk is full");
  EXPECT_ERROR(broadcast(*ends[1], 0, "text"), "the disk is full");
  EXPECT_ERROR(gather(*ends[1], 1), "the disk is full");
}

} // namespace agreementTest
