//===- SharedResourcesTest.cpp - Tests of shared resources ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/SharedResources.h"

#include "test/lib/RandomCases.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <optional>
#include <queue>
#include <random>
#include <string>

namespace sharedResourcesTest {

using namespace dtc;

namespace {

struct Job {
  double start = 0, seconds = 0, factor = 1;
  SharedResources::Uses uses;
  // From a time on it has another factor.
  std::optional<double> changed = std::nullopt;
  double laterFactor = 1;
};

/// When each job ends, by the shared resources and a queue of events as simulators have it.
std::vector<double> endsOf(const std::vector<double> &capacities, const std::vector<Job> &jobs) {
  SharedResources resources;
  for (double capacity : capacities)
    resources.addResource(capacity);
  struct Later {
    bool operator()(const SharedResources::End &a, const SharedResources::End &b) const {
      return a.time > b.time;
    }
  };
  std::priority_queue<SharedResources::End, std::vector<SharedResources::End>, Later> queue;
  std::vector<SharedResources::End> ends;
  // Starts and changes of factors, by time.
  std::vector<std::tuple<double, bool, size_t>> actions;
  for (size_t j = 0; j < jobs.size(); ++j) {
    actions.emplace_back(jobs[j].start, false, j);
    if (jobs[j].changed)
      actions.emplace_back(*jobs[j].changed, true, j);
  }
  std::sort(actions.begin(), actions.end());
  std::vector<double> result(jobs.size(), -1);
  std::vector<std::optional<SharedResources::Flow>> flows(jobs.size());
  std::vector<size_t> owners(jobs.size());
  for (size_t next = 0; next < actions.size() || !queue.empty();) {
    if (!queue.empty() &&
        (next == actions.size() || queue.top().time < std::get<0>(actions[next]))) {
      SharedResources::End end = queue.top();
      queue.pop();
      if (resources.finish(end, ends)) {
        EXPECT_EQ(result[owners[end.flow]], -1) << "ends twice";
        result[owners[end.flow]] = end.time;
        flows[owners[end.flow]].reset();
      }
    } else {
      auto [time, isChange, j] = actions[next++];
      if (!isChange) {
        SharedResources::Flow flow =
            resources.start(time, jobs[j].seconds, jobs[j].uses, jobs[j].factor, ends);
        flows[j] = flow;
        owners[flow] = j;
      } else if (flows[j]) {
        resources.setFactor(time, *flows[j], jobs[j].laterFactor, ends);
      }
    }
    for (const SharedResources::End &end : ends)
      queue.push(end);
    ends.clear();
  }
  return result;
}

/// The same from the definition: from one time at which something happens to the next all rates
/// hold still, and all are made anew.
std::vector<double> endsByDefinition(const std::vector<double> &capacities,
                                     const std::vector<Job> &jobs) {
  std::vector<double> left, result(jobs.size(), -1);
  for (const Job &job : jobs)
    left.push_back(job.seconds);
  double now = 0;
  while (std::count(result.begin(), result.end(), -1)) {
    auto isActive = [&](size_t j) { return result[j] < 0 && jobs[j].start <= now; };
    std::vector<double> demand(capacities.size(), 0), rates(jobs.size(), 0);
    for (size_t j = 0; j < jobs.size(); ++j)
      for (size_t u = 0; isActive(j) && u < jobs[j].uses.count; ++u)
        demand[jobs[j].uses.uses[u].resource] += jobs[j].uses.uses[u].demand;
    double next = std::numeric_limits<double>::infinity();
    for (size_t j = 0; j < jobs.size(); ++j) {
      const Job &job = jobs[j];
      for (double time : {job.start, job.changed.value_or(0)})
        if (time > now)
          next = std::min(next, time);
      if (!isActive(j))
        continue;
      double rate = 1;
      for (size_t u = 0; u < job.uses.count; ++u) {
        size_t resource = job.uses.uses[u].resource;
        rate = std::min(rate, capacities[resource] / demand[resource]);
      }
      rates[j] = rate * (job.changed && *job.changed <= now ? job.laterFactor : job.factor);
      next = std::min(next, now + left[j] / rates[j]);
    }
    for (size_t j = 0; j < jobs.size(); ++j) {
      if (!isActive(j))
        continue;
      left[j] -= (next - now) * rates[j];
      if (left[j] <= 1e-12 * jobs[j].seconds)
        result[j] = next;
    }
    now = next;
  }
  return result;
}

SharedResources::Uses usesOf(const std::vector<SharedResources::Use> &list) {
  SharedResources::Uses uses;
  for (const SharedResources::Use &use : list)
    uses.add(use.resource, use.demand);
  return uses;
}

} // namespace

TEST(SharedResources, AloneAFlowTakesItsTime) {
  EXPECT_EQ(endsOf({1}, {{0, 5, 1, usesOf({{0, 1}})}}), (std::vector<double>{5}));
  EXPECT_EQ(endsOf({1}, {{2, 5, 1, usesOf({})}}), (std::vector<double>{7}));
  // More than it asks for makes it no faster.
  EXPECT_EQ(endsOf({9}, {{0, 5, 1, usesOf({{0, 1}})}}), (std::vector<double>{5}));
  EXPECT_EQ(endsOf({2}, {{0, 5, 1, usesOf({{0, 8}})}}), (std::vector<double>{20}));
  EXPECT_EQ(endsOf({1}, {{3, 0, 1, usesOf({{0, 1}})}}), (std::vector<double>{3}));
}

TEST(SharedResources, TwoShareEvenly) {
  SharedResources::Uses one = usesOf({{0, 1}});
  // The longer one has all of it from 4 on.
  EXPECT_EQ(endsOf({1}, {{0, 2, 1, one}, {0, 5, 1, one}}), (std::vector<double>{4, 7}));
  // At once: both end at the same time, and neither is lost.
  EXPECT_EQ(endsOf({1}, {{0, 2, 1, one}, {0, 2, 1, one}, {0, 2, 1, one}}),
            (std::vector<double>{6, 6, 6}));
  // One starts as another ends.
  EXPECT_EQ(endsOf({1}, {{0, 2, 1, one}, {2, 2, 1, one}}), (std::vector<double>{2, 4}));
}

/// A flow through two resources goes as fast as the scarcer one lets it.
TEST(SharedResources, TheScarcestHolds) {
  EXPECT_EQ(endsOf({1, 1}, {{0, 3, 1, usesOf({{0, 1}, {1, 1}})},
                            {0, 9, 1, usesOf({{1, 2}})},
                            {0, 1, 1, usesOf({{0, 1}})}}),
            (std::vector<double>{9, 21, 2}));
}

TEST(SharedResources, FactorsSlowDown) {
  EXPECT_EQ(endsOf({1}, {{0, 4, 0.5, usesOf({{0, 1}})}}), (std::vector<double>{8}));
  EXPECT_EQ(endsOf({1}, {{0, 4, 1, usesOf({{0, 1}}), 2.0, 0.5}}), (std::vector<double>{6}));
  EXPECT_EQ(endsOf({1}, {{0, 4, 0.5, usesOf({{0, 1}}), 4.0, 1}}), (std::vector<double>{6}));
}

TEST(SharedResources, RandomFlowsEndAsByDefinition) {
  const uint64_t count = dtc::test::randomCases(400), seed = dtc::test::randomSeed();
  std::mt19937_64 random(seed);
  auto real = [&](double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random);
  };
  for (uint64_t test = 0; test < count; ++test) {
    SCOPED_TRACE("DTC_RANDOM_SEED=" + std::to_string(seed) + ", test " + std::to_string(test));
    std::vector<double> capacities(1 + random() % 5);
    for (double &capacity : capacities)
      capacity = random() % 2 ? 1 : real(0.5, 4);
    // Whole numbers let much happen at the same time.
    bool isWhole = random() % 2;
    std::vector<Job> jobs(1 + random() % 25);
    for (Job &job : jobs) {
      job.start = isWhole ? static_cast<double>(random() % 10) : real(0, 10);
      job.seconds = isWhole ? static_cast<double>(1 + random() % 5) : real(0.1, 5);
      job.factor = random() % 3 ? 1 : real(0.3, 1);
      // Every resource at most once.
      std::vector<SharedResources::Resource> order;
      for (size_t r = 0; r < capacities.size(); ++r)
        order.push_back(static_cast<SharedResources::Resource>(r));
      std::shuffle(order.begin(), order.end(), random);
      size_t count = random() % (std::min(capacities.size(), SharedResources::mostUses) + 1);
      for (size_t u = 0; u < count; ++u)
        job.uses.add(order[u], isWhole ? 1 : real(0.5, 2));
      if (random() % 3 == 0) {
        job.changed = job.start + real(0.01, 5);
        job.laterFactor = real(0.3, 1);
      }
    }
    std::vector<double> found = endsOf(capacities, jobs),
                        expected = endsByDefinition(capacities, jobs);
    for (size_t j = 0; j < jobs.size(); ++j)
      ASSERT_NEAR(found[j], expected[j], 1e-9 * expected[j]) << "job " << j;
  }
}

} // namespace sharedResourcesTest
