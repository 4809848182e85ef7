//===- CallGroups.h - Kernel calls that are computed together -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A device may compute several calls of a task by one kernel (Fusions.h). The calls of a group are
// not always neighbours in the task: they are brought to the place of one of them, if that changes
// nothing, which follows from the bytes that they and the calls between them read and write. No
// call is moved past anything but kernel calls.
//
// A slice or a broadcast, which computes nothing, is copied into each group that reads it. That may
// leave the call itself without a reader: then it is left out.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_FUSION_CALLGROUPS_H
#define DTC_CALLS_FUSION_CALLGROUPS_H

#include "calls/fusion/FusedCalls.h"
#include "calls/fusion/ValueReaders.h"
#include "plan/plan.pb.h"

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace dtc {

/// Calls of a task that one kernel computes at `place`, all by their numbers in the task.
struct CallGroup {
  std::vector<int> calls; // in order; calls that were copied may be in several groups
  int place = 0;
  FusedCalls fused;
};

struct CallGroups {
  std::vector<CallGroup> groups;
  /// By instruction of the task: its group, or none. Of a copied call that nothing reads any more,
  /// the last group that has a copy.
  std::vector<std::optional<size_t>> groupOf;
};

/// Decides which calls one kernel computes.
struct FusionRules {
  /// Whether calls of kernels with these names may have one; others are not described.
  std::function<bool(const std::vector<std::string_view> &)> mayFuse;
  std::function<bool(const std::vector<int> &, const FusedCalls &)> fuses;
};

/// Finds the groups of a task of a plan whose mesh has these axes.
CallGroups groupCalls(const plan::Program &program, const plan::Task &task,
                      const ValueReaders &readers, std::span<const AxisCoordinate> axes,
                      const FusionRules &rules);

} // namespace dtc

#endif // DTC_CALLS_FUSION_CALLGROUPS_H
