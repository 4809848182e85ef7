//===- PreparedProgram.h - Prepared programs of a plan --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_PREPAREDPROGRAM_H
#define DTC_RUNTIME_EXECUTOR_PREPAREDPROGRAM_H

#include "plan/PlanTypes.h"
#include "plan/Replicas.h"
#include "plan/plan.pb.h"
#include "runtime/backends/Kernel.h"
#include "runtime/fabrics/Communicator.h"
#include "support/Mesh.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace dtc::runtime {

/// Where in the arena a buffer lies, in bytes. A buffer with slots lies elsewhere for each
/// microbatch.
struct ArenaRange {
  uint64_t offset = 0;
  uint64_t slotBytes = 0; // from one copy to the next
  uint32_t slots = 0;     // 0: one value for all microbatches
  // The slot of each microbatch, in the plan. Null: they take turns.
  const uint32_t *slotMap = nullptr;
  bool isOnHost = false; // the arena is that in the memory of the host

  uint64_t offsetFor(uint32_t microbatch) const {
    if (slots == 0)
      return offset;
    return offset + (slotMap ? slotMap[microbatch] : microbatch % slots) * slotBytes;
  }
};

/// Whether a kernel call differs from one microbatch to another, apart from the places of its
/// operands: not at all, in the first one of a step, in each.
enum class MicrobatchUse { None, First, Each };

/// A kernel call with the places of its operands. Where the backend computes several calls at once,
/// one of them has the operands of all, and the others have no kernel. Nor has a call whose results
/// are all empty: there is nothing to run.
struct PreparedKernel {
  std::shared_ptr<const Kernel> kernel;
  std::vector<ArenaRange> inputs;
  std::vector<ArenaRange> outputs;
  MicrobatchUse microbatchUse = MicrobatchUse::None;
};

/// A kernel call with an operand in the memory of the host: a copy from one memory to the other, or
/// a kernel that the host's cores run.
struct PreparedHostCall {
  Lane lane = Lane::Host;
  std::shared_ptr<const Kernel> kernel; // of the host's backend; null for a copy, and if it has
                                        // nothing to do
  std::vector<ArenaRange> inputs;
  std::vector<ArenaRange> outputs;
  uint64_t bytes = 0; // of a copy
  /// How many async instructions the task has before this one; none if it is not async.
  std::optional<size_t> asyncIndex;
  /// The asyncIndex of each instruction that it comes after.
  std::vector<size_t> after;
};

/// A collective over groups[group] of the plan. The operands of tensor i are number
/// firstOperand + i of the program's.
struct PreparedCollective {
  size_t group = 0;
  std::vector<CollectiveSpec> specs;
  size_t firstOperand = 0;
  bool hasSlots = false; // of any operand
  /// How many async instructions the task has before this one; none if it is not async.
  std::optional<size_t> asyncIndex;
  /// The asyncIndex of each instruction that it comes after.
  std::vector<size_t> after;
};

/// Waits for the async instruction that is instructions[started] of the program.
struct PreparedWait {
  size_t started = 0;
  size_t asyncIndex = 0; // of that one
};

/// Starts or finishes transfers[transfer] of the program for the running microbatch.
struct PreparedStartTransfer {
  size_t transfer = 0;
};
struct PreparedFinishTransfer {
  size_t transfer = 0;
};

using PreparedInstruction =
    std::variant<PreparedKernel, PreparedHostCall, PreparedCollective, PreparedWait,
                 PreparedStartTransfer, PreparedFinishTransfer>;

inline bool isCollective(const PreparedInstruction &instruction) {
  return std::holds_alternative<PreparedCollective>(instruction);
}
inline bool isTransfer(const PreparedInstruction &instruction) {
  return std::holds_alternative<PreparedStartTransfer>(instruction) ||
         std::holds_alternative<PreparedFinishTransfer>(instruction);
}

/// One end of the messages of a channel.
struct PreparedTransfer {
  struct Tensor {
    ArenaRange range;
    uint64_t bytes = 0;
  };

  bool sends = false;
  int64_t peer = 0; // the other device's coordinate on the pipeline axis
  uint32_t channel = 0;
  std::vector<Tensor> tensors;
  /// The most that are started and not finished at any moment of the schedule.
  size_t maxStarted = 0;
};

/// The data that all devices with one program share: nothing here depends on a device, or changes.
struct PreparedProgram {
  struct ScheduleEntry {
    uint32_t task = 0;
    uint32_t microbatch = 0;
  };
  struct Operands {
    ArenaRange input, output;
  };

  const plan::Program *program = nullptr; // of the plan
  /// Whether the fields below are set: programs of no device of this process are not prepared.
  bool isPrepared = false;
  /// All instructions; task t is [taskBegin[t], taskBegin[t + 1]).
  std::vector<PreparedInstruction> instructions;
  std::vector<size_t> taskBegin;
  /// By instruction: whether it runs for the last microbatch alone (ClosingInstructions.h). Empty
  /// if none does.
  std::vector<bool> isClosing;
  uint32_t lastMicrobatch = 0;
  std::vector<ScheduleEntry> schedule;
  std::vector<Operands> operands;
  std::vector<PreparedTransfer> transfers;
  /// The most async instructions of a task.
  size_t maxAsync = 0;
  bool hasAsyncCollectives = false;
  bool usesHost = false;         // it has calls with operands in the memory of the host
  size_t hostWorkspaceBytes = 0; // that they share
  /// Workspace of one device.
  size_t workspaceBytes = 0;

  /// Whether instructions[index] runs for a microbatch in a repetition of the loop, of `batches`.
  bool runsFor(size_t index, uint32_t microbatch, int64_t repetition, int64_t batches) const {
    return isClosing.empty() || !isClosing[index] ||
           (microbatch == lastMicrobatch && repetition + 1 == batches);
  }
  /// The number of the task that instructions[index] belongs to.
  size_t taskOf(size_t index) const;
  /// The instruction of the plan that instructions[index] was made from.
  const plan::Instruction &instruction(size_t index) const;
};

/// A plan with all its programs ready to run.
struct PreparedPlan {
  std::shared_ptr<const plan::Plan> plan;
  Mesh mesh;
  /// Those of a plan with outer steps.
  std::optional<Replicas> replicas;
  /// The axes of each group that a collective of any program names, in the order of their first
  /// use in the plan: all devices of all processes open all of them.
  std::vector<std::vector<std::string>> groups;
  std::vector<PreparedProgram> programs;
  /// That made the kernels, if it is not the caller's.
  std::shared_ptr<const Backend> backend;
  /// That made the kernels of the host; null if there are none.
  std::shared_ptr<const Backend> hostBackend;
  int threads = 1; // for each kernel of the host
  /// The plan's other entry points, in its order.
  std::vector<std::shared_ptr<const PreparedPlan>> entryPoints;

  /// The bytes that a device that runs program `index` needs for all entry points.
  uint64_t arenaBytes(size_t index) const;
  uint64_t workspaceBytes(size_t index) const;
  /// The workspace that entry points have for themselves which run beside the others.
  uint64_t workspaceBeside(size_t index) const;
  uint64_t hostArenaBytes(size_t index) const;
  uint64_t hostWorkspaceBytes(size_t index) const;
  /// Whether program `index` has async collectives in any entry point.
  bool hasAsync(size_t index) const;
  /// Whether the plan is an entry point that runs beside the others (OuterEntries.h).
  bool runsBeside() const;
  /// Whether program `index` uses the memory of the host in any entry point.
  bool usesHost(size_t index) const;

  const PreparedProgram &programOf(int64_t device) const {
    return programs[static_cast<size_t>(mesh.programOf(device))];
  }

  /// Prepares the kernels of a valid plan and its entryPoints, of the programs that `devices` run
  /// (all, if it is empty), for runs with `threads` threads. The error names the task, the
  /// instruction and where in the model it came from. `fuses`: calls are computed together where
  /// the backend can (CallGroups.h).
  static Expected<std::shared_ptr<const PreparedPlan>>
  create(std::shared_ptr<const plan::Plan> plan, const Backend &backend, int threads,
         std::span<const int64_t> devices = {}, bool fuses = true);
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_PREPAREDPROGRAM_H
