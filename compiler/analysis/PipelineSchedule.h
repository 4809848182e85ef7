//===- PipelineSchedule.h - Pipeline schedules ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
// A model is cut into devices * chunks stages. Each microbatch passes forward through all stages
// and backward in the opposite direction. A schedule is, for each device, the order of its units of
// work.
//
// A schedule is made from a rule: where stages are, how many microbatches a device may have begun
// and not finished, and which of several microbatches goes first. All rules share one scheduler.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_ANALYSIS_PIPELINESCHEDULE_H
#define DTC_COMPILER_ANALYSIS_PIPELINESCHEDULE_H

#include "support/Error.h"
#include "support/Kinds.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace dtc {

struct PipelineShape {
  int devices = 1;
  int chunks = 1; ///< stages on each device
  int microbatches = 1;

  int stages() const { return devices * chunks; }
};

/// A forward, backward or weight pass of one microbatch over one stage.
struct PipelineUnit {
  StagePass kind = StagePass::Forward;
  int microbatch = 0;
  int stage = 0;

  bool operator==(const PipelineUnit &) const = default;
  std::string str() const; ///< "F3@1": microbatch 3 on stage 1
};

/// RoundRobin: stage s is on device s mod devices. V: the first half of the stages goes up the
/// devices and the second half down again, so the first and the last stage are on device 0.
enum class StagePlacement { RoundRobin, V };

/// The device of a stage, and the stage that is a device's chunk-th.
int stageDevice(const PipelineShape &shape, StagePlacement placement, int stage);
int deviceStage(const PipelineShape &shape, StagePlacement placement, int device, int chunk);

struct ScheduleRule {
  llvm::StringRef name;
  StagePlacement placement = StagePlacement::RoundRobin;
  bool splitsWeight = false; ///< has units of kind Weight
  int minChunks = 1;
  int maxChunks = 1;

  /// The most microbatches, counted once for each stage, that a device has in flight: from the
  /// beginning of Forward to the end of Backward, or of Weight where there is one. This many
  /// stages' activations are kept. At least the number of chunks.
  int (*inFlight)(const PipelineShape &shape, int device);
  /// The most among these whose Backward has not begun. At least the number of chunks.
  int (*awaitingBackward)(const PipelineShape &shape, int device);
  /// Among units of the same kind, the one with the least priority value goes first; then the lower
  /// microbatch, then the lower stage.
  std::array<int, 2> (*unitPriority)(const PipelineShape &shape, const PipelineUnit &unit);
};

/// All rules. With p devices, v chunks, m microbatches, and forward, backward and weight units that
/// take F, B and W seconds on every stage, with nothing for transfers:
///
///   name         bubble seconds of a device      microbatches in flight on device d
///   naive        (p-1) m (F+B+W)                 1
///   gpipe        (p-1) (F+B+W)                   m
///   1f1b         (p-1) (F+B+W)                   p-d
///   interleaved  (p-1) (F+B+W)                   2(p-1-d) + (v-1)g + 1
///   zb-h1        (p-1) (F+B-W)                   p
///   zb-v         (p-1) F                         2p
///
/// where F, B and W are those of one stage: with v chunks, a device's v-th part. So the bubble of
/// interleaved is 1f1b's divided by v. g is p, and at most 2p-1 where p does not divide m.
///
/// This holds for interleaved and zb-h1 where m >= p; for zb-h1 and zb-v where F = B = W; and for
/// zb-v where m = p or m >= 3p/2 (in between it loses at most p-2 units more). For zb-h1 and zb-v
/// it is found by trying, up to p = 24 and m = 3p. For m < p the time from beginning to end is
///   interleaved  (vp + m-1) (F+B+W)
///   zb-h1        2p + 2m - 1              units
///   zb-v         at most 4p + 4m - 3      units
///
/// Sources. gpipe: Huang et al. 2019. 1f1b, interleaved: Narayanan et al. 2021, section 2.2. zb-h1:
/// Qi et al. 2023, "Zero Bubble Pipeline Parallelism". zb-v: Qi et al. 2024, "Pipeline Parallelism
/// with Controllable Memory".
llvm::ArrayRef<ScheduleRule> getScheduleRules();

std::optional<ScheduleRule> findScheduleRule(llvm::StringRef name);

/// "naive, gpipe, ...", for errors.
std::string listScheduleNames();

/// Whether the rule has a schedule for a shape. Every number of microbatches from one on is fine.
MaybeError checkShape(const PipelineShape &shape, const ScheduleRule &rule);

struct PipelineSchedule {
  PipelineShape shape;
  StagePlacement placement = StagePlacement::RoundRobin;
  bool splitsWeight = false;
  std::vector<std::vector<PipelineUnit>> orders; ///< by device

  int device(int stage) const { return stageDevice(shape, placement, stage); }
  /// The kind that is last to use a stage's activations.
  StagePass lastKind() const { return splitsWeight ? StagePass::Weight : StagePass::Backward; }
};

/// The schedule of a rule, for a shape that it supports. On each stage, units of one kind are in
/// the order of microbatches.
///
/// All units take one tick. In each tick, each device does the first of what is ready: a Forward if
/// the limits allow one, else a Backward, else a Weight.
///
/// The orders are made for a chain of stages, in which each needs the one before it. They suit
/// every model whose values go from lower to higher stages, over skip connections or from several
/// towers, too: for t < s the chain has Forward of t in an earlier tick than Forward of s, Backward
/// of s in an earlier one than Backward of t, and Weight of a stage after its Backward. So ticks
/// grow along all dependencies and along each device's order, and these together have no cycle.
PipelineSchedule buildSchedule(const PipelineShape &shape, const ScheduleRule &rule);

} // namespace dtc

#endif // DTC_COMPILER_ANALYSIS_PIPELINESCHEDULE_H
