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

namespace dtc::runtime {

template <typename T>
static void fillConstant(const ShardRegion &region, T value, std::byte *shard) {
  region.forEachRun([&](int64_t, int64_t localBegin, int64_t count) {
    std::fill_n(reinterpret_cast<T *>(shard) + localBegin, count, value);
  });
}

template <typename T>
static void fillRandom(const plan::State &state, const ShardRegion &region, uint64_t seed,
                       std::byte *shard) {
  PhiloxKey key = philoxKey(seed);
  uint64_t tensor = fnv1a(state.name());
  bool normal = state.init().kind() == plan::Init::NORMAL;
  float scale = static_cast<float>(state.init().scale());
  region.forEachRun([&](int64_t globalBegin, int64_t localBegin, int64_t count) {
    T *out = reinterpret_cast<T *>(shard) + localBegin;
    for (int64_t i = 0; i < count;) {
      int64_t element = globalBegin + i;
      PhiloxCounter words =
          philox4x32(philoxCounter(static_cast<uint64_t>(element) / 4, tensor), key);
      std::array<float, 4> values = normal ? boxMuller(words) : symmetricUniform(words);
      // A run may begin and end inside a block of four.
      for (int64_t word = element % 4; word < 4 && i < count; ++word, ++i)
        out[i] = static_cast<T>(values[static_cast<size_t>(word)] * scale);
    }
  });
}

template <typename T>
static void fill(const plan::State &state, const ShardRegion &region, uint64_t seed,
                 std::byte *shard) {
  switch (state.init().kind()) {
  case plan::Init::ONES:
    return fillConstant(region, static_cast<T>(1), shard);
  case plan::Init::NORMAL:
  case plan::Init::UNIFORM:
    return fillRandom<T>(state, region, seed, shard);
  default:
    return fillConstant(region, static_cast<T>(0), shard);
  }
}

void writeInitialValues(const plan::State &state, const ShardRegion &region, uint64_t seed,
                        std::byte *shard) {
  clearPadding(region, byteWidth(toDType(state.dtype())), shard);
  switch (toDType(state.dtype())) {
  case DType::F32:
    return fill<float>(state, region, seed, shard);
  case DType::F64:
    return fill<double>(state, region, seed, shard);
  case DType::I32:
    return fill<int32_t>(state, region, seed, shard);
  case DType::Bool:
    return fill<uint8_t>(state, region, seed, shard);
  case DType::BF16:
    return fill<BFloat16>(state, region, seed, shard);
  case DType::F16:
    return fill<Float16>(state, region, seed, shard);
  }
}

} // namespace dtc::runtime
