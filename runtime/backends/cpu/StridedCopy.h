//===- StridedCopy.h - Copies between memory orders -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_STRIDEDCOPY_H
#define DTC_RUNTIME_BACKENDS_CPU_STRIDEDCOPY_H

#include "calls/LoopNest.h"
#include "runtime/backends/cpu/Parallel.h"

#include <optional>

namespace dtc::runtime::cpu {

/// Copies every element of a shape from one memory order into another: transposes, slices,
/// broadcasts.
class StridedCopy {
public:
  StridedCopy(std::span<const int64_t> shape, std::vector<int64_t> toStrides,
              std::vector<int64_t> fromStrides)
      : StridedCopy(LoopNest<2>(shape, {std::move(toStrides), std::move(fromStrides)})) {}
  /// The nest has the offsets to which and from which the elements are copied.
  explicit StridedCopy(LoopNest<2> nest) : nest(std::move(nest)) { findTransposition(); }

  template <typename T> void run(T *to, const T *from, int threads) const {
    if (transposition)
      runTransposition(to, from, threads);
    else
      runRows(to, from, threads);
  }

private:
  using Loop = LoopNest<2>::Loop;

  /// The target runs along `row`, the source along `column`, and `outer` is around both. Such a
  /// nest is copied in square tiles, so that whole cache lines are used on both sides.
  struct Transposition {
    LoopNest<2> outer;
    Loop row, column;
  };
  static constexpr int64_t tileSize = 16;

  void findTransposition() {
    const std::vector<Loop> &loops = nest.dims();
    Loop row = loops.back();
    if (row.strides[0] != 1 || row.strides[1] <= 1)
      return;
    for (size_t i = 0; i + 1 < loops.size(); ++i)
      if (loops[i].strides[1] == 1 && loops[i].strides[0] > 1) {
        std::vector<Loop> outer(loops.begin(), loops.end() - 1);
        outer.erase(outer.begin() + static_cast<std::ptrdiff_t>(i));
        transposition = Transposition{LoopNest<2>(std::move(outer)), row, loops[i]};
        return;
      }
  }

  template <typename T> void runRows(T *to, const T *from, int threads) const {
    parallelFor(threads, nest.elements(), kElementGrain, [&](int64_t begin, int64_t end, int) {
      const auto [toStride, fromStride] = nest.inner().strides;
      nest.forSegments(begin, end, [&](const auto &offsets, int64_t length) {
        T *out = to + offsets[0];
        const T *in = from + offsets[1];
        if (toStride == 1 && fromStride == 1)
          std::copy_n(in, length, out);
        else if (toStride == 1 && fromStride == 0)
          std::fill_n(out, length, *in);
        else
          for (int64_t i = 0; i < length; ++i)
            out[i * toStride] = in[i * fromStride];
      });
    });
  }

  template <typename T> void runTransposition(T *to, const T *from, int threads) const {
    const Loop row = transposition->row, column = transposition->column;
    int64_t strips = (column.size + tileSize - 1) / tileSize;
    parallelFor(threads, transposition->outer.elements() * strips,
                grainFor(row.size * std::min(column.size, tileSize)),
                [&](int64_t begin, int64_t end, int) {
                  for (int64_t unit = begin; unit < end; ++unit) {
                    auto offsets = transposition->outer.offsetsAt(unit / strips);
                    int64_t first = unit % strips * tileSize;
                    copyStrip(to + offsets[0] + first * column.strides[0],
                              from + offsets[1] + first, std::min(tileSize, column.size - first));
                  }
                });
  }

  /// Copies `columns` columns of all rows.
  template <typename T> void copyStrip(T *to, const T *from, int64_t columns) const {
    int64_t toStride = transposition->column.strides[0];
    int64_t fromStride = transposition->row.strides[1];
    int64_t rows = transposition->row.size;
    for (int64_t first = 0; first < rows; first += tileSize) {
      int64_t last = std::min(first + tileSize, rows);
      for (int64_t c = 0; c < columns; ++c)
        for (int64_t r = first; r < last; ++r)
          to[c * toStride + r] = from[r * fromStride + c];
    }
  }

  LoopNest<2> nest;
  std::optional<Transposition> transposition;
};

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_STRIDEDCOPY_H
