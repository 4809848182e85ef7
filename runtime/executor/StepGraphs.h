//===- StepGraphs.h - The graphs of a device's steps ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A graph gives a device the work of many instructions in one call. One graph holds a stretch:
// consecutive instructions of a task that can be captured and leave no async collective
// unfinished. A plan without microbatches whose devices need no messages is a single stretch for
// each task; transfers are enqueued one by one between stretches, and so are collectives that pass
// through the host.
//
// A graph has the addresses of its operands. So a stretch has one for each of the places that the
// slots of its buffers have in the microbatches, and where a kernel depends on the number of the
// microbatch, one for each of these. All are captured before the first step, as to make a graph may
// wait for the device (Device.h).
//
// A collective is in graphs in all steps or in none, and for all members of its group: so it is in
// none where the members have different programs.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_STEPGRAPHS_H
#define DTC_RUNTIME_EXECUTOR_STEPGRAPHS_H

#include "runtime/backends/Device.h"
#include "runtime/executor/PreparedProgram.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

namespace dtc::runtime {

/// Instructions [begin, end) of a program.
struct Stretch {
  size_t begin = 0, end = 0;
  std::vector<size_t> collectives; // among them
  MicrobatchUse microbatchUse = MicrobatchUse::None;
  bool closes = false; // it has more instructions for the last microbatch
};

/// Whether collectives of a group of the plan can be in graphs.
using CapturesGroup = std::function<bool(size_t group)>;

/// The stretches of a program, in order.
std::vector<Stretch> findStretches(const PreparedProgram &program, const CapturesGroup &captures);

class StepGraphs {
public:
  /// In all graphs of a device: the memory that they take, some KiB for each, is in no plan.
  static constexpr size_t kMostInstructions = size_t{1} << 16;

  /// The work of a stretch for some microbatches: that of the first one is captured.
  struct Run {
    const Stretch *stretch;
    size_t entry; // of the schedule
    uint32_t microbatch;
    int64_t repetition; // how often the loop over microbatches has run before
    std::unique_ptr<Graph> graph = nullptr;
  };

  /// A step runs the loop over microbatches once for each batch. Stretches whose graphs would have
  /// more than `most` instructions together with those before are none.
  StepGraphs(const PreparedProgram &program, const CapturesGroup &captures, int64_t batches,
             size_t most = kMostInstructions);

  /// In all stretches.
  size_t instructions() const;
  /// The stretch that begins at an instruction; null if none does.
  const Stretch *at(size_t instruction) const { return begins[instruction]; }
  /// Whether an instruction is in a stretch.
  bool holds(size_t instruction) const { return held[instruction]; }
  /// All runs, in the order of their first microbatches; each needs a graph.
  std::vector<Run> &allRuns() { return runs; }
  /// The run of a stretch in a step.
  const Run &find(const Stretch &stretch, uint32_t microbatch, int64_t repetition) const;

private:
  using Key = std::tuple<const Stretch *, uint32_t, uint32_t, int64_t, bool>;

  void addRuns(size_t begin, size_t end, int64_t repetition);
  void dropBeyond(size_t most);
  Key keyOf(const Stretch &stretch, uint32_t microbatch, int64_t repetition) const;
  std::vector<uint64_t> placesOf(const Stretch &stretch, uint32_t microbatch) const;

  const PreparedProgram &program;
  int64_t batches;
  std::vector<Stretch> stretches;
  std::vector<const Stretch *> begins; // by instruction
  std::vector<bool> held;              // by instruction
  /// The first microbatch that has the same places, by stretch and microbatch.
  std::map<std::pair<const Stretch *, uint32_t>, uint32_t> samePlaces;
  std::vector<Run> runs;
  std::map<Key, size_t> runOf; // its index
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_STEPGRAPHS_H
