//===- OuterSteps.h - The outer steps of a run ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_OUTERSTEPS_H
#define DTC_RUNTIME_TRAIN_OUTERSTEPS_H

#include "plan/OuterFragments.h"
#include "runtime/executor/Session.h"

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
  /// Whether a step is followed by some part of an outer step.
  bool isDue(int64_t step) const;
  /// Runs what is due after a step.
  MaybeError run(int64_t step);
  /// The outer step of all parameters; null if it is divided into fragments.
  Session *whole() const { return all; }
  /// The bytes that outer steps have sent so far.
  CommunicatorBytes sent() const;
  /// What the weights are of a run that ends after a step; nothing if all replicas are alike.
  std::optional<std::string> describeEnd(int64_t step) const;

private:
  struct Fragment {
    Session *take = nullptr, *send = nullptr, *apply = nullptr;
  };

  Session *all = nullptr;
  OuterFragments schedule;
  std::vector<Fragment> fragments;
  int64_t steps = 0; // 0: not set
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_OUTERSTEPS_H
