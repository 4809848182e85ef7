//===- CallGroups.h - Kernel calls that are computed together -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A backend may compute several calls of a task by one kernel (Backend::prepareFused). The calls of
// a group are not always neighbours in the task: they are brought to the place of one of them, if
// that changes nothing, which follows from the bytes that they and the calls between them read and
// write. No call is moved past anything but kernel calls.
//
// A slice or a broadcast, which computes nothing, is copied into each group that reads it. That may
// leave the call itself without a reader: then it is left out.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_CALLGROUPS_H
#define DTC_RUNTIME_EXECUTOR_CALLGROUPS_H

#include "plan/plan.pb.h"
#include "runtime/backends/FusedCalls.h"
#include "runtime/executor/ValueReaders.h"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace dtc::runtime {

/// Calls of a task that one kernel computes at `place`, all by their numbers in the task.
struct CallGroup {
  std::vector<int> calls; // in order; calls that were copied may be in several groups
  int place = 0;
  std::shared_ptr<const Kernel> kernel;
};

struct CallGroups {
  std::vector<CallGroup> groups;
  /// By instruction of the task: its group, or none. Of a copied call that nothing reads any more,
  /// the last group that has a copy.
  std::vector<std::optional<size_t>> groupOf;
};

/// Finds the groups of a task. `prepareFused` gives the kernel for the calls with these numbers,
/// whose values, and the overlaps of their bytes, are filled in; signatures are not. Null if there
/// is none.
using PrepareGroup =
    std::function<std::shared_ptr<const Kernel>(const std::vector<int> &, FusedCalls)>;
CallGroups groupCalls(const plan::Program &program, const plan::Task &task,
                      const ValueReaders &readers, const PrepareGroup &prepareFused);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_CALLGROUPS_H
