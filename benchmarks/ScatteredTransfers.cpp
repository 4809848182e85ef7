//===- ScatteredTransfers.cpp - Megatron-LM's messages between stages -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/ScatteredTransfers.h"

#include "plan/PlanTypes.h"

#include <map>
#include <utility>
#include <vector>

using namespace dtc;

namespace {

/// Divides the transfers of one program.
class TransferScatter {
public:
  TransferScatter(plan::Program &program, const std::string &axis, int64_t size)
      : program(program), axis(axis), size(size) {}

  void run() {
    for (int number = 0; number < program.transfers_size(); ++number)
      for (uint32_t &buffer : *program.mutable_transfers(number)->mutable_buffers())
        scatter(static_cast<uint32_t>(number), buffer);
    for (plan::Task &task : *program.mutable_tasks())
      addGathers(task);
  }

private:
  struct Part {
    uint32_t part, whole; // buffers
  };

  void scatter(uint32_t number, uint32_t &buffer) {
    const plan::Buffer &whole = program.buffers(static_cast<int>(buffer));
    int64_t elements = typeOf(whole).numElements();
    if (elements % size != 0)
      return;
    plan::Buffer part = whole;
    part.clear_view_of();
    part.clear_reuses();
    part.clear_shape();
    part.add_shape(elements / size);
    *program.add_buffers() = std::move(part);
    auto index = static_cast<uint32_t>(program.buffers_size() - 1);
    parts[number].push_back({index, buffer});
    buffer = index;
  }

  void addGathers(plan::Task &task) {
    plan::Task whole;
    for (const plan::Instruction &instruction : task.instructions()) {
      *whole.add_instructions() = instruction;
      if (!instruction.has_finish_transfer())
        continue;
      uint32_t number = instruction.finish_transfer().transfer();
      if (program.transfers(static_cast<int>(number)).kind() != plan::Transfer::RECEIVE)
        continue;
      for (const Part &each : parts[number]) {
        plan::Instruction &gather = *whole.add_instructions();
        gather.set_location(instruction.location());
        gather.mutable_collective()->set_kind(plan::Collective::ALL_GATHER);
        gather.mutable_collective()->add_axes(axis);
        plan::CollectiveTensor &tensor = *gather.mutable_collective()->add_tensors();
        tensor.set_input(each.part);
        tensor.set_output(each.whole);
      }
    }
    task.mutable_instructions()->Swap(whole.mutable_instructions());
  }

  plan::Program &program;
  const std::string &axis;
  int64_t size;
  std::map<uint32_t, std::vector<Part>> parts; // by transfer
};

} // namespace

void benchmarks::scatterTransfers(plan::Plan &plan, const std::string &axis, int64_t size) {
  for (plan::Program &program : *plan.mutable_programs())
    TransferScatter(program, axis, size).run();
}
