//===- LoopNest.h - Strided loops over several arrays ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_LOOPNEST_H
#define DTC_CALLS_LOOPNEST_H

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <span>
#include <vector>

namespace dtc {

/// The strides of a dense row-major tensor.
inline std::vector<int64_t> denseStrides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<int64_t>(shape[i], 1);
  return strides;
}

/// Strides that read an operand as a tensor of rank `rank`: operand dimension i is dimension
/// dims[i], the operand repeats along all others.
inline std::vector<int64_t> broadcastStrides(std::span<const int64_t> operandShape,
                                             std::span<const int64_t> dims, size_t rank) {
  std::vector<int64_t> strides(rank, 0), dense = denseStrides(operandShape);
  for (size_t i = 0; i < dims.size(); ++i)
    strides[static_cast<size_t>(dims[i])] = dense[i];
  return strides;
}

/// A nest of loops that walks `N` strided arrays together. Dimensions of size 1 are dropped, and
/// neighbours that every array steps through evenly are one loop, so the innermost loop is as long
/// as it can be.
template <size_t N> class LoopNest {
public:
  using Offsets = std::array<int64_t, N>;

  struct Loop {
    int64_t size = 1;
    Offsets strides{};
  };

  LoopNest(std::span<const int64_t> shape, const std::array<std::vector<int64_t>, N> &strides) {
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      count *= shape[dim];
      if (shape[dim] == 1)
        continue;
      Loop loop{shape[dim], {}};
      for (size_t i = 0; i < N; ++i)
        loop.strides[i] = strides[i][dim];
      if (!loops.empty() && continues(loops.back(), loop)) {
        loop.size *= loops.back().size;
        loops.back() = loop;
      } else {
        loops.push_back(loop);
      }
    }
    // Sizes of 2 and more whose product fits an int64_t.
    if (count == 0)
      loops.clear();
    if (loops.empty())
      loops.push_back({count, {}});
    assert(loops.size() < maxRank);
  }

  /// The nest of these loops as they are.
  explicit LoopNest(std::vector<Loop> loops) : loops(std::move(loops)) {
    for (const Loop &loop : this->loops)
      count *= loop.size;
    if (this->loops.empty())
      this->loops.push_back({});
  }

  /// The number of elements of the whole nest.
  int64_t elements() const { return count; }
  /// Outermost first; at least one.
  const std::vector<Loop> &dims() const { return loops; }
  const Loop &inner() const { return loops.back(); }

  /// The places of the arrays' elements `element` of the nest.
  Offsets offsetsAt(int64_t element) const {
    Offsets offsets{};
    for (size_t dim = loops.size(); dim-- > 0; element /= loops[dim].size)
      for (size_t i = 0; i < N; ++i)
        offsets[i] += element % loops[dim].size * loops[dim].strides[i];
    return offsets;
  }

  /// Calls segment(offsets, length) for the stretches of the innermost loop that make up the
  /// elements [begin, end), in order. `offsets` is the place in each array of the first element of
  /// the stretch.
  template <typename Segment>
  void forSegments(int64_t begin, int64_t end, const Segment &segment) const {
    if (begin >= end)
      return;
    std::array<int64_t, maxRank> index;
    int64_t rest = begin;
    for (size_t dim = loops.size(); dim-- > 0; rest /= loops[dim].size)
      index[dim] = rest % loops[dim].size;
    Offsets offsets = offsetsAt(begin);
    size_t last = loops.size() - 1;
    while (true) {
      int64_t length = std::min(loops[last].size - index[last], end - begin);
      segment(offsets, length);
      begin += length;
      if (begin == end)
        return;
      advance(index, offsets, length);
    }
  }

private:
  static constexpr size_t maxRank = 64;

  static bool continues(const Loop &outer, const Loop &inner) {
    for (size_t i = 0; i < N; ++i)
      if (outer.strides[i] != inner.strides[i] * inner.size)
        return false;
    return true;
  }

  /// Steps `length` elements along the innermost loop, to its end, and carries into the outer ones.
  void advance(std::array<int64_t, maxRank> &index, Offsets &offsets, int64_t length) const {
    size_t dim = loops.size() - 1;
    index[dim] += length;
    for (size_t i = 0; i < N; ++i)
      offsets[i] += length * loops[dim].strides[i];
    while (dim > 0 && index[dim] == loops[dim].size) {
      for (size_t i = 0; i < N; ++i)
        offsets[i] += loops[dim - 1].strides[i] - loops[dim].size * loops[dim].strides[i];
      index[dim] = 0;
      ++index[--dim];
    }
  }

  std::vector<Loop> loops;
  int64_t count = 1;
};

} // namespace dtc

#endif // DTC_CALLS_LOOPNEST_H
