//===- PlanFuzzTest.cpp - Plans with damaged bytes ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/executor/Session.h"
#include "runtime/plan/PlanReader.h"
#include "test/runtime/testing/FakeBackend.h"
#include "test/runtime/testing/MutateMessage.h"
#include "test/runtime/testing/TestPlans.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <random>
#include <thread>

using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

/// Ends the process if it is not destroyed in time: a plan must never make the runtime hang.
class TimeGuard {
public:
  TimeGuard(std::chrono::seconds limit, std::string what)
      : thread([this, limit, what = std::move(what)] {
          std::unique_lock lock(mutex);
          if (!changed.wait_for(lock, limit, [&] { return done; })) {
            fprintf(stderr, "took more than %d seconds: %s\n", static_cast<int>(limit.count()),
                    what.c_str());
            abort();
          }
        }) {}
  ~TimeGuard() {
    {
      std::lock_guard lock(mutex);
      done = true;
    }
    changed.notify_all();
    thread.join();
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::thread thread; // last: it uses the others
};

/// Reads and runs; true if the plan came to a result.
bool readAndRun(const std::string &bytes, const std::shared_ptr<const Backend> &backend) {
  auto plan = parsePlan(bytes.data(), bytes.size());
  if (!plan) {
    EXPECT_FALSE(plan.error().message.empty());
    return false;
  }
  auto session = Session::create(*plan, backend);
  if (!session) {
    EXPECT_FALSE(session.error().message.empty());
    return false;
  }
  if ((*session)->initializeStates(1))
    return false;
  for (const dtc::plan::Input &input : (*plan)->programs(0).inputs()) {
    TensorType type{static_cast<DType>(input.dtype()),
                    {input.shape().begin(), input.shape().end()}};
    if ((*session)->setInput(input.name(), HostTensor(type)))
      return false;
  }
  if ((*session)->step(0.1, 1))
    return false;
  for (const dtc::plan::Output &output : (*plan)->programs(0).outputs())
    EXPECT_TRUE(static_cast<bool>((*session)->getOutput(output.name())));
  return true;
}

/// One to four changes: another byte, another bit, a byte less, a byte more, a cut.
std::string damageBytes(std::string bytes, std::mt19937_64 &random) {
  for (uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
    size_t at = random() % bytes.size();
    switch (random() % 8) {
    case 0:
      bytes.erase(at, 1);
      break;
    case 1:
      bytes.insert(at, 1, static_cast<char>(random()));
      break;
    case 2:
    case 3:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
      break;
    default:
      bytes[at] = static_cast<char>(random());
      break;
    }
    if (random() % 64 == 0)
      bytes.resize(at + 1);
  }
  return bytes;
}

/// One or two changes that keep the file a plan in form.
std::string damageFields(dtc::plan::Plan plan, std::mt19937_64 &random) {
  for (uint64_t changes = 1 + random() % 2; changes > 0; --changes)
    mutateMessage(plan, random);
  return serializePlan(plan);
}

void fuzz(const dtc::plan::Plan &plan, uint64_t seed,
          const std::shared_ptr<const Backend> &backend) {
  constexpr int count = 2000;
  std::mt19937_64 random(seed);
  std::string original = serializePlan(plan);
  EXPECT_TRUE(readAndRun(original, backend));
  int ran = 0;
  for (int i = 0; i < count; ++i) {
    std::string bytes = i % 2 == 0 ? damageBytes(original, random) : damageFields(plan, random);
    TimeGuard guard(std::chrono::seconds(60), fmt::format("DTC_FUZZ_SEED={}, plan {}", seed, i));
    ran += readAndRun(bytes, backend);
  }
  // Some changes do no harm (a letter of a name), and most do.
  std::cout << ran << " of " << count << " ran" << std::endl;
  EXPECT_GT(ran, 0);
  EXPECT_LT(ran, count);
}

uint64_t fuzzSeed() {
  const char *fixed = std::getenv("DTC_FUZZ_SEED");
  uint64_t seed = fixed ? std::strtoull(fixed, nullptr, 10) : std::random_device()();
  std::cout << "DTC_FUZZ_SEED=" << seed << std::endl;
  return seed;
}

} // namespace

TEST(PlanFuzz, DamagedPlansGiveAnErrorOrAResult) {
  fuzz(*trainingPlan({2, 2, 2}), fuzzSeed(), createFakeBackend());
}

TEST(PlanFuzz, DamagedPlansWithAsyncCollectivesGiveAnErrorOrAResult) {
  fuzz(*overlapPlan(/*async=*/true), fuzzSeed(), createFakeBackend());
}

TEST(PlanFuzz, DamagedPlansDoNotHarmTheCpuBackend) {
  fuzz(*kernelPlan(), fuzzSeed(), createCpuBackend());
}
