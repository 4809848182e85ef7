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
#include "support/SequenceOrder.h"

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

/// A dimension that is a shard of a sequence, or all of it.
struct SequenceShard {
  int64_t size = 0;
  std::vector<std::string> axes;
  int64_t parts = 0; ///< of the zigzag order; 0: the order of the sequence

  /// On the device at `position`, or on the one whose number along `axes` is `shift` less.
  SequenceOrder at(std::span<const AxisCoordinate> position, int64_t shift = 0) const;
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
  /// The order of the queries.
  SequenceOrder order;
  /// Where the keys lie in the sequence if the call has a shard of them. `sequence` is the number
  /// of keys in the whole sequence, or 0 if the call has all of them.
  SequenceOrder keyOrder;
  int64_t sequence = 0;
  /// Causal: how many keys a query sees at most, its own and those before it; 0: all.
  int64_t window = 0;
  /// The scaled scores x are softcap * tanh(x / softcap); 0: they are x.
  double softcap = 0;
  /// While a batch element is at work: for each key of the sequence the range of its segment. A
  /// query is in the segment of its own key, and sees no other; null: of all.
  const SegmentRange *segments = nullptr;
  /// Of a device's kernel: the heads of a row of the tensor that q, k and v are parts of; 0: they
  /// are apart.
  int64_t joinedHeads = 0;

  /// Query heads of a key-value head.
  int64_t group() const { return heads / kvHeads; }
  /// Elements between the rows of a head in out and its gradient, in q and its own, and in k, v and
  /// theirs.
  int64_t outStride() const { return heads * headSize; }
  int64_t queryStride() const { return (joinedHeads ? joinedHeads : heads) * headSize; }
  int64_t keyStride() const { return (joinedHeads ? joinedHeads : kvHeads) * headSize; }
  /// The number of its own key in the sequence. Beyond the last key: a query of padding.
  int64_t keyOf(int64_t query) const { return order.at(query) + earlier; }
  /// All keys of the sequence.
  int64_t allKeys() const { return sequence == 0 ? keys : sequence; }
  /// How many of the present keys lie before a key of the sequence.
  int64_t keysBefore(int64_t key) const {
    return sequence == 0 ? std::clamp<int64_t>(key, 0, keys) : keyOrder.countBefore(key, keys);
  }
  /// The end of the keys that query `i` sees.
  int64_t visible(int64_t i) const {
    int64_t own = keyOf(i), end = causal ? std::min(own + 1, allKeys()) : allKeys();
    return keysBefore(segments ? std::min<int64_t>(end, segmentOf(own).end) : end);
  }
  /// The first of them.
  int64_t firstVisible(int64_t i) const {
    int64_t own = keyOf(i), first = window ? own + 1 - window : 0;
    return keysBefore(segments ? std::max<int64_t>(first, segmentOf(own).begin) : first);
  }

private:
  const SegmentRange &segmentOf(int64_t key) const {
    return segments[std::clamp<int64_t>(key, 0, allKeys() - 1)];
  }
};

/// `attention`, `cached_attention` and `attention_grad`. Without elements of q the shape has no
/// queries, and without elements at all no keys either: nothing must be computed.
struct AttentionCall {
  DType dtype = DType::F32;
  AttentionShape shape;
  /// The shard of the queries, and of the keys where there is a shift.
  SequenceShard sequence;
  std::optional<int64_t> keyShift;
  /// The input that numbers the segments of the keys, if there is one.
  std::optional<size_t> segments;
  /// The input with one score more for each query of a head, which has no value, if there is one.
  std::optional<size_t> sinks;
  /// The mask of the weights; none if nothing is dropped.
  std::optional<RandomMask> mask;
  /// The strides of a batch element, a head and a query in the whole masked tensor; that of a key
  /// is 1.
  std::array<int64_t, 3> maskStrides{};

  /// Whether more than `causal` says which keys a query sees.
  bool hasRanges() const {
    return shape.window != 0 || segments || sequence.parts != 0 || keyShift;
  }
  /// The shape on the device at `position`.
  AttentionShape shapeAt(std::span<const AxisCoordinate> position) const {
    AttentionShape local = shape;
    local.order = sequence.at(position);
    if (keyShift)
      local.keyOrder = sequence.at(position, *keyShift);
    return local;
  }
};
Expected<AttentionCall> checkAttention(const KernelSignature &signature);
Expected<AttentionCall> checkAttentionGrad(const KernelSignature &signature);
/// `merge_attention`: rows of a head for each of `batch`, `queries` and `heads`; `dtype` is that of
/// the part.
struct MergeAttentionCall {
  DType dtype = DType::F32;
  int64_t batch = 0, queries = 0, heads = 0, headSize = 0; // all 0 without elements
};
Expected<MergeAttentionCall> checkMergeAttention(const KernelSignature &signature);
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
