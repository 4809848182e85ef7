//===- WorkLimit.h - Limit of the work of verification -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PLAN_WORKLIMIT_H
#define DTC_PLAN_WORKLIMIT_H

#include "plan/PlanVerifier.h"
#include "support/Error.h"

#include <fmt/format.h>

namespace dtc {

/// The most steps for all programs of a plan and of its entry points; kMaxFollowedOperands are
/// those for one program.
inline constexpr int64_t kMaxFollowedOperandsOfAll = 4 * kMaxFollowedOperands;

/// Counts the steps that are taken to follow a plan. A file may be short and ask for very many: a
/// task runs as often as the schedule names it, a transfer's tensors as often as it is started.
/// Work that repeats for other reasons than the length of the file spends its steps here before it
/// does anything, even for an operand without bytes.
///
/// One program may take a part of the steps of all programs: the memory for following it is in use
/// only meanwhile, and only the time adds up.
class WorkLimit {
public:
  explicit WorkLimit(int64_t ofProgram = kMaxFollowedOperands,
                     int64_t ofAll = kMaxFollowedOperandsOfAll)
      : program{ofProgram}, all{ofAll} {}

  /// The following steps are for the next program.
  void nextProgram() { program.spent = 0; }

  /// An error once more steps are spent than the limit has.
  [[nodiscard]] MaybeError spend(int64_t steps) {
    // `steps` comes from sizes in memory, so that no sum overflows before it is refused.
    program.spent += steps;
    all.spent += steps;
    if (program.spent > program.limit)
      return refuse("the schedule runs", program.limit);
    if (all.spent > all.limit)
      return refuse("the schedules of all programs together run", all.limit);
    return std::nullopt;
  }

private:
  struct Account {
    int64_t limit;
    int64_t spent = 0;
  };
  static Error refuse(const char *what, int64_t limit) {
    return Error{
        fmt::format("{} more than {} operands, more than are followed to prove that a plan "
                    "can be run; expected fewer or longer tasks",
                    what, limit)};
  }

  Account program, all;
};

} // namespace dtc

#endif // DTC_PLAN_WORKLIMIT_H
