//===- StepGraphs.h - The graphs of a device's steps ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A graph gives a device the work of many instructions in one call. What one graph holds is a
// stretch: consecutive instructions of a task that can be captured and leave no async collective
// unfinished. A plan without microbatches whose devices need no messages is a single stretch for
// each task; transfers are enqueued one by one between stretches, and so are collectives that pass
// through the host.
//
// A graph has the addresses of its operands. So a stretch has one for each of the places that the
// slots of its buffers have in the microbatches, and where a kernel depends on the number of the
// microbatch, one for each of these. Each is enqueued eagerly once, so that all that is made on
// first use is there (the memory of a network, the algorithms of products), then captured, then
// launched.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_STEPGRAPHS_H
#define DTC_RUNTIME_EXECUTOR_STEPGRAPHS_H

#include "runtime/backends/Device.h"
#include "runtime/executor/PreparedProgram.h"

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
};

/// The stretches of a program, in order. `withCollectives`: collectives can be captured.
std::vector<Stretch> findStretches(const PreparedProgram &program, bool withCollectives);

class StepGraphs {
public:
  /// The work of a stretch for some microbatches.
  struct Run {
    bool wasEnqueued = false; // eagerly
    std::unique_ptr<Graph> graph;
  };

  /// `hasLane`: collectives overlap with kernels.
  static Expected<std::unique_ptr<StepGraphs>>
  create(const PreparedProgram &program, bool withCollectives, Device &device, bool hasLane);

  /// In all stretches.
  size_t instructions() const;
  /// The stretch that begins at an instruction; null if none does.
  const Stretch *at(size_t instruction) const;
  /// `repetition`: how often the loop over microbatches has run before.
  Run &find(const Stretch &stretch, uint32_t microbatch, int64_t repetition);
  /// Whether the run is to be captured when it comes the next time.
  bool shouldCapture(const Stretch &stretch, const Run &run) const;
  void keep(const Stretch &stretch, Run &run, std::unique_ptr<Graph> graph);

  /// The queues that capture, in the place of the device's own.
  Queue &compute() const { return *computeQueue; }
  Queue *lane() const { return laneQueue.get(); }

private:
  StepGraphs(const PreparedProgram &program, bool withCollectives);
  std::vector<uint64_t> placesOf(const Stretch &stretch, uint32_t microbatch) const;

  const PreparedProgram &program;
  std::vector<Stretch> stretches;
  std::vector<const Stretch *> begins; // by instruction
  /// The first microbatch that has the same places, by stretch and microbatch.
  std::map<std::pair<const Stretch *, uint32_t>, uint32_t> samePlaces;
  std::map<std::tuple<const Stretch *, uint32_t, uint32_t, int64_t>, Run> runs;
  size_t captured = 0; // instructions, in all graphs
  std::unique_ptr<Queue> computeQueue, laneQueue;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_STEPGRAPHS_H
