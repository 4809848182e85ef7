//===- PlanSummary.h - Summary of a plan ----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PLAN_PLANSUMMARY_H
#define DTC_PLAN_PLANSUMMARY_H

#include "plan/plan.pb.h"
#include "support/Collective.h"
#include "support/Mesh.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dtc {

/// One axis of the mesh, and the axis that the user knows it by where the compiler took one apart.
struct AxisSummary : MeshAxis {
  std::string subAxisOf; // empty for an axis that is whole
};

/// Bytes of one device that are live at the moment of the peak.
struct PeakMemory {
  uint64_t parameters = 0;
  uint64_t masterWeights = 0;
  uint64_t gradients = 0;
  uint64_t optimizerState = 0;
  uint64_t activations = 0;
  uint64_t caches = 0;
  uint64_t constants = 0;
  uint64_t inputsAndOutputs = 0;
  uint64_t other = 0; // of kinds that this version does not know

  uint64_t total() const {
    return parameters + masterWeights + gradients + optimizerState + activations + caches +
           constants + inputsAndOutputs + other;
  }
};

/// The calls of one kernel.
struct KernelSummary {
  std::string kernel;
  uint64_t instructions = 0; // in the plan
  uint64_t calls = 0;        // in a step of one device
  double flops = 0;          // of those calls
};

/// The collectives of one kind over the same axes.
struct CollectiveSummary {
  CollectiveKind kind = CollectiveKind::AllReduce;
  std::vector<std::string> axes;
  std::vector<std::string> parentAxes; // see ParentAxes.h
  int64_t members = 1;                 // of each group
  uint64_t instructions = 0;           // in the plan
  uint64_t asyncInstructions = 0;      // of these, how many overlap with computation
  uint64_t tensors = 0; // of these instructions; more than them where there are buckets
  uint64_t calls = 0;   // in a step of one device
  uint64_t bytes = 0;   // that one device sends in a step; see CollectiveSpec::ringBytes()
};

/// The sends between the devices of a pipeline.
struct TransferSummary {
  uint64_t instructions = 0; // that start a send, in the plan
  uint64_t tensors = 0;      // of these instructions
  uint64_t messages = 0;     // in a step
  uint64_t bytes = 0;        // in a step

  bool operator==(const TransferSummary &) const = default;
};

struct TaskSummary {
  size_t program = 0;
  std::string name;
  uint64_t instructions = 0;
  uint64_t runs = 0; // in a step
  double flops = 0;  // of one execution on one device
};

/// Consecutive runs of one task of a program, for microbatches that rise by one.
struct ScheduleSpan {
  size_t task = 0; // index into PlanSummary::tasks
  uint32_t firstMicrobatch = 0;
  uint64_t count = 1;
};

/// The part of a summary that differs between the devices of a pipeline.
struct ProgramSummary {
  PeakMemory peak;              // all zero if the producer of the plan did not say
  uint64_t arenaLowerBound = 0; // 0 if the producer did not say
  uint64_t arenaBytes = 0;
  uint64_t hostArenaBytes = 0;  // in the memory of the host
  PeakMemory hostPeak;          // of that memory
  uint32_t mostSlots = 0;       // the most that a buffer, or several that share them, have
  uint64_t slotBytes = 0;       // of the arena that buffers with slots lie in, all their slots
  double flops = 0;             // of a step of one device
  uint64_t collectiveBytes = 0; // that one device sends in a step in collectives
  TransferSummary transfers;    // that one device sends

  uint64_t sentBytes() const { return collectiveBytes + transfers.bytes; }
  /// The arena by its lower bound, 1 at best.
  std::optional<double> arenaRatio() const;
};

/// The work and the needs of a plan, from the plan alone. "A step" is one execution of the whole
/// schedule. In a plan with a pipeline, "one device" stands for one device at each coordinate of
/// it: counts are sums over the programs, and the memory is the largest arena's.
struct PlanSummary {
  uint32_t version = 0;
  std::string producer;
  std::string model;
  std::string entry;                    // empty: the plan's own
  std::vector<std::string> entryPoints; // beside the summarized one

  std::vector<AxisSummary> axes;
  int64_t numDevices = 1;
  int64_t microbatches = 1;

  std::string pipelineAxis;             // empty without a pipeline
  std::string pipelineSchedule;         // as the plan calls it; may be empty
  uint32_t stages = 0;                  // of the model; 0 if the plan does not say
  std::vector<ProgramSummary> programs; // by coordinate on the pipeline axis; one without
  size_t largestProgram = 0;            // the first with the largest arena
  /// The devices that run each program.
  int64_t devicesPerProgram() const {
    return numDevices / std::max<int64_t>(static_cast<int64_t>(programs.size()), 1);
  }
  bool isPipelined() const { return programs.size() > 1; }

  uint64_t parameterTensors = 0;
  uint64_t parameterElements = 0; // of the whole model
  uint64_t parameterBytes = 0;    // of the whole model

  PeakMemory peak;              // all zero if the producer of the plan did not say
  uint64_t arenaLowerBound = 0; // 0 if the producer did not say
  uint64_t arenaBytes = 0;
  /// The arena by its lower bound, 1 at best.
  std::optional<double> arenaRatio() const;

  double flops = 0; // of a step of one device
  double totalFlops() const { return flops * static_cast<double>(devicesPerProgram()); }

  std::vector<KernelSummary> kernels;         // the most flops first, then the most calls
  std::vector<CollectiveSummary> collectives; // the most bytes first
  CommunicatorBytes sentBytes;                // in collectives, by one device in a step
  TransferSummary transfers;                  // of one device at each coordinate
  /// In a step.
  uint64_t sentByAll() const {
    return (sentBytes.total() + transfers.bytes) * static_cast<uint64_t>(devicesPerProgram());
  }

  std::vector<TaskSummary> tasks;     // in the order of the plan
  std::vector<ScheduleSpan> schedule; // of one program after the other
  uint64_t instructions = 0;          // in the plan
};

/// Summarizes a plan that findPlanError() accepts.
PlanSummary summarizePlan(const plan::Plan &plan);

} // namespace dtc

#endif // DTC_PLAN_PLANSUMMARY_H
