//===- StepAgreement.cpp - What processes agree on beside steps ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/StepAgreement.h"

#include "runtime/fabrics/processes/Agreement.h"

namespace dtc::runtime {

/// Answers are sums over the processes: those that stop, and this for each that saves.
static constexpr int64_t kSaves = int64_t{1} << 32;

MaybeError StepAgreement::settle() {
  if (MaybeError error = work.settle())
    return error;
  isStopped |= answer % kSaves != 0;
  isSaved |= answer / kSaves != 0;
  answer = 0;
  return std::nullopt;
}

MaybeError StepAgreement::poll(int64_t step, bool stops, bool saves) {
  if (step <= last || step % kSteps != 0)
    return std::nullopt;
  last = step;
  if (MaybeError error = settle())
    return error;
  int64_t own = (stops ? 1 : 0) + (saves ? kSaves : 0);
  work.start([this, own]() -> MaybeError {
    Expected<int64_t> sum = agree(*processes.network(), ReductionKind::Sum, own);
    if (!sum)
      return sum.error();
    answer = *sum;
    return std::nullopt;
  });
  return std::nullopt;
}

} // namespace dtc::runtime
