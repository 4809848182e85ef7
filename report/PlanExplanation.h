//===- PlanExplanation.h - Causes and costs of communication --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_REPORT_PLANEXPLANATION_H
#define DTC_REPORT_PLANEXPLANATION_H

#include "plan/plan.pb.h"
#include "simulator/AxisLinks.h"
#include "support/Error.h"
#include "support/Kinds.h"
#include "support/LinkSpeed.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dtc {

/// Why bytes move, in the words of the plan's Reason. All is empty where the plan does not say.
struct ExplainedReason {
  std::string value;    // "result of dtc.einsum"
  std::string from;     // how it lies
  std::string to;       // how it is needed
  std::string producer; // the location that makes it
  std::string consumer; // the location that needs it
  std::string remedy;   // a change that would remove the collective; may be empty

  bool known() const { return !value.empty() || !from.empty() || !to.empty(); }
  bool operator==(const ExplainedReason &) const = default;
};

/// One tensor of a collective.
struct ExplainedTensor {
  std::string type;   // of the input on one device: "f32[2, 8]"
  uint64_t bytes = 0; // that a device sends for it in one call
  ExplainedReason reason;

  bool operator==(const ExplainedTensor &) const = default;
};

/// One collective instruction of the plan, or one that starts a send to another device of the
/// pipeline. "A step" is one run of the whole schedule.
struct ExplainedCollective {
  CollectiveKind kind = CollectiveKind::AllReduce;
  bool isSend = false;                  // `kind` means nothing; the members are the two ends
  size_t program = 0;                   // of the plan
  std::vector<std::string> axes;        // as the plan has them
  std::vector<std::string> parentAxes;  // an axis that was split has its own name here
  int64_t members = 1;                  // of each group
  bool async = false;                   // overlaps with computation
  std::string task;                     // its name
  int instruction = 0;                  // the number in its task
  std::string location;                 // the layer and op
  uint64_t calls = 0;                   // in a step
  uint64_t bytes = 0;                   // that a device sends in one call
  double seconds = 0;                   // one call, estimated; a bucket pays the latency once
  std::vector<ExplainedTensor> tensors; // several: a bucket

  /// "all_reduce", "send".
  const char *kindName() const;
  uint64_t stepBytes() const { return calls * bytes; }
  double stepSeconds() const { return calls == 0 ? 0 : static_cast<double>(calls) * seconds; }
};

/// Collectives that are alike but for the number of their layer.
struct ExplainedRow {
  std::vector<size_t> members; // indices into PlanExplanation::collectives
  uint64_t calls = 0;          // in a step, of all
  uint64_t bytes = 0;          // that a device sends in a step
  double seconds = 0;          // in a step
};

/// The total of some of the collectives.
struct CommunicationTotal {
  std::string name;          // the kind ("all_reduce", "send") or the axes ("dp+tp")
  uint64_t instructions = 0; // in the plan
  uint64_t calls = 0;        // in a step of one device of each program
  uint64_t bytes = 0;        // that such devices send in a step
  double seconds = 0;        // in a step, one collective after the other
  double asyncSeconds = 0;   // of these, overlapped with computation
};

/// The reasons for the communication of a plan, and its costs. Everything is sorted by seconds,
/// then by bytes, the most first, then by the order of the plan, totals then by name. In a plan
/// with a pipeline, figures are of one device at each of its coordinates together.
struct PlanExplanation {
  std::string model;
  int64_t numDevices = 1;
  std::vector<AxisLink> links; // in the order of the mesh
  std::vector<ExplainedCollective> collectives;
  std::vector<ExplainedRow> groups;
  std::vector<CommunicationTotal> byAxes;
  std::vector<CommunicationTotal> byKind;
  CommunicationTotal total;
  std::vector<CommunicationTotal> byProgram; // by coordinate on the pipeline axis; one without
  /// Of an outer step, which comes after every H-th step, or of those of all fragments, which take
  /// turns in H steps; nullopt if replicas do not differ.
  std::optional<CommunicationTotal> outerStep;
  int64_t outerFragments = 0; // 0: the outer step is of all parameters
};

/// Explains a plan that findPlanError() accepts, with `links` that checkLinks() accepts. The plan
/// gives the figures that a link leaves open, and kAssumedLink those that the plan leaves open.
PlanExplanation explainPlan(const plan::Plan &plan, const std::vector<NamedLink> &links = {});

/// An error that names the largest part of the traffic if any device sends more than `budget` bytes
/// in a step.
MaybeError checkCommunicationBudget(const PlanExplanation &explanation, uint64_t budget);

/// The collective that stands for a group: its first, with numbers of layers as "*" in the texts in
/// which the members differ ("h.*.attn").
ExplainedCollective representativeOf(const PlanExplanation &explanation, const ExplainedRow &group);

/// A text with the numbers of layers as "*": digits between two dots, and after a dot at the end of
/// a name, which ends where the text does or at a space. Without places, " (model.mlir:12:8)" after
/// such a name is left out: each layer has its own.
std::string layerPattern(const std::string &text, bool keepsPlaces = true);

} // namespace dtc

#endif // DTC_REPORT_PLANEXPLANATION_H
