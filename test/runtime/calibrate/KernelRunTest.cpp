//===- KernelRunTest.cpp - Running single kernels -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/KernelRun.h"

#include "plan/KernelTable.h"
#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/backends/cpu/CpuDevice.h"
#include "runtime/backends/cpu/CpuKernel.h"
#include "runtime/calibrate/BusyCores.h"
#include "runtime/calibrate/CoreSpeed.h"
#include "test/lib/plans/Expect.h"

#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <mutex>
#include <set>

namespace kernelRunTest {

using namespace dtc;
using namespace dtc::runtime;

namespace {

const TensorType kMatrix{DType::F32, {8, 16}};

/// Notes where the operands of its calls lie.
class NotingBackend : public Backend {
public:
  struct Call {
    std::vector<void *> inputs, outputs;
    float first;
  };

  std::string name() const override { return "noting"; }
  Expected<std::unique_ptr<Kernel>> prepare(const KernelSignature &signature) const override {
    struct Noting : cpu::CpuKernel {
      explicit Noting(std::vector<Call> &calls) : calls(calls) {}
      void run(const cpu::CpuArguments &args) const override {
        calls.push_back({{args.inputs.begin(), args.inputs.end()},
                         {args.outputs.begin(), args.outputs.end()},
                         *static_cast<float *>(args.inputs[0])});
      }
      std::vector<Call> &calls;
    };
    return std::unique_ptr<Kernel>(std::make_unique<Noting>(calls));
  }
  Expected<std::unique_ptr<Device>> openDevice(int64_t) const override {
    return cpu::createCpuDevice(1);
  }

  mutable std::vector<Call> calls;
};

} // namespace

TEST(KernelRun, OperandsTakeTurns) {
  NotingBackend backend;
  KernelRunOptions options;
  options.workingSetBytes = 4 * 3 * kMatrix.numBytes();
  auto run = KernelRun::create(backend, {"add", {kMatrix, kMatrix}, {kMatrix}, {}, {}}, options);
  ASSERT_OK(run);
  EXPECT_EQ(run->bytes(), 3 * 512);
  for (int i = 0; i < 5; ++i)
    run->run();
  std::set<void *> operands;
  for (int i = 0; i < 4; ++i) {
    const NotingBackend::Call &call = backend.calls[static_cast<size_t>(i)];
    operands.insert(call.inputs.begin(), call.inputs.end());
    operands.insert(call.outputs.begin(), call.outputs.end());
    EXPECT_EQ(call.first, 1);
  }
  EXPECT_EQ(operands.size(), 12u);
  EXPECT_EQ(backend.calls[4].inputs, backend.calls[0].inputs);
}

TEST(KernelRun, InPlaceWhereTheContractAllowsIt) {
  NotingBackend backend;
  KernelRunOptions options;
  for (bool inPlace : {false, true}) {
    options.inPlace = inPlace;
    for (const char *kernel : {"add", "compare", "sgd"}) {
      std::vector<TensorType> inputs(3, kMatrix), outputs(2, kMatrix);
      auto run = KernelRun::create(backend, {kernel, inputs, outputs, {}, {}}, options);
      ASSERT_OK(run);
      run->run();
    }
  }
  auto places = [&](size_t call) {
    std::vector<int> places;
    for (void *out : backend.calls[call].outputs) {
      places.push_back(-1);
      for (int in = 0; in < 3; ++in)
        if (backend.calls[call].inputs[static_cast<size_t>(in)] == out)
          places.back() = in;
    }
    return places;
  };
  for (size_t call : {0, 1, 2})
    EXPECT_EQ(places(call), (std::vector<int>{-1, -1}));
  EXPECT_EQ(places(3), (std::vector<int>{0, -1}));
  EXPECT_EQ(places(4), (std::vector<int>{-1, -1}));
  EXPECT_EQ(places(5), (std::vector<int>{0, 2}));
}

TEST(KernelRun, ErrorsOfTheBackend) {
  EXPECT_ERROR(KernelRun::create(*createCpuBackend(), {"addd", {kMatrix}, {kMatrix}, {}, {}}),
               "kernel 'addd' is unknown");
}

TEST(OperandMemory, IsUsedAgain) {
  HostOperandMemory memory;
  auto first = memory.take(100), second = memory.take(100);
  ASSERT_OK(first);
  ASSERT_OK(second);
  EXPECT_EQ(*second - *first, 128);
  memory.reset();
  EXPECT_EQ(*memory.take(1000), *first);
  // More than a chunk.
  auto large = memory.take(size_t{300} << 20);
  ASSERT_OK(large);
  (*large)[(size_t{300} << 20) - 1] = std::byte{1};
  memory.reset();
  EXPECT_EQ(*memory.take(1), *first);
}

TEST(BusyCores, AllThreadsWorkOnTheirOwn) {
  CoreSpeed speed(0.1);
  BusyCores cores(3, speed);
  std::atomic<int> calls[3] = {};
  Expected<double> seconds = cores.measure(
      [&](size_t thread) -> Expected<BusyCores::Work> {
        return BusyCores::Work([&, thread] { ++calls[thread]; });
      },
      1e-4, BusyCores::Time::OfThread);
  ASSERT_OK(seconds);
  EXPECT_GE(*seconds, 0);
  for (const std::atomic<int> &each : calls)
    EXPECT_GE(each, 4);
}

TEST(BusyCores, ErrorsOfOneThread) {
  CoreSpeed speed(0.1);
  BusyCores cores(2, speed);
  EXPECT_ERROR(cores.measure(
                   [](size_t thread) -> Expected<BusyCores::Work> {
                     if (thread == 1)
                       return Error{"no operands"};
                     return BusyCores::Work([] {});
                   },
                   1e-4, BusyCores::Time::Passing),
               "no operands");
}

TEST(BusyCores, Median) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({5}), 5);
  EXPECT_EQ(median({9, 1, 4}), 4);
  EXPECT_EQ(median({9, 1, 4, 6}), 5);
  EXPECT_GE(usableCores(), 1);
}

TEST(KernelBytes, WholeOperandsButForRows) {
  auto bytes = [](const char *kernel, std::vector<TensorType> inputs,
                  std::vector<TensorType> outputs) { return kernelBytes(kernel, inputs, outputs); };
  TensorType row{DType::F32, {16}}, ids{DType::I32, {2}};
  EXPECT_EQ(bytes("add", {kMatrix, row}, {kMatrix}), 512 + 64 + 512);
  EXPECT_EQ(bytes("fill", {}, {kMatrix}), 512);
  EXPECT_EQ(bytes("slice", {kMatrix}, {row}), 64 + 64);
  TensorType rows{DType::F32, {2, 16}};
  EXPECT_EQ(bytes("embedding", {kMatrix, ids}, {rows}), 128 + 8 + 128);
  // Rows of a table that is smaller than the result are read again.
  EXPECT_EQ(bytes("embedding", {row, ids}, {rows}), 128 + 8 + 128);
  TensorType cache{DType::F32, {2, 64, 16}}, tokens{DType::F32, {2, 1, 16}};
  EXPECT_EQ(bytes("cache_update", {cache, tokens, ids}, {cache}), 128 + 128 + 8);
}

TEST(CoreSpeed, FullSpeedIsNearTheFastestLoop) {
  CoreSpeed speed(0.5);
  double least = speed.referenceLoop();
  for (int i = 0; i < 10; ++i)
    least = std::min(least, speed.referenceLoop());
  EXPECT_GT(least, 0);
  EXPECT_TRUE(speed.isFull(least));
  EXPECT_TRUE(speed.isFull(1.2 * least));
  EXPECT_FALSE(speed.isFull(1.3 * least));
  // The slowest core is not faster than the fastest loop.
  CoreWatch watch(speed);
  EXPECT_GT(watch.referenceLoop(), 0);
}

TEST(CoreSpeed, PatienceIsForAllTogether) {
  CoreSpeed speed(1);
  EXPECT_TRUE(speed.wait(0.6));
  EXPECT_TRUE(speed.wait(0.6));
  EXPECT_FALSE(speed.wait(0.1));
}

TEST(CoreSpeed, SamplesCountAtFullSpeed) {
  CoreSpeed speed(0);
  double referenceLoop = speed.referenceLoop();
  double slow = 10 * referenceLoop;
  std::vector<SpeedMeasurement> samples = {
      {5, slow}, {1, referenceLoop}, {9, slow}, {3, referenceLoop}, {2, referenceLoop}};
  EXPECT_EQ(countFull(samples, speed), 3u);
  EXPECT_EQ(medianAtFullSpeed(samples, speed), 2);
  // Where no core was fast the least slow one counts.
  EXPECT_EQ(medianAtFullSpeed({{5, 3 * slow}, {7, slow}, {6, 2 * slow}}, speed), 7);
  EXPECT_EQ(medianAtFullSpeed({}, speed), 0);
}

} // namespace kernelRunTest
