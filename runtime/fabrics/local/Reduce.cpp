//===- Reduce.cpp - Reductions of the members' operands -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/local/Reduce.h"

#include "support/Float16.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace dtc::runtime {

namespace {

struct Add {
  template <typename T> T operator()(T a, T b) const {
    // Integers wrap; signed overflow has no defined result.
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                            static_cast<std::make_unsigned_t<T>>(b));
    else
      return a + b;
  }
};
// A comparison with a NaN is false: `a` is kept if it is the NaN, `b` if that is. Without the short
// circuit of ||, loops become vector instructions.
struct Maximum {
  template <typename T> T operator()(T a, T b) const { return ((a > b) | (a != a)) ? a : b; }
};
struct Minimum {
  template <typename T> T operator()(T a, T b) const { return ((a < b) | (a != a)) ? a : b; }
};

/// A tile of this size stays in the first cache level beside what is read meanwhile.
constexpr size_t kTileBytes = 8192;

/// memcpy with streaming stores.
void streamBytes(std::byte *to, const std::byte *from, size_t bytes) {
#ifdef __SSE2__
  constexpr size_t line = 64;
  if (bytes >= 2 * line) {
    // Whole lines only: parts of a line would be merged with the memory one by one.
    size_t head = (line - reinterpret_cast<uintptr_t>(to) % line) % line;
    std::memcpy(to, from, head);
    size_t end = head + (bytes - head) / line * line;
    for (size_t i = head; i < end; i += line) {
      __m128i values[4];
      for (size_t k = 0; k < 4; ++k)
        values[k] = _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i) + k);
      for (size_t k = 0; k < 4; ++k)
        _mm_stream_si128(reinterpret_cast<__m128i *>(to + i) + k, values[k]);
    }
    to += end;
    from += end;
    bytes -= end;
  }
#endif
  if (bytes > 0)
    std::memcpy(to, from, bytes);
}

void storeBytes(std::byte *to, const std::byte *from, size_t bytes, Store store) {
  if (store == Store::Streaming)
    streamBytes(to, from, bytes);
  else if (bytes > 0)
    std::memcpy(to, from, bytes);
}

template <typename T, typename Result, typename Op>
void reduceWith(Op op, std::span<const std::byte *const> inputs,
                std::span<std::byte *const> outputs, size_t count, Store store) {
  auto values = [&](size_t input, size_t begin) {
    return reinterpret_cast<const T *>(inputs[input]) + begin;
  };
  // The result of a tile is complete before it is written, because outputs may be inputs. It is
  // computed in W and rounded when all operands are in.
  using W = Wide<T>;
  constexpr size_t tileElements = kTileBytes / sizeof(W);
  alignas(64) W tile[tileElements];
  alignas(64) Result rounded[std::is_same_v<Result, W> ? 1 : tileElements];
  for (size_t begin = 0; begin < count; begin += tileElements) {
    size_t n = std::min(tileElements, count - begin);
    if (inputs.size() == 1) {
      std::copy_n(values(0, begin), n, tile);
    } else {
      const T *a = values(0, begin), *b = values(1, begin);
      for (size_t i = 0; i < n; ++i)
        tile[i] = op(static_cast<W>(a[i]), static_cast<W>(b[i]));
    }
    for (size_t input = 2; input < inputs.size(); ++input) {
      const T *next = values(input, begin);
      for (size_t i = 0; i < n; ++i)
        tile[i] = op(tile[i], static_cast<W>(next[i]));
    }
    const void *result = tile;
    if constexpr (!std::is_same_v<Result, W>) {
      for (size_t i = 0; i < n; ++i)
        rounded[i] = Result(tile[i]);
      result = rounded;
    }
    for (std::byte *output : outputs)
      storeBytes(output + begin * sizeof(Result), static_cast<const std::byte *>(result),
                 n * sizeof(Result), store);
  }
}

template <typename T, typename Result = T>
void reduceAs(ReductionKind reduction, std::span<const std::byte *const> inputs,
              std::span<std::byte *const> outputs, size_t count, Store store) {
  switch (reduction) {
  case ReductionKind::Sum:
    return reduceWith<T, Result>(Add(), inputs, outputs, count, store);
  case ReductionKind::Max:
    return reduceWith<T, Result>(Maximum(), inputs, outputs, count, store);
  case ReductionKind::Min:
    return reduceWith<T, Result>(Minimum(), inputs, outputs, count, store);
  }
}

} // namespace

void reduceElements(ReductionKind reduction, DType inputType, DType outputType,
                    std::span<const std::byte *const> inputs, std::span<std::byte *const> outputs,
                    size_t count, Store store) {
  switch (inputType) {
  case DType::F32:
    if (outputType == DType::BF16)
      return reduceAs<float, BFloat16>(reduction, inputs, outputs, count, store);
    if (outputType == DType::F16)
      return reduceAs<float, Float16>(reduction, inputs, outputs, count, store);
    return reduceAs<float>(reduction, inputs, outputs, count, store);
  case DType::F64:
    return reduceAs<double>(reduction, inputs, outputs, count, store);
  case DType::I32:
    return reduceAs<int32_t>(reduction, inputs, outputs, count, store);
  case DType::BF16:
    if (outputType == DType::F32)
      return reduceAs<BFloat16, float>(reduction, inputs, outputs, count, store);
    return reduceAs<BFloat16>(reduction, inputs, outputs, count, store);
  case DType::F16:
    if (outputType == DType::F32)
      return reduceAs<Float16, float>(reduction, inputs, outputs, count, store);
    return reduceAs<Float16>(reduction, inputs, outputs, count, store);
  case DType::Bool:
  case DType::F8E4M3:
  case DType::F8E5M2:
    return; // refused when the plan is read
  }
}

void copyToAll(const std::byte *input, std::span<std::byte *const> outputs, size_t bytes,
               Store store) {
  // Several outputs take a tile each while it is in the cache, so that the input is read once.
  size_t tile = outputs.size() > 1 ? kTileBytes : bytes;
  for (size_t begin = 0; begin < bytes; begin += tile)
    for (std::byte *output : outputs)
      storeBytes(output + begin, input + begin, std::min(tile, bytes - begin), store);
}

void finishStores() {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

} // namespace dtc::runtime
