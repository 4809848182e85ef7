//===- WorkBudget.h - How long a plan may be followed ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_PLAN_WORKBUDGET_H
#define DTC_RUNTIME_PLAN_WORKBUDGET_H

#include "runtime/plan/PlanVerifier.h"
#include "runtime/support/Error.h"

#include <fmt/format.h>

namespace dtc::runtime {

/// Counts the steps that are taken to follow a plan. A file may be short and ask for very many: a
/// task runs as often as the schedule names it, a transfer's tensors as often as it is started.
/// What repeats for other reasons than the length of the file spends its steps here before it does
/// anything, even where an operand turns out to have no bytes.
class WorkBudget {
public:
  explicit WorkBudget(int64_t limit = maxDataflowSteps) : limit(limit) {}

  /// An error once more steps are spent than there are.
  [[nodiscard]] MaybeError spend(int64_t steps) {
    // `steps` comes from sizes in memory, so that no sum overflows before it is refused.
    spent += steps;
    if (spent <= limit)
      return std::nullopt;
    return Error{fmt::format("the schedule runs more than {} operands, more than are followed to "
                             "prove that a plan can be run; expected fewer or longer tasks",
                             limit)};
  }

private:
  int64_t limit;
  int64_t spent = 0;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_PLAN_WORKBUDGET_H
