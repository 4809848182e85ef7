//===- OuterSteps.h - The outer steps of a run ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_OUTERSTEPS_H
#define DTC_RUNTIME_TRAIN_OUTERSTEPS_H

#include "plan/OuterFragments.h"
#include "runtime/executor/Session.h"
#include "runtime/train/BackgroundWork.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dtc::runtime {

/// When the outer steps of a plan run, of all its parameters or of fragments.
class OuterSteps {
public:
  /// Those of the session's plan; null if its replicas do not differ.
  static std::unique_ptr<OuterSteps> find(Session &session);

  /// Sets H, the steps from one outer step of a parameter to its next. The error says what is
  /// expected.
  MaybeError setEvery(int64_t steps);
  int64_t every() const { return steps; }
  /// What was sent after this step or before, by a run of another schedule, is not applied: the
  /// replica's own parameters have it, so that it is sent again. When the outer steps of all
  /// parameters were, up to this step, is not known.
  void forgetUntil(int64_t step) { forgotten = step; }
  /// Whether a step is followed by some part of an outer step.
  bool isDue(int64_t step) const;
  /// Runs what is due after a step. A fragment that is sent may still be when this returns: the
  /// states that it sends are then not to be read.
  MaybeError run(int64_t step);
  /// Waits for the fragment that is being sent.
  MaybeError settle() { return sender.settle(); }
  /// The seconds in which fragments were sent, and those in which settle() waited for them.
  double sendingSeconds() const { return sender.workedSeconds(); }
  double waitedSeconds() const { return sender.waitedSeconds(); }
  /// The outer step of all parameters; null if it is divided into fragments.
  Session *whole() const { return all; }
  /// The bytes that outer steps have sent so far.
  CommunicatorBytes sent() const;
  /// A sentence on whose weights a run has that ends after a step; none if all replicas are alike.
  std::optional<std::string> describeEnd(int64_t step) const;

private:
  struct Fragment {
    Session *take = nullptr, *send = nullptr, *apply = nullptr;
  };

  Session *all = nullptr;
  OuterFragments schedule;
  std::vector<Fragment> fragments;
  void start(int64_t fragment);
  bool isApplied(int64_t fragment, int64_t step) const {
    return step - schedule.delay > forgotten && schedule.isAppliedAfter(fragment, step, steps);
  }

  int64_t steps = 0; // 0: not set
  int64_t forgotten = 0;
  BackgroundWork sender{"what is sent to other replicas"};
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_OUTERSTEPS_H
