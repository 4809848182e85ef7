//===- TrafficFormulas.h - Published formulas of traffic ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The formulas of Rajbhandari et al. 2020 (section 7) for data parallelism and ZeRO, of Shoeybi et
// al. 2019 (section 3) for tensor parallelism, and of Korthikanti et al. 2022 (section 4.2.2) for
// sequence parallelism, in bytes that one rank sends in a step of f32 with ring collectives. Terms
// that real models have beyond them are added one by one, each with its name.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_TRAFFIC_TRAFFICFORMULAS_H
#define DTC_TEST_TRAFFIC_TRAFFICFORMULAS_H

#include "test/traffic/ModelSizes.h"

namespace dtc::test {

/// A sum of named terms, exact: a ring over n ranks sends (n-1)/n of what it moves.
class Traffic {
public:
  /// Adds `elements` f32, each sent (n-1)/n times; negative for what a formula counts and nobody
  /// sends.
  void add(const std::string &name, int64_t elements, int64_t n);
  /// Adds `tensors` all-reduces of `elements` elements over n ranks. Each sends whole bytes.
  void addAllReduce(const std::string &name, int64_t elements, int64_t n, int64_t tensors = 1);
  /// Adds what rounding to whole bytes adds to all-reduces over n ranks, in n-ths of a byte.
  void addRounding(int64_t parts, int64_t n);
  Traffic &operator+=(const Traffic &other);

  uint64_t bytes() const;
  /// The terms, for the message of a test that fails.
  std::string describe() const;

private:
  struct Term {
    std::string name;
    int64_t numerator;
    int64_t denominator;
  };
  std::vector<Term> terms;
};

/// Data parallelism over `n` ranks with ZeRO's `stage`, of what is left of the parameters after
/// tensor parallelism over `t`.
Traffic dataParallelTraffic(const ModelSizes &model, int64_t n, int stage, int64_t microbatches,
                            int64_t t = 1);

/// Tensor parallelism over `t` ranks. `n` such groups share the batch.
Traffic tensorParallelTraffic(const ModelSizes &model, int64_t t, bool sequenceParallel,
                              int64_t n = 1);

/// Context parallelism over `n` ranks by `exchange`, of a model without a table of positions: what
/// attention exchanges (all-to-all: Jacobs et al. 2023, arXiv:2309.14509, section 3.2; ring: Liu et
/// al. 2023, arXiv:2310.01889, section 3), and gradients as in data parallelism. Groups of `g`
/// ranks split heads by all-to-all, and `exchange` is between the groups.
Traffic contextParallelTraffic(const ModelSizes &model, int64_t n, const std::string &exchange,
                               int64_t g = 1);

} // namespace dtc::test

#endif // DTC_TEST_TRAFFIC_TRAFFICFORMULAS_H
