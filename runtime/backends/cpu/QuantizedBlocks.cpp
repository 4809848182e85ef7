//===- QuantizedBlocks.cpp - Blocks of integers with a scale --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/QuantizedBlocksCall.h"
#include "runtime/backends/cpu/DataMovement.h"
#include "runtime/backends/cpu/Simd.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace dtc::runtime::cpu {

namespace {

/// Calls `visit(place, index, count)` for the stretches of block `row` that are consecutive in the
/// tensor of floats: where they are there, and which elements of the block they are. Returns the
/// number of elements of the block.
template <typename Visit>
int64_t forStretchesOf(const QuantizedBlocksCall &call, int64_t row, Visit visit) {
  const QuantizedBlocks &blocks = call.blocks;
  int64_t part = row / blocks.partBlocks(), begin = row % blocks.partBlocks() * blocks.block;
  int64_t end = std::min(begin + blocks.block, blocks.partElements());
  for (int64_t at = begin; at < end;) {
    int64_t inRun = at % call.run, count = std::min(call.run - inRun, end - at);
    visit((at / call.run * blocks.parts + part) * call.run + inRun, at - begin, count);
    at += count;
  }
  return end - begin;
}

/// The scale of a block from its largest absolute value: a NaN where this is no finite number.
template <typename W> float scaleOf(W largest, int64_t limit) {
  auto scale = static_cast<float>(largest / static_cast<W>(limit));
  if (!(scale <= std::numeric_limits<float>::max()))
    return std::numeric_limits<float>::quiet_NaN();
  return scale < std::numeric_limits<float>::min() ? 0 : scale;
}

/// The largest absolute value, a NaN if there is one, of it and of `count` elements.
template <typename W> void includeLargest(const W *x, int64_t count, W &largest) {
  W *result = &largest;
  simd([=] {
    W most = 0;
    bool isNumber = true;
    for (int64_t i = 0; i < count; ++i) {
      W value = std::abs(x[i]);
      isNumber &= value == value;
      most = value > most ? value : most;
    }
    if (!isNumber || *result != *result)
      *result = std::numeric_limits<W>::quiet_NaN();
    else
      *result = std::max(*result, most);
  });
}

/// Writes elements `first`.. of a block, whose integers start at `to`. The bytes of a word go from
/// its low bits up, as on every host of this backend. With `noise`, numbers from [0, 1) are added
/// and sums rounded down; else elements are rounded to the nearest.
template <bool hasNoise, typename W>
void writeIntegers(const W *x, const float *noise, int64_t count, W scale, int64_t bits,
                   int64_t first, uint8_t *to) {
  simd([=] {
    auto limit = static_cast<W>((int64_t{1} << (bits - 1)) - 1);
    auto integer = [=](int64_t i) {
      W value = x[i] / scale;
      if constexpr (hasNoise)
        value = std::floor(value + static_cast<W>(noise[i]));
      else
        value = std::nearbyint(value);
      return static_cast<int32_t>(std::clamp(value, -limit, limit));
    };
    if (bits == 8)
      for (int64_t i = 0; i < count; ++i)
        to[first + i] = static_cast<uint8_t>(integer(i));
    else
      for (int64_t i = 0; i < count; ++i)
        to[(first + i) / 2] |= static_cast<uint8_t>((integer(i) & 15) << (first + i) % 2 * 4);
  });
}

/// Reads elements `first`.. of a block in the same way.
template <typename W>
void readIntegers(const uint8_t *from, int64_t count, W scale, int64_t bits, int64_t first, W *x) {
  simd([=] {
    if (bits == 8)
      for (int64_t i = 0; i < count; ++i)
        x[i] = static_cast<W>(static_cast<int8_t>(from[first + i])) * scale;
    else
      for (int64_t i = 0; i < count; ++i) {
        int nibble = from[(first + i) / 2] >> (first + i) % 2 * 4 & 15;
        x[i] = static_cast<W>((nibble ^ 8) - 8) * scale;
      }
  });
}

/// Calls `body(row, words of the row)` for all blocks, by several threads.
template <typename Word, typename Body>
void forRows(const CpuArguments &args, const QuantizedBlocks &blocks, Word *words, Body body) {
  parallelFor(args.threads, blocks.rows(), grainFor(blocks.block),
              [=, perRow = blocks.words()](int64_t begin, int64_t end, int) {
                for (int64_t row = begin; row < end; ++row)
                  body(row, words + row * perRow);
              });
}

template <bool hasNoise, typename W>
std::unique_ptr<CpuKernel> makeQuantize(const QuantizedBlocksCall &call) {
  return makeKernel([call](const CpuArguments &args) {
    const W *x = input<W>(args, 0);
    const float *noise = hasNoise ? input<float>(args, 1) : nullptr;
    forRows(args, call.blocks, output<int32_t>(args, 0), [=, &call](int64_t row, int32_t *to) {
      W largest = 0;
      forStretchesOf(call, row, [&](int64_t place, int64_t, int64_t count) {
        includeLargest(x + place, count, largest);
      });
      float scale = scaleOf(largest, call.blocks.limit());
      std::fill_n(to, call.blocks.words(), 0);
      std::memcpy(to, &scale, sizeof(scale));
      if (!(scale > 0))
        return;
      forStretchesOf(call, row, [&](int64_t place, int64_t first, int64_t count) {
        writeIntegers<hasNoise>(x + place, hasNoise ? noise + place : nullptr, count,
                                static_cast<W>(scale), call.blocks.bits, first,
                                reinterpret_cast<uint8_t *>(to + 1));
      });
    });
  });
}

template <typename W> std::unique_ptr<CpuKernel> makeDequantize(const QuantizedBlocksCall &call) {
  return makeKernel([call](const CpuArguments &args) {
    W *x = output<W>(args, 0);
    forRows(args, call.blocks, input<int32_t>(args, 0),
            [&call, x](int64_t row, const int32_t *from) {
              float scale;
              std::memcpy(&scale, from, sizeof(scale));
              forStretchesOf(call, row, [&](int64_t place, int64_t first, int64_t count) {
                readIntegers(reinterpret_cast<const uint8_t *>(from + 1), count,
                             static_cast<W>(scale), call.blocks.bits, first, x + place);
              });
            });
  });
}

PrepareResult prepareQuantizeBlocks(const QuantizedBlocksCall &call) {
  return withWideType(call.dtype, [&](auto zero) {
    using W = decltype(zero);
    return call.hasNoise ? makeQuantize<true, W>(call) : makeQuantize<false, W>(call);
  });
}

PrepareResult prepareDequantizeBlocks(const QuantizedBlocksCall &call) {
  return call.dtype == DType::F64 ? makeDequantize<double>(call) : makeDequantize<float>(call);
}

} // namespace

std::span<const KernelEntry> quantizedBlocksKernels() {
  static constexpr KernelEntry entries[] = {
      {"dequantize_blocks", prepareBy<checkDequantizeBlocks, prepareDequantizeBlocks>},
      {"quantize_blocks", prepareBy<checkQuantizeBlocks, prepareQuantizeBlocks>},
  };
  return entries;
}

} // namespace dtc::runtime::cpu
