//===- ProcessCollectiveTest.cpp - Tests of collectives between processes -===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/processes/ProcessCollective.h"

#include "test/lib/fabrics/ThreadMessages.h"
#include "test/lib/files/Sanitizer.h"
#include "test/lib/plans/Expect.h"

#include <algorithm>
#include <array>
#include <future>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <vector>

namespace processCollectiveTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

/// The outputs of a collective that three processes, with four members, run several times.
struct Runs {
  std::vector<std::vector<float>> outputs; // of each member, of one run after the other
  std::vector<bool> areShared;             // of each process
  std::vector<MaybeError> errors;
};

constexpr std::array<int64_t, 4> kProcessOf = {0, 1, 1, 2};

/// `specOf(run, process)` is what a process runs.
template <typename SpecOf> Runs runAll(HostSharing sharing, int runs, const SpecOf &specOf) {
  std::vector<std::shared_ptr<Messages>> ends = openThreadMessages(3);
  Runs result;
  result.outputs.resize(kProcessOf.size());
  result.errors.resize(3);
  std::vector<std::future<bool>> ended;
  for (size_t process = 0; process < 3; ++process)
    ended.push_back(std::async(std::launch::async, [&, process] {
      auto processOf = [](int64_t device) { return kProcessOf[static_cast<size_t>(device)]; };
      ProcessCollective collective(
          *ends[process], ProcessGroup({0, 1, 2, 3}, processOf, static_cast<int64_t>(process)),
          /*tag=*/9, sharing);
      const std::vector<size_t> &ranks = collective.getGroup().ownRanks();
      for (int run = 0; run < runs; ++run) {
        CollectiveSpec spec = specOf(run, process);
        std::vector<std::vector<float>> inputs, outputs;
        std::vector<CollectiveOperands> operands;
        std::vector<std::span<const CollectiveOperands>> ofMembers;
        for (size_t rank : ranks) {
          std::mt19937_64 random(100 * static_cast<uint64_t>(run) + rank);
          std::normal_distribution<float> normal(0, 1e3F);
          inputs.emplace_back(static_cast<size_t>(spec.input.numElements()));
          std::ranges::generate(inputs.back(), [&] { return normal(random); });
          outputs.emplace_back(static_cast<size_t>(spec.output().numElements()));
        }
        for (size_t member = 0; member < ranks.size(); ++member)
          operands.push_back({inputs[member].data(), outputs[member].data()});
        for (CollectiveOperands &each : operands)
          ofMembers.emplace_back(&each, 1);
        if (MaybeError error = collective.run({&spec, 1}, ofMembers)) {
          result.errors[process] = error;
          ends[process]->abort(*error);
          break;
        }
        for (size_t member = 0; member < ranks.size(); ++member)
          result.outputs[ranks[member]].insert(result.outputs[ranks[member]].end(),
                                               outputs[member].begin(), outputs[member].end());
      }
      return collective.sharesMemory();
    }));
  for (std::future<bool> &each : ended)
    result.areShared.push_back(each.get());
  return result;
}

CollectiveSpec specOf(CollectiveKind kind, int64_t rows) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.input = {DType::F32, {rows, 12}};
  spec.members = 4;
  spec.dim = spec.splitDim = 1;
  if (kind == CollectiveKind::Permute)
    spec.sources = std::make_shared<const std::vector<int64_t>>(std::vector<int64_t>{2, 0, 3, 1});
  return spec;
}

} // namespace

TEST(ProcessCollective, SharedMemoryGivesTheBitsOfMessages) {
  // A small number, a chunk, and many, in turns.
  const int64_t many = DTC_SANITIZE_THREAD ? 20'000 : 200'000;
  const std::array<int64_t, 6> rows = {1, 40, 9000, 7, many, many / 3};
  for (CollectiveKind kind :
       {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter, CollectiveKind::AllGather,
        CollectiveKind::AllToAll, CollectiveKind::Permute}) {
    SCOPED_TRACE(name(kind));
    auto spec = [&](int run, size_t) { return specOf(kind, rows[static_cast<size_t>(run)]); };
    Runs shared = runAll(HostSharing::Memory, rows.size(), spec);
    Runs sent = runAll(HostSharing::Messages, rows.size(), spec);
    for (const Runs *each : {&shared, &sent})
      for (const MaybeError &error : each->errors)
        EXPECT_OK(error);
    EXPECT_EQ(shared.areShared, std::vector<bool>(3, true));
    EXPECT_EQ(sent.areShared, std::vector<bool>(3, false));
    EXPECT_TRUE(shared.outputs == sent.outputs);
  }
}

TEST(ProcessCollective, ProcessesThatShareMemoryNoticeOthersThatRunAnotherCollective) {
  for (int64_t rows : {1, 9000}) {
    Runs runs = runAll(HostSharing::Memory, 2, [&](int run, size_t process) {
      return specOf(CollectiveKind::AllReduce, run == 1 && process == 2 ? rows + 1 : rows);
    });
    for (const MaybeError &error : runs.errors)
      EXPECT_ERROR(error, "the members of the group called different collectives");
  }
}

} // namespace processCollectiveTest
