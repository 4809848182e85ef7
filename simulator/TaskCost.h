//===- TaskCost.h - How long a task works between its stops ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_TASKCOST_H
#define DTC_SIMULATOR_TASKCOST_H

#include "plan/plan.pb.h"

#include <string>
#include <vector>

namespace dtc::runtime {

/// What one execution of a task takes, and where in it the task does something besides computing.
struct TaskCost {
  /// A transfer, a wait, or a collective over the pipeline axis.
  struct Stop {
    int instruction = 0;
    double before = 0; // the share of the task's time that passes before it, 0 to 1
  };

  double seconds = 0;
  std::vector<Stop> stops;

  /// As PlanSimulation.h says. `pipelineAxis` is empty without one.
  static TaskCost of(const plan::Task &task, const std::string &pipelineAxis,
                     double flopsPerSecond);
};

} // namespace dtc::runtime

#endif // DTC_SIMULATOR_TASKCOST_H
