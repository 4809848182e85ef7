//===- EngineRandomTest.cpp - Random programs on the stand-in of CUDA ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/lib/RandomCases.h"
#include "test/standin/cuda/StandinFixture.h"

#include <optional>
#include <random>

namespace dtc::standin {

namespace {

class EngineRandomTest : public StandinFixture {};

__global__ void accumulate(float *cells, int to, int from, float factor) {
  cells[to] = 0.5f * cells[to] + factor * cells[from];
}

/// A random program: each operation, on one of three streams, changes a cell by another one, and
/// waits for the operations of other streams that have to be before it.
class RandomProgram {
public:
  explicit RandomProgram(uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<size_t> lastWrite(kCells);
    std::vector<std::vector<size_t>> reads(kCells);
    // Operation 0 writes all cells.
    operations.push_back({0, 0, 0, {}});
    for (size_t i = 1; i < 40; ++i) {
      Operation made{random() % kStreams,
                     static_cast<int>(random() % kCells),
                     static_cast<int>(random() % kCells),
                     {}};
      auto waitFor = [&](size_t before) {
        if (operations[before].stream != made.stream)
          made.waits.push_back(before);
      };
      waitFor(lastWrite[made.from]);
      waitFor(lastWrite[made.to]);
      for (size_t before : reads[made.to])
        waitFor(before);
      operations.push_back(made);
      lastWrite[made.to] = i;
      reads[made.to].clear();
      reads[made.from].push_back(i);
    }
  }

  /// Whether nothing else orders the two operations of a wait.
  bool isNeeded(uint64_t removed) const {
    uint64_t number = 0;
    for (size_t i = 0; i < operations.size(); ++i)
      for (size_t before : operations[i].waits)
        if (number++ == removed)
          return !isBefore(before, i, removed);
    return false;
  }
  uint64_t waits() const {
    uint64_t count = 0;
    for (const Operation &operation : operations)
      count += operation.waits.size();
    return count;
  }

  /// The cells at the end, in one order of the engine.
  std::vector<float> run(uint64_t order, std::optional<uint64_t> removed) const {
    Settings settings;
    settings.seed = order;
    reset(settings);
    if (removed)
      ignoreWait(*removed);
    std::vector<cudaStream_t> streams(kStreams);
    for (cudaStream_t &stream : streams)
      EXPECT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    void *memory = nullptr;
    EXPECT_CUDA(cudaMalloc(&memory, kCells * sizeof(float)));
    auto *cells = static_cast<float *>(memory);
    std::vector<float> values = {1, 2, 3, 5, 7, 11};
    std::vector<cudaEvent_t> events(operations.size());
    for (size_t i = 0; i < operations.size(); ++i) {
      const Operation &operation = operations[i];
      cudaStream_t stream = streams[operation.stream];
      for (size_t before : operation.waits)
        EXPECT_CUDA(cudaStreamWaitEvent(stream, events[before]));
      cudaLaunchConfig_t config = {};
      config.stream = stream;
      EXPECT_CUDA(i ? cudaLaunchKernelEx(&config, accumulate, cells, operation.to, operation.from,
                                         0.1f * static_cast<float>(i % 7 + 1))
                    : cudaMemcpyAsync(cells, values.data(), kCells * sizeof(float),
                                      cudaMemcpyDefault, stream));
      EXPECT_CUDA(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming));
      EXPECT_CUDA(cudaEventRecord(events[i], stream));
    }
    EXPECT_CUDA(cudaDeviceSynchronize());
    EXPECT_CUDA(cudaMemcpyAsync(values.data(), cells, kCells * sizeof(float), cudaMemcpyDefault,
                                streams[0]));
    return values;
  }

private:
  static constexpr size_t kCells = 6, kStreams = 3;
  struct Operation {
    size_t stream;
    int to, from;
    std::vector<size_t> waits;
  };

  bool isBefore(size_t first, size_t last, uint64_t removed) const {
    std::vector<bool> after(operations.size());
    after[first] = true;
    uint64_t number = 0;
    for (size_t i = 0; i < operations.size(); ++i) {
      for (size_t k = first; k < i; ++k)
        if (operations[k].stream == operations[i].stream && after[k])
          after[i] = true;
      for (size_t before : operations[i].waits)
        if (number++ != removed && after[before])
          after[i] = true;
    }
    return after[last];
  }

  std::vector<Operation> operations;
};

TEST_F(EngineRandomTest, ProgramsAreWrongExactlyWithoutWhatTheyNeed) {
  uint64_t needed = 0, found = 0;
  test::forEachRandomCase(5, [&](uint64_t seed) {
    RandomProgram program(seed);
    std::vector<float> expected = program.run(1, std::nullopt);
    for (uint64_t order = 2; order <= 20; ++order)
      ASSERT_EQ(program.run(order, std::nullopt), expected) << "order " << order;
    for (uint64_t wait = 0; wait < program.waits(); ++wait) {
      bool differs = false;
      for (uint64_t order = 1; order <= 20 && !differs; ++order)
        differs = program.run(order, wait) != expected;
      bool isNeeded = program.isNeeded(wait);
      needed += isNeeded;
      found += isNeeded && differs;
      ASSERT_TRUE(isNeeded || !differs) << "wait " << wait;
    }
  });
  std::cout << found << " of " << needed << " waits that are needed are found\n";
  EXPECT_GE(found, needed * 9 / 10);
}

} // namespace

} // namespace dtc::standin
