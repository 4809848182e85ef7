//===- TransferEnds.cpp - The two ends of each channel --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/TransferEnds.h"

#include "plan/PlanTypes.h"

#include <fmt/format.h>
#include <optional>
#include <utility>

namespace dtc {

uint64_t messageBytes(const plan::Program &program, const plan::Transfer &transfer) {
  uint64_t bytes = 0;
  for (uint32_t buffer : transfer.buffers())
    bytes += typeOf(program.buffers(static_cast<int>(buffer))).numBytes();
  return bytes;
}

/// Checks that the program has the transfers that its instructions name.
static MaybeError checkTransfersExist(const plan::Plan &plan, const plan::Program &program) {
  for (const plan::Task &task : program.tasks())
    for (int i = 0; i < task.instructions_size(); ++i) {
      const plan::Instruction &instruction = task.instructions(i);
      std::optional<uint32_t> transfer;
      if (instruction.has_start_transfer())
        transfer = instruction.start_transfer().transfer();
      else if (instruction.has_finish_transfer())
        transfer = instruction.finish_transfer().transfer();
      if (transfer && static_cast<int64_t>(*transfer) >= program.transfers_size())
        return Error{fmt::format("names transfer {}, but the program has {} transfers", *transfer,
                                 program.transfers_size())}
            .inContext(describeInstruction(plan, task, i));
    }
  return std::nullopt;
}

Expected<std::map<uint32_t, TransferEnds>> pairTransfers(const plan::Plan &plan) {
  struct Found {
    int sends = 0, receives = 0;
    TransferEnds ends;
  };
  std::map<uint32_t, Found> channels;
  for (int p = 0; p < plan.programs_size(); ++p) {
    const plan::Program &program = plan.programs(p);
    if (MaybeError error = checkTransfersExist(plan, program))
      return error->inContext(fmt::format("program {}", p));
    for (int t = 0; t < program.transfers_size(); ++t) {
      const plan::Transfer &transfer = program.transfers(t);
      Found &found = channels[transfer.channel()];
      if (kindOf(transfer) == TransferKind::Send) {
        ++found.sends;
        found.ends.from = static_cast<size_t>(p);
        found.ends.send = static_cast<uint32_t>(t);
        found.ends.bytes = messageBytes(program, transfer);
      } else {
        ++found.receives;
        found.ends.to = static_cast<size_t>(p);
        found.ends.receive = static_cast<uint32_t>(t);
      }
    }
  }
  std::map<uint32_t, TransferEnds> result;
  for (const auto &[number, found] : channels) {
    if (found.sends != 1 || found.receives != 1)
      return Error{fmt::format("channel {} has {} sends and {} receives; expected one of each",
                               number, found.sends, found.receives)};
    result[number] = found.ends;
  }
  return result;
}

} // namespace dtc
