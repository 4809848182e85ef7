//===- AttentionCalls.h - Calls of attention and rotary positions ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each function checks a call against its row of docs/kernels.md and gives the backend its
// parameters.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_ATTENTIONCALLS_H
#define DTC_CALLS_ATTENTIONCALLS_H

#include "calls/KernelSignature.h"
#include "calls/RandomMask.h"
#include "support/Error.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dtc {

/// Keys or queries [begin, end).
struct SegmentRange {
  int32_t begin = 0, end = 0;
};

/// Finds for each of `count` positions of a batch element the range of its segment: the run of
/// equal numbers around it.
void findSegments(const int32_t *numbers, int64_t count, SegmentRange *ranges);

/// Where in a sequence the elements of a dimension lie. Without chunks they are in its order, from
/// `offset` on; else they are from `offset` on in the order of `zigzag` with `parts` parts.
struct SequenceOrder {
  int64_t offset = 0;
  int64_t chunk = 0; ///< elements of a chunk; 0: there are none
  int64_t parts = 0;

  /// The place of element `i`.
  int64_t at(int64_t i) const {
    int64_t place = offset + i;
    if (chunk == 0)
      return place;
    int64_t part = place / (2 * chunk), rest = place % (2 * chunk);
    return rest < chunk ? part * chunk + rest : (2 * parts - 2 - part) * chunk + rest;
  }
  /// The end of the elements from `i` on, `end` at most, whose places follow each other.
  int64_t endOfRun(int64_t i, int64_t end) const {
    return chunk == 0 ? end : std::min(end, ((offset + i) / chunk + 1) * chunk - offset);
  }
  /// Whether later ones of `count` elements lie further on.
  bool isIncreasing(int64_t count) const {
    return chunk == 0 || count <= 2 * chunk - offset % (2 * chunk);
  }
};

/// A dimension that is a shard of a sequence, or all of it.
struct SequenceShard {
  int64_t size = 0;
  std::vector<std::string> axes;
  int64_t parts = 0; ///< of the zigzag order; 0: the order of the sequence

  SequenceOrder at(std::span<const AxisCoordinate> position) const;
  /// Whether it is all of the sequence, in its order.
  bool isWhole() const { return axes.empty() && parts == 0; }
};

struct AttentionShape {
  int64_t batch = 0, queries = 0, keys = 0, heads = 0, kvHeads = 1, headSize = 1;
  bool causal = false;
  double scale = 1;
  /// Causal: the number of keys before the key of the sequence's query 0. All queries see all of
  /// these.
  int64_t earlier = 0;
  /// Of the queries.
  SequenceOrder order;
  /// Causal: how many keys a query sees at most, its own and those before it; 0: all.
  int64_t window = 0;
  /// The scaled scores x are softcap * tanh(x / softcap); 0: they are x.
  double softcap = 0;
  /// While a batch element is at work: for each key the range of its segment. A query is in the
  /// segment of its own key, and sees no other; null: of all.
  const SegmentRange *segments = nullptr;

  /// Query heads of a key-value head.
  int64_t group() const { return heads / kvHeads; }
  /// Elements between the rows of a head in q, out and their gradients, and in k, v and theirs.
  int64_t queryStride() const { return heads * headSize; }
  int64_t keyStride() const { return kvHeads * headSize; }
  /// The number of its own key. Beyond the last key: a query of padding.
  int64_t keyOf(int64_t query) const { return order.at(query) + earlier; }
  /// The end of the keys that query `i` sees.
  int64_t visible(int64_t i) const {
    int64_t own = keyOf(i), end = causal ? std::clamp<int64_t>(own + 1, 0, keys) : keys;
    return segments ? std::min<int64_t>(end, segmentOf(own).end) : end;
  }
  /// The first of them.
  int64_t firstVisible(int64_t i) const {
    int64_t own = keyOf(i), first = window ? std::clamp<int64_t>(own + 1 - window, 0, keys) : 0;
    return segments ? std::max<int64_t>(first, segmentOf(own).begin) : first;
  }

private:
  const SegmentRange &segmentOf(int64_t key) const { return segments[std::min(key, keys - 1)]; }
};

/// `attention`, `cached_attention` and `attention_grad`. Without elements of q the shape has no
/// queries, and without elements at all no keys either: nothing must be computed.
struct AttentionCall {
  DType dtype = DType::F32;
  AttentionShape shape;
  /// Of the queries.
  SequenceShard sequence;
  /// The input that numbers the segments of the keys, if there is one.
  std::optional<size_t> segments;
  /// Of the weights; none if nothing is dropped.
  std::optional<RandomMask> mask;
  /// Of a batch element, a head and a query in the whole masked tensor; the stride of a key is 1.
  std::array<int64_t, 3> maskStrides{};

  /// The shape on the device at `position`.
  AttentionShape shapeAt(std::span<const AxisCoordinate> position) const {
    AttentionShape local = shape;
    local.order = sequence.at(position);
    return local;
  }
};
Expected<AttentionCall> checkAttention(const KernelSignature &signature);
Expected<AttentionCall> checkAttentionGrad(const KernelSignature &signature);
/// Causal, without a mask; `earlier` is an input of the call, a number for each batch element.
Expected<AttentionCall> checkCachedAttention(const KernelSignature &signature);

/// The positions in input 1 of `rotary`: none, as there is no such input; the position of the first
/// row of each batch element; or the position of each row.
enum class RotaryPositions { None, OfFirstRows, OfRows };

/// `rotary`. The pairs (i, i + n) turn by the n frequencies times the position and are multiplied
/// by `factor`; the elements from 2n on stay.
struct RotaryCall {
  DType dtype = DType::F32;
  int64_t batch = 0, sequence = 0, heads = 0, headSize = 0; // all 0 without elements
  bool inverse = false;
  RotaryPositions positions = RotaryPositions::None;
  double factor = 1;
  std::vector<double> frequencies;
  SequenceShard shard; ///< what the dimension `sequence` is of a whole one

  int64_t pairs() const { return static_cast<int64_t>(frequencies.size()); }
};
Expected<RotaryCall> checkRotary(const KernelSignature &signature);

} // namespace dtc

#endif // DTC_CALLS_ATTENTIONCALLS_H
