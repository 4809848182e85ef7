//===- ClientsSourceTest.cpp - Tests of the data of clients --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/ClientsSource.h"
#include "runtime/data/Safetensors.h"
#include "test/lib/RandomCases.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

namespace clientsSourceTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

TEST(ClientRounds, TakeDifferentClients) {
  dtc::test::forEachRandomCase(40, [](uint64_t seed) {
    std::mt19937_64 random(seed);
    size_t replicas = 1 + random() % 8, clients = replicas + random() % 20;
    uint64_t runSeed = random();
    ClientRounds rounds(runSeed, clients, replicas), others(runSeed, clients, replicas);
    std::map<size_t, int64_t> before;
    std::set<std::vector<size_t>> orders;
    for (int64_t round = 0; round < 60; ++round) {
      std::vector<size_t> taken;
      for (size_t replica = 0; replica < replicas; ++replica) {
        taken.push_back(rounds.clientOf(round, replica));
        EXPECT_LT(taken.back(), clients);
        EXPECT_EQ(rounds.roundsBefore(round, replica), before[taken.back()]);
      }
      for (size_t client : taken)
        ++before[client];
      EXPECT_EQ(std::set(taken.begin(), taken.end()).size(), replicas);
      orders.insert(taken);
    }
    EXPECT_TRUE(clients < 3 || orders.size() > 2) << orders.size();
    // A round is the same whatever was asked for before.
    for (int64_t round : {50, 3, 59, 0})
      for (size_t replica = 0; replica < replicas; ++replica)
        EXPECT_EQ(others.roundsBefore(round, replica), rounds.roundsBefore(round, replica));
  });
}

TEST(ClientRounds, TakeAllClientsEquallyOften) {
  ClientRounds rounds(7, 20, 5);
  std::vector<int> counts(20);
  for (int64_t round = 0; round < 4000; ++round)
    for (size_t replica = 0; replica < 5; ++replica)
      ++counts[rounds.clientOf(round, replica)];
  // Each is in a quarter of the rounds: 1000 of 4000, with a standard deviation of 27.
  EXPECT_GT(*std::ranges::min_element(counts), 860);
  EXPECT_LT(*std::ranges::max_element(counts), 1140);
}

namespace {

/// Client c has `counts[c]` samples: 1000 c, 1000 c + 1, ... The rows of 2 replicas alternate.
std::unique_ptr<ClientsSource> open(const TempDir &dir, const std::vector<int64_t> &counts,
                                    LocalWork work, Sampling sampling) {
  std::vector<ClientData> clients;
  for (size_t c = 0; c < counts.size(); ++c) {
    HostTensor x(TensorType{DType::I32, {counts[c]}});
    for (int64_t i = 0; i < counts[c]; ++i)
      x.as<int32_t>()[i] = static_cast<int32_t>(1000 * static_cast<int64_t>(c) + i);
    std::string name = std::to_string(c), path = dir.path(name + ".safetensors");
    EXPECT_OK(writeSafetensors(path, std::map<std::string, HostTensor>{{"x", x}}));
    clients.push_back({name, {path}});
  }
  auto source = ClientsSource::open(std::move(clients), {{"x", {DType::I32, {4}}, 0, {}}},
                                    {11, sampling}, {2, {0, 1, 0, 1}}, work);
  EXPECT_OK(source);
  return std::move(*source);
}

} // namespace

TEST(ClientsSource, ReplicasHaveSamplesOfTheirClients) {
  TempDir dir;
  auto source = open(dir, {3, 9, 5}, {2}, Sampling::Random);
  for (int64_t number = 1; number <= 40; ++number) {
    auto batch = source->batch(number);
    ASSERT_OK(batch);
    for (size_t row = 0; row < 4; ++row)
      EXPECT_EQ(static_cast<size_t>(batch->at("x").as<int32_t>()[row]) / 1000,
                source->getRounds().clientOf((number - 1) / 2, row % 2));
  }
  EXPECT_EQ(source->weightOf(1), 9);
  EXPECT_EQ(source->samplesPerEpoch(), 17U);
}

TEST(ClientsSource, AClientGoesOnWhereItsLastRoundEnded) {
  TempDir dir;
  const std::vector<int64_t> counts = {3, 9, 5, 4};
  auto source = open(dir, counts, {3}, Sampling::Epochs);
  std::map<size_t, std::vector<int32_t>> sequences;
  for (int64_t number = 1; number <= 120; ++number) {
    auto batch = source->batch(number);
    ASSERT_OK(batch);
    for (size_t row = 0; row < 4; ++row)
      sequences[source->getRounds().clientOf((number - 1) / 3, row % 2)].push_back(
          batch->at("x").as<int32_t>()[row]);
  }
  // Each sample is there once in an epoch of its client, over the borders of rounds.
  for (size_t c = 0; c < counts.size(); ++c) {
    const std::vector<int32_t> &sequence = sequences[c];
    auto count = static_cast<size_t>(counts[c]);
    ASSERT_GT(sequence.size(), 2 * count);
    for (size_t begin = 0; begin + count <= sequence.size(); begin += count) {
      auto first = sequence.begin() + static_cast<ptrdiff_t>(begin);
      EXPECT_EQ(std::set(first, first + static_cast<ptrdiff_t>(count)).size(), count);
    }
  }
  // Batches do not depend on what was read before.
  auto again = open(dir, counts, {3}, Sampling::Epochs);
  auto late = again->batch(100), expected = source->batch(100);
  ASSERT_OK(late);
  ASSERT_OK(expected);
  EXPECT_EQ(late->at("x").bytes, expected->at("x").bytes);
}

TEST(ClientsSource, EpochsAreStepsOfEachClient) {
  TempDir dir;
  const std::vector<int64_t> counts = {3, 9, 5, 4};
  // 2 batches of 2 rows in a step: one pass takes 1, 3, 2 and 1 steps.
  auto source = open(dir, counts, {std::nullopt, 1, 2}, Sampling::Epochs);
  EXPECT_EQ(source->stepsOfRound(), 3);
  const std::vector<int64_t> steps = {1, 3, 2, 1};
  std::map<size_t, std::vector<int32_t>> sequences;
  for (int64_t round = 0; round < 30; ++round)
    for (int64_t batch = 0; batch < 6; ++batch) {
      auto read = source->batch(round * 6 + batch + 1);
      ASSERT_OK(read);
      for (size_t row = 0; row < 4; ++row) {
        size_t client = source->getRounds().clientOf(round, row % 2);
        if (batch / 2 < source->stepsOf(client))
          sequences[client].push_back(read->at("x").as<int32_t>()[row]);
      }
    }
  for (size_t c = 0; c < counts.size(); ++c) {
    EXPECT_EQ(source->stepsOf(c), steps[c]);
    const std::vector<int32_t> &sequence = sequences[c];
    auto count = static_cast<size_t>(counts[c]);
    ASSERT_GT(sequence.size(), 2 * count);
    for (size_t begin = 0; begin + count <= sequence.size(); begin += count) {
      auto first = sequence.begin() + static_cast<ptrdiff_t>(begin);
      EXPECT_EQ(std::set(first, first + static_cast<ptrdiff_t>(count)).size(), count);
    }
  }
}

TEST(ClientsSource, IsKnownByItsClients) {
  TempDir dir;
  auto one = open(dir, {3, 9, 5}, {2}, Sampling::Random)->fingerprint();
  auto same = open(dir, {3, 9, 5}, {4}, Sampling::Epochs)->fingerprint();
  auto other = open(dir, {3, 9, 6}, {2}, Sampling::Random)->fingerprint();
  ASSERT_OK(one);
  ASSERT_OK(same);
  ASSERT_OK(other);
  EXPECT_EQ(*one, *same);
  EXPECT_NE(*one, *other);
}

} // namespace clientsSourceTest
