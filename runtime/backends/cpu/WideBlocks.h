//===- WideBlocks.h - Conversion of 16-bit elements in blocks -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The inner loops of kernels are written for float and double. For elements of 16 bits a block of
// each operand is widened into an array that stays in the first cache, the same loop runs on these
// arrays, and the block of the result is rounded. So every result is that of the f32 kernel,
// rounded, and a loop is compiled for two types rather than four. Elements of f32 and f64 are read
// and written where they lie, in one block.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_WIDEBLOCKS_H
#define DTC_RUNTIME_BACKENDS_CPU_WIDEBLOCKS_H

#include "runtime/backends/cpu/KernelSupport.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace dtc::runtime::cpu {

/// Whether kernels compute with elements of type F as they are.
template <typename F> inline constexpr bool kIsWide = std::is_same_v<F, Wide<F>>;

/// Widens `count` elements.
void widen(const BFloat16 *from, float *to, int64_t count);
void widen(const Float16 *from, float *to, int64_t count);
/// Rounds `count` elements to the nearest, ties to even.
void narrow(const float *from, BFloat16 *to, int64_t count);
void narrow(const float *from, Float16 *to, int64_t count);

/// Elements of a block: three such arrays of float take a quarter of a first cache of 48 KiB.
inline constexpr int64_t kWideBlock = 1024;

/// An array of a block on the stack; empty where nothing is widened.
template <typename F> struct WideArray {
  alignas(64) Wide<F> elements[kIsWide<F> ? 1 : kWideBlock];
};

/// Calls body(begin, end) for consecutive ranges that cover [begin, end): one range if F is wide,
/// otherwise ranges of at most wideBlock / unitElements units, and at least one.
template <typename F, typename Body>
inline void forWideBlocks(int64_t begin, int64_t end, int64_t unitElements, const Body &body) {
  if constexpr (kIsWide<F>) {
    body(begin, end);
  } else {
    int64_t step = std::max<int64_t>(1, kWideBlock / std::max<int64_t>(1, unitElements));
    for (int64_t first = begin; first < end; first += step)
      body(first, std::min(first + step, end));
  }
}

/// The elements themselves, or `array` with them widened.
template <typename F>
inline const Wide<F> *wideInput(const F *elements, int64_t count, Wide<F> *array) {
  if constexpr (kIsWide<F>) {
    return elements;
  } else {
    widen(elements, array, count);
    return array;
  }
}

/// Where to compute `elements`, which storeWide then rounds into their place.
template <typename F> inline Wide<F> *wideOutput(F *elements, Wide<F> *array) {
  if constexpr (kIsWide<F>)
    return elements;
  else
    return array;
}
template <typename F> inline void storeWide(const Wide<F> *wide, F *elements, int64_t count) {
  if constexpr (!kIsWide<F>)
    narrow(wide, elements, count);
}

/// Arrays in the workspace for the blocks of rows of a kernel: each thread has `arrays` of them,
/// with room for a block of units of `unitElements` elements. None where nothing is widened.
template <typename F> class WideArrays {
public:
  WideArrays(int64_t unitElements, int arrays)
      : arrayElements(kIsWide<F> ? 0
                                 : static_cast<int64_t>(
                                       arrayBytes<Wide<F>>(std::max(kWideBlock, unitElements))) /
                                       static_cast<int64_t>(sizeof(Wide<F>))),
        arrays(arrays) {}

  size_t bytes(int threads) const {
    return static_cast<size_t>(arrayElements) * sizeof(Wide<F>) * static_cast<size_t>(arrays) *
           static_cast<size_t>(threads);
  }
  Wide<F> *at(void *workspace, int part, int array) const {
    return static_cast<Wide<F> *>(workspace) + (part * arrays + array) * arrayElements;
  }

private:
  int64_t arrayElements;
  int arrays;
};

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_WIDEBLOCKS_H
