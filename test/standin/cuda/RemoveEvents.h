//===- RemoveEvents.h - Programs without one of their events -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_REMOVEEVENTS_H
#define DTC_TEST_STANDIN_CUDA_REMOVEEVENTS_H

#include "test/standin/cuda/Standin.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace dtc::standin {

/// A call of cudaEventRecord or cudaStreamWaitEvent, and what the program computes without it.
struct RemovedCall {
  bool isWait;
  uint64_t number; // of its kind, from 0
  /// The first order in which the result is another one; none if all are the same: another event
  /// gives the same order, or the orders were too few.
  std::optional<uint64_t> seed;
};

struct RemovedEvents {
  /// An error of the whole program: a seed whose result differs from that of the first.
  std::optional<uint64_t> unstableSeed;
  std::vector<RemovedCall> calls; // none of an unstable program
  /// "wait 3, record 0": those without which no result changed.
  std::string redundant() const;
};

/// Runs `program`, which gives its results as bytes, with seeds from 1 to `orders`, and then so for
/// each record and wait without it. Each run begins with reset(settings) with its seed. A run has
/// to make the same calls of CUDA with every seed. Violations count as another result.
RemovedEvents removeEvents(const std::function<std::string()> &program, uint64_t orders,
                           Settings settings = {});

} // namespace dtc::standin

#endif // DTC_TEST_STANDIN_CUDA_REMOVEEVENTS_H
