//===- InitialValues.cpp - Initial values of states -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/InitialValues.h"

#include "plan/PlanTypes.h"
#include "support/Float16.h"
#include "support/Philox.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <numeric>
#include <system_error>
#include <thread>
#include <vector>

namespace dtc::runtime {

template <typename T>
static void fillConstant(const ShardRegion &region, T value, std::byte *shard) {
  region.forEachRun([&](int64_t, int64_t localBegin, int64_t count) {
    std::fill_n(reinterpret_cast<T *>(shard) + localBegin, count, value);
  });
}

/// Draws the elements of a shard from `first` to `last`, counted in the order of its runs.
template <typename T>
static void drawRandom(const plan::State &state, const ShardRegion &region, uint64_t seed,
                       std::byte *shard, int64_t first, int64_t last) {
  PhiloxKey key = philoxKey(seed);
  uint64_t tensor = fnv1a(state.name());
  bool normal = state.init().kind() == plan::Init::NORMAL;
  float scale = static_cast<float>(state.init().scale());
  int64_t runBegin = 0;
  region.forEachRun([&](int64_t globalBegin, int64_t localBegin, int64_t count) {
    T *out = reinterpret_cast<T *>(shard) + localBegin;
    int64_t i = std::max<int64_t>(first - runBegin, 0), end = std::min(last - runBegin, count);
    runBegin += count;
    while (i < end) {
      int64_t element = globalBegin + i;
      PhiloxCounter words =
          philox4x32(philoxCounter(static_cast<uint64_t>(element) / 4, tensor), key);
      std::array<float, 4> values = normal ? boxMuller(words) : symmetricUniform(words);
      // A run may begin and end inside a block of four.
      for (int64_t word = element % 4; word < 4 && i < end; ++word, ++i)
        out[i] = static_cast<T>(values[static_cast<size_t>(word)] * scale);
    }
  });
}

template <typename T>
static void fillRandom(const plan::State &state, const ShardRegion &region, uint64_t seed,
                       std::byte *shard, int threads) {
  // Drawing this many takes milliseconds, much longer than starting a thread.
  constexpr int64_t fewestOfAThread = int64_t{1} << 18;
  int64_t elements = std::accumulate(region.size.begin(), region.size.end(), int64_t{1},
                                     std::multiplies<int64_t>());
  int64_t parts = std::clamp<int64_t>(elements / fewestOfAThread, 1, std::max(threads, 1));
  auto draw = [&](int64_t part) {
    drawRandom<T>(state, region, seed, shard, elements / parts * part,
                  part + 1 == parts ? elements : elements / parts * (part + 1));
  };
  std::vector<std::jthread> others;
  others.reserve(static_cast<size_t>(parts));
  for (int64_t part = 1; part < parts; ++part)
    try {
      others.emplace_back(draw, part);
    } catch (const std::system_error &) { // the process may have no more threads
      draw(part);
    }
  draw(0);
}

template <typename T>
static void fill(const plan::State &state, const ShardRegion &region, uint64_t seed,
                 std::byte *shard, int threads) {
  switch (state.init().kind()) {
  case plan::Init::ONES:
    return fillConstant(region, static_cast<T>(1), shard);
  case plan::Init::NORMAL:
  case plan::Init::UNIFORM:
    return fillRandom<T>(state, region, seed, shard, threads);
  default:
    return fillConstant(region, static_cast<T>(0), shard);
  }
}

void writeInitialValues(const plan::State &state, const ShardRegion &region, uint64_t seed,
                        std::byte *shard, int threads) {
  clearPadding(region, byteWidth(toDType(state.dtype())), shard);
  switch (toDType(state.dtype())) {
  case DType::F32:
    return fill<float>(state, region, seed, shard, threads);
  case DType::F64:
    return fill<double>(state, region, seed, shard, threads);
  case DType::I32:
    return fill<int32_t>(state, region, seed, shard, threads);
  case DType::Bool:
    return fill<uint8_t>(state, region, seed, shard, threads);
  case DType::BF16:
    return fill<BFloat16>(state, region, seed, shard, threads);
  case DType::F16:
    return fill<Float16>(state, region, seed, shard, threads);
  case DType::F8E4M3:
  case DType::F8E5M2:
    return; // refused when the plan is read
  }
}

void roundValues(const float *values, int64_t count, DType dtype, std::byte *rounded) {
  auto round = [&](auto zero) {
    using T = decltype(zero);
    std::transform(values, values + count, reinterpret_cast<T *>(rounded),
                   [](float value) { return static_cast<T>(value); });
  };
  assert(byteWidth(dtype) == 2 && "bf16 or f16");
  dtype == DType::BF16 ? round(BFloat16()) : round(Float16());
}

bool startsAsZeros(const plan::State &state) {
  switch (state.init().kind()) {
  case plan::Init::ONES:
  case plan::Init::NORMAL:
  case plan::Init::UNIFORM:
    return false;
  default:
    return true;
  }
}

} // namespace dtc::runtime
