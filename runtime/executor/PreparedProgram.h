//===- PreparedProgram.h - A plan ready to run ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_PREPAREDPROGRAM_H
#define DTC_RUNTIME_EXECUTOR_PREPAREDPROGRAM_H

#include "runtime/backends/Kernel.h"
#include "runtime/communicators/Communicator.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/support/Mesh.h"

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace dtc::runtime {

/// A kernel call with the offsets of its operands in the arena, in bytes.
struct PreparedKernel {
  std::shared_ptr<const Kernel> kernel;
  std::vector<uint64_t> inputs;
  std::vector<uint64_t> outputs;
};

/// A collective over groups[group] of the program. The operands of tensor i are number
/// firstOperand + i of the program's.
struct PreparedCollective {
  size_t group = 0;
  std::vector<CollectiveSpec> specs;
  size_t firstOperand = 0;
  /// Of an async one: how many the task has before it.
  std::optional<size_t> asyncIndex;
};

/// Waits for the async collective that is instructions[collective] of the program.
struct PreparedWait {
  size_t collective = 0;
};

using PreparedInstruction = std::variant<PreparedKernel, PreparedCollective, PreparedWait>;

/// What all devices of a program share: nothing here depends on a device, or changes.
struct PreparedProgram {
  struct Entry {
    uint32_t task = 0;
    uint32_t microbatch = 0;
  };
  /// Where in the arena a tensor of a collective lies, in bytes.
  struct OperandOffsets {
    uint64_t input = 0;
    uint64_t output = 0;
  };

  std::shared_ptr<const plan::Plan> plan;
  Mesh mesh;
  /// All instructions; task t is [taskBegin[t], taskBegin[t + 1]).
  std::vector<PreparedInstruction> instructions;
  std::vector<size_t> taskBegin;
  std::vector<Entry> schedule;
  /// The axes of each group that a collective names, in the order of their first use.
  std::vector<std::vector<std::string>> groups;
  std::vector<OperandOffsets> operands;
  /// The most async collectives of a task.
  size_t maxAsync = 0;
  /// Scratch memory of one device.
  size_t workspaceBytes = 0;

  const plan::Program &program() const { return plan->programs(0); }
  /// The instruction of the plan that instructions[index] was made from.
  const plan::Instruction &source(size_t index) const;

  /// Prepares all kernels of a valid plan for runs with `threads` threads. The error names the
  /// task, the instruction and where in the model it came from.
  static Expected<std::shared_ptr<const PreparedProgram>>
  create(std::shared_ptr<const plan::Plan> plan, const Backend &backend, int threads);
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_PREPAREDPROGRAM_H
