//===- HeldLaunchesTest.cpp - Tests of shared kernel launches -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Calls that a queue puts into one launch must have the effect, bit by bit, of a launch for each,
// which calls have between events.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/HeldLaunches.h"
#include "runtime/backends/cuda/CudaBackend.h"
#include "test/lib/RandomCases.h"
#include "test/lib/plans/Expect.h"
#include "test/standin/cuda/Standin.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <random>

namespace dtc::runtime::heldLaunchesTest {

namespace {

using testing::check;
using testing::take;

/// A call on an arena; operands are offsets of bytes there.
struct Call {
  KernelSignature signature;
  std::vector<size_t> inputs, outputs;
};

constexpr size_t kArena = 1 << 17;
// Scalars that all updates share, at the begin of the arena, and the first byte after them.
constexpr size_t kRate = 0, kStep = 64, kScale = 128, kApply = 192, kTensors = 256;

Call adamw(size_t p, size_t g, size_t m, size_t v, int64_t count, double weightDecay = 0.1) {
  TensorType type{DType::F32, {count}}, scalar{DType::F32, {}};
  return {{"adamw",
           {type, type, type, type, scalar, scalar, scalar, {DType::Bool, {}}},
           {type, type, type},
           {{"beta1", 0.9}, {"beta2", 0.95}, {"eps", 1e-8}, {"weight_decay", weightDecay}},
           {}},
          {p, g, m, v, kRate, kStep, kScale, kApply},
          {p, m, v}};
}

Call sgd(size_t p, size_t g, size_t m, int64_t count) {
  TensorType type{DType::F32, {count}}, scalar{DType::F32, {}};
  return {{"sgd",
           {type, type, type, scalar, scalar, {DType::Bool, {}}},
           {type, type},
           {{"momentum", 0.9}, {"weight_decay", 0.1}},
           {}},
          {p, g, m, kRate, kScale, kApply},
          {p, m}};
}

Call convert(size_t from, DType fromType, size_t to, DType toType, int64_t count) {
  return {{"convert", {{fromType, {count}}}, {{toType, {count}}}, {}, {}}, {from}, {to}};
}

struct Outcome {
  std::vector<std::byte> arena;
  uint64_t launches = 0;
};

/// The sum of the products of all elements of two tensors.
Call dot(size_t lhs, size_t rhs, DType in, size_t to, DType out, int64_t count) {
  TensorType type{in, {count}};
  return {{"einsum", {type, type}, {{out, {}}}, {{"equation", std::string("a,a->")}}, {}},
          {lhs, rhs},
          {to}};
}

/// The sum of the squares of all elements.
Call squares(size_t from, size_t to, int64_t count) {
  return dot(from, from, DType::F32, to, DType::F32, count);
}

/// The arena after the calls. `apart`: with an event after each, before which nothing is held.
Outcome run(const std::vector<Call> &calls, bool apart, bool applies = true) {
  standin::reset();
  Outcome result{std::vector<std::byte>(kArena)};
  {
    std::unique_ptr<Backend> backend = createCudaBackend();
    std::unique_ptr<Device> device = take(backend->openDevice(0));
    auto staging = take(device->allocateStaging(kArena)), arena = take(device->allocate(kArena));
    auto queue = take(device->openQueue(QueueKind::Compute));
    auto event = take(device->createEvent(false));
    auto *values = reinterpret_cast<float *>(staging->data());
    for (size_t i = 0; i < kArena / sizeof(float); ++i)
      values[i] = 0.25f + static_cast<float>(i % 1021) / 1021;
    values[kStep / sizeof(float)] = 3;
    staging->data()[kApply] = std::byte(applies);
    check(queue->copy(arena->data(), staging->data(), kArena));
    std::vector<std::unique_ptr<Kernel>> kernels;
    size_t workspaceBytes = 0;
    for (const Call &call : calls) {
      kernels.push_back(take(backend->prepare(call.signature)));
      workspaceBytes = std::max(workspaceBytes, kernels.back()->workspaceBytes());
    }
    auto workspace = take(device->allocate(workspaceBytes));
    for (size_t i = 0; i < calls.size(); ++i) {
      const Call &call = calls[i];
      std::vector<void *> inputs, outputs;
      for (size_t offset : call.inputs)
        inputs.push_back(arena->data() + offset);
      for (size_t offset : call.outputs)
        outputs.push_back(arena->data() + offset);
      check(queue->enqueue(*kernels[i], {inputs, outputs, {}, workspace->data()}));
      if (apart)
        check(queue->record(*event));
    }
    check(queue->copy(staging->data(), arena->data(), kArena));
    check(queue->finish());
    std::memcpy(result.arena.data(), staging->data(), kArena);
    result.launches = standin::counts().launches;
  }
  standin::reset();
  return result;
}

/// Runs the calls in both ways, and expects `launches` launches where they may be put together.
void expectLaunches(const std::vector<Call> &calls, uint64_t launches, bool applies = true) {
  Outcome together = run(calls, /*apart=*/false, applies);
  Outcome apart = run(calls, /*apart=*/true, applies);
  EXPECT_EQ(together.launches, launches);
  EXPECT_EQ(apart.launches, calls.size());
  EXPECT_TRUE(together.arena == apart.arena);
}

/// The places of tensor `i` of 40 elements: p, g, m, v, and p in 16 bits.
std::vector<size_t> placesOf(size_t i, size_t room = 192) {
  std::vector<size_t> places;
  for (size_t j = 0; j < 5; ++j)
    places.push_back(kTensors + (5 * i + j) * room);
  return places;
}

TEST(HeldLaunches, UpdatesAndConversionsInTurnAreTwoLaunches) {
  std::vector<Call> calls;
  for (size_t i = 0; i < 12; ++i) {
    auto at = placesOf(i);
    auto count = static_cast<int64_t>(i == 5 ? 0 : 29 + i); // one has no elements
    calls.push_back(adamw(at[0], at[1], at[2], at[3], count));
    calls.push_back(convert(at[0], DType::F32, at[4], DType::BF16, count));
  }
  for (bool applies : {true, false}) {
    Outcome together = run(calls, /*apart=*/false, applies);
    EXPECT_EQ(together.launches, 2u);
    EXPECT_TRUE(together.arena == run(calls, /*apart=*/true, applies).arena);
    // Something has happened at all.
    EXPECT_FALSE(together.arena == run({}, /*apart=*/false, applies).arena);
  }
}

TEST(HeldLaunches, CallsThatDifferInMoreThanTensorsAreLaunchesOfTheirOwn) {
  auto a = placesOf(0), b = placesOf(1), c = placesOf(2), d = placesOf(3);
  expectLaunches({adamw(a[0], a[1], a[2], a[3], 40), sgd(b[0], b[1], b[2], 40),
                  adamw(c[0], c[1], c[2], c[3], 40, /*weightDecay=*/0),
                  adamw(d[0], d[1], d[2], d[3], 33)},
                 3);
  // Another step size.
  Call other = adamw(b[0], b[1], b[2], b[3], 40);
  other.inputs[4] = kTensors;
  expectLaunches({adamw(d[0], d[1], d[2], d[3], 40), other}, 2);
  expectLaunches({convert(a[0], DType::F32, a[4], DType::BF16, 40),
                  convert(b[0], DType::F32, b[4], DType::F16, 40)},
                 2);
}

TEST(HeldLaunches, CallsThatDependOnEachOtherKeepTheirOrder) {
  auto a = placesOf(0), b = placesOf(1);
  // A chain, and one that writes what an earlier one reads.
  expectLaunches({convert(a[0], DType::F32, a[1], DType::F32, 40),
                  convert(a[1], DType::F32, a[2], DType::F32, 40),
                  convert(a[2], DType::F32, a[3], DType::F32, 40)},
                 3);
  expectLaunches({convert(a[0], DType::F32, a[1], DType::F32, 40),
                  convert(b[0], DType::F32, a[0], DType::F32, 40)},
                 2);
  // Two that write one place; the last one counts.
  expectLaunches({convert(a[0], DType::F32, a[1], DType::F32, 40),
                  convert(b[0], DType::F32, a[1], DType::F32, 40)},
                 2);
  // The number of the step is made by a conversion.
  expectLaunches(
      {convert(a[0], DType::I32, kStep, DType::F32, 1), adamw(b[0], b[1], b[2], b[3], 40)}, 2);
}

TEST(HeldLaunches, ManyTensorsTakeSeveralLaunches) {
  size_t most = cuda::HeldLaunches::kMaxGroups;
  for (size_t count : {most - 1, most, most + 1, 2 * most + 1}) {
    std::vector<Call> calls;
    for (size_t i = 0; i < count; ++i)
      calls.push_back(
          convert(kTensors + 64 * i, DType::F32, kTensors + 64 * i + 32, DType::F32, 7));
    expectLaunches(calls, (count + most - 1) / most);
  }
}

TEST(HeldLaunches, SumsOfSquaresAreTwoLaunches) {
  size_t most = cuda::HeldLaunches::kMaxGroups;
  for (size_t count : {size_t(1), size_t(8), size_t(9), most, most + 1}) {
    std::vector<Call> calls;
    for (size_t i = 0; i < count; ++i)
      // Operands of one element and more; some overlap, as they are only read.
      calls.push_back(squares(kTensors + 4096 + 64 * i, kTensors + 4 * i, int64_t(1 + i * 7 % 90)));
    Outcome together = run(calls, /*apart=*/false);
    EXPECT_EQ(together.launches, (count + most - 1) / most * 2);
    EXPECT_TRUE(together.arena == run(calls, /*apart=*/true).arena);
    // In another order of what is not summed together, the same bits.
    std::vector<Call> reversed(calls.rbegin(), calls.rend());
    EXPECT_TRUE(together.arena == run(reversed, /*apart=*/false).arena);
  }
}

TEST(HeldLaunches, SumsOfSquaresOfManyChunksAreRight) {
  std::vector<Call> calls;
  // Chunks of whole and of part, one beside many.
  std::vector<int64_t> counts = {1, 4096, 8192, 8191, 20001, 16384};
  for (size_t i = 0; i < counts.size(); ++i)
    calls.push_back(squares(kTensors + 1024 + 4 * i, kTensors + 4 * i, counts[i]));
  Outcome together = run(calls, /*apart=*/false), before = run({}, /*apart=*/false);
  EXPECT_EQ(together.launches, 2u);
  EXPECT_TRUE(together.arena == run(calls, /*apart=*/true).arena);
  const auto *values = reinterpret_cast<const float *>(before.arena.data());
  const auto *results = reinterpret_cast<const float *>(together.arena.data() + kTensors);
  for (size_t i = 0; i < counts.size(); ++i) {
    double sum = 0;
    for (int64_t k = 0; k < counts[i]; ++k) {
      double value = values[(kTensors + 1024) / 4 + i + size_t(k)];
      sum += value * value;
    }
    EXPECT_NEAR(results[i], sum, 1e-5 * sum) << counts[i];
  }
}

TEST(HeldLaunches, SumsOfSquaresThatDependOnEachOtherKeepTheirOrder) {
  auto a = placesOf(0), b = placesOf(1);
  // A sum of what a held conversion writes, and a conversion of the sum: 1 + 2 + 1.
  std::vector<Call> chain = {convert(a[0], DType::F32, a[1], DType::F32, 40),
                             squares(a[1], b[0], 40),
                             convert(b[0], DType::F32, b[1], DType::F32, 1)};
  Outcome together = run(chain, /*apart=*/false);
  EXPECT_EQ(together.launches, 4u);
  EXPECT_TRUE(together.arena == run(chain, /*apart=*/true).arena);
  // A sum that replaces what another one reads, and one that reads its result: 2 + 2 + 2.
  std::vector<Call> sums = {squares(a[0], b[0], 40), squares(a[1], a[0], 40),
                            squares(a[0], b[1], 3)};
  together = run(sums, /*apart=*/false);
  EXPECT_EQ(together.launches, 6u);
  EXPECT_TRUE(together.arena == run(sums, /*apart=*/true).arena);
}

TEST(HeldLaunches, SumsOfProductsShareLaunchesByTheirTypes) {
  auto a = placesOf(0), b = placesOf(1), c = placesOf(2);
  std::vector<Call> calls = {dot(a[0], a[1], DType::F32, a[4], DType::F32, 40),
                             dot(b[0], b[1], DType::BF16, b[4], DType::F32, 41),
                             dot(c[0], c[1], DType::F32, c[4], DType::F32, 1),
                             dot(a[2], a[2], DType::BF16, c[3], DType::F32, 80),
                             dot(b[2], b[2], DType::BF16, c[2], DType::BF16, 80)};
  Outcome together = run(calls, /*apart=*/false);
  EXPECT_EQ(together.launches, 6u);
  EXPECT_TRUE(together.arena == run(calls, /*apart=*/true).arena);
}

TEST(HeldLaunches, AnotherQueueSeesASumThatWasHeld) {
  // The event ends the holding; the copy on the other queue waits for it, in all orders.
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    standin::Settings settings;
    settings.seed = seed;
    standin::reset(settings);
    std::unique_ptr<Backend> backend = createCudaBackend();
    std::unique_ptr<Device> device = take(backend->openDevice(0));
    auto staging = take(device->allocateStaging(64)), arena = take(device->allocate(64));
    auto compute = take(device->openQueue(QueueKind::Compute));
    auto copies = take(device->openQueue(QueueKind::Copy));
    auto event = take(device->createEvent(false));
    Call call = squares(0, 32, 3);
    std::unique_ptr<Kernel> kernel = take(backend->prepare(call.signature));
    auto workspace = take(device->allocate(kernel->workspaceBytes()));
    auto *values = reinterpret_cast<float *>(staging->data());
    for (size_t i = 0; i < 3; ++i)
      values[i] = static_cast<float>(i + 1);
    check(compute->copy(arena->data(), staging->data(), 12));
    void *inputs[] = {arena->data(), arena->data()}, *outputs[] = {arena->data() + 32};
    check(compute->enqueue(*kernel, {inputs, outputs, {}, workspace->data()}));
    check(compute->record(*event));
    check(copies->wait(*event));
    check(copies->copy(staging->data() + 32, arena->data() + 32, 4));
    check(copies->finish());
    ASSERT_EQ(values[8], 14) << "DTC_CUDA_STANDIN_SEED=" << seed;
  }
  standin::reset();
}

TEST(HeldLaunches, PartsThatAreDenseAreJoinedByOneLaunch) {
  TensorType part{DType::F32, {1}};
  size_t most = cuda::HeldLaunches::kMaxGroups;
  for (size_t count : {size_t(3), size_t(150), most + 1}) {
    Call join{{"concat",
               std::vector<TensorType>(count, part),
               {{DType::F32, {int64_t(count)}}},
               {{"dim", int64_t{0}}},
               {}},
              {},
              {kArena / 2}};
    for (size_t i = 0; i < count; ++i)
      join.inputs.push_back(kTensors + 64 * (i * 7 % count));
    Outcome outcome = run({join}, /*apart=*/false);
    EXPECT_EQ(outcome.launches, (count + most - 1) / most);
    for (size_t i = 0; i < count; ++i)
      ASSERT_EQ(std::memcmp(outcome.arena.data() + kArena / 2 + 4 * i,
                            outcome.arena.data() + join.inputs[i], 4),
                0);
  }
}

TEST(HeldLaunches, TensorsOfManyChunksBesideSmallOnes) {
  std::vector<Call> calls;
  size_t at = kTensors;
  for (int64_t count : {1, 4095, 4097, 3, 4096}) {
    calls.push_back(convert(at, DType::F32, kArena / 2 + at, DType::BF16, count));
    at += static_cast<size_t>(count + 63) / 64 * 256;
  }
  expectLaunches(calls, 1);
}

TEST(HeldLaunches, ErrorsNameTheKernel) {
  standin::reset();
  {
    std::unique_ptr<Backend> backend = createCudaBackend();
    std::unique_ptr<Device> device = take(backend->openDevice(0));
    auto arena = take(device->allocate(kArena));
    auto queue = take(device->openQueue(QueueKind::Compute));
    Call call = convert(0, DType::F32, 4096, DType::BF16, 40);
    std::unique_ptr<Kernel> kernel = take(backend->prepare(call.signature));
    standin::failCall(0, cudaErrorInvalidValue, "cudaLaunchKernelEx");
    void *inputs[] = {arena->data()}, *outputs[] = {arena->data() + 4096};
    check(queue->enqueue(*kernel, {inputs, outputs, {}, nullptr}));
    MaybeError error = queue->finish();
    ASSERT_TRUE(error);
    EXPECT_NE(error->message.find("cuda 0: kernel 'convert'"), std::string::npos) << error->message;
    // The queue stays failed and launches nothing more.
    MaybeError again = queue->enqueue(*kernel, {inputs, outputs, {}, nullptr});
    ASSERT_TRUE(again);
    EXPECT_EQ(again->message, error->message);
  }
  EXPECT_EQ(standin::counts().launches, 0u);
  standin::reset();
}

TEST(HeldLaunches, RandomCalls) {
  uint64_t all = 0, launched = 0;
  test::forEachRandomCase(60, [&](uint64_t seed) {
    std::mt19937_64 random(seed);
    // Few places, so that many calls have something to do with each other.
    size_t places = 4 + random() % 60;
    auto place = [&] { return kTensors + random() % places * 64; };
    // Operands are equal or do not overlap, as in plans.
    auto places4 = [&] {
      std::vector<size_t> result;
      while (result.size() < 4)
        if (size_t next = place(); std::find(result.begin(), result.end(), next) == result.end())
          result.push_back(next);
      return result;
    };
    std::vector<Call> calls;
    for (size_t i = 0, count = 2 + random() % 40; i < count; ++i) {
      auto at = places4();
      auto elements = static_cast<int64_t>(1 + random() % 16);
      switch (random() % 5) {
      case 4:
        calls.push_back(squares(at[0], at[1], elements));
        break;
      case 0:
        calls.push_back(adamw(at[0], at[1], at[2], at[3], elements, random() % 2 ? 0.1 : 0));
        break;
      case 1:
        calls.push_back(sgd(at[0], at[1], at[2], elements));
        break;
      default:
        calls.push_back(
            convert(at[0], DType::F32, at[1], random() % 2 ? DType::F32 : DType::BF16, elements));
      }
    }
    Outcome together = run(calls, /*apart=*/false), apart = run(calls, /*apart=*/true);
    EXPECT_TRUE(together.arena == apart.arena);
    all += apart.launches;
    launched += together.launches;
  });
  // Otherwise the cases are none.
  if (all > 0) {
    EXPECT_LT(launched, all);
  }
}

} // namespace

} // namespace dtc::runtime::heldLaunchesTest
