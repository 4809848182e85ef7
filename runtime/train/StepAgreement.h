//===- StepAgreement.h - What processes agree on beside steps ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_STEPAGREEMENT_H
#define DTC_RUNTIME_TRAIN_STEPAGREEMENT_H

#include "runtime/fabrics/processes/Processes.h"
#include "runtime/train/BackgroundWork.h"
#include "support/Error.h"

#include <cstdint>

namespace dtc::runtime {

/// Whether a run of several processes stops or saves, where its steps wait for no other process:
/// the processes ask each other beside the steps, every kSteps steps, and all hear the answer
/// before the same step. No other agreement of the processes may begin before settle().
class StepAgreement {
public:
  static constexpr int64_t kSteps = 4;

  explicit StepAgreement(const Processes &processes) : processes(processes) {}

  /// Takes the answer and asks again, where the step is one for that. `stops`, `saves`: what this
  /// process asks for.
  MaybeError poll(int64_t step, bool stops, bool saves);
  /// Waits for the answer that is under way.
  MaybeError settle();
  /// Whether some process has asked for it, as far as all know.
  bool stops() const { return isStopped; }
  bool saves() const { return isSaved; }
  /// What was asked for is done.
  void saved() { isSaved = false; }

private:
  const Processes &processes;
  int64_t last = 0; // step of poll()
  bool isStopped = false, isSaved = false;
  int64_t answer = 0; // of the work
  BackgroundWork work{"what processes agree on"};
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_STEPAGREEMENT_H
