//===- MemoryPeak.cpp - Peak memory of a program --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/MemoryPeak.h"

#include "compiler/analysis/ArenaOffsets.h"
#include "compiler/analysis/DescribeLocation.h"
#include "compiler/passes/exec/Liveness.h"
#include "dialects/exec/Exec.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace dtc;

static constexpr size_t kMostTensors = 5;

static std::string describe(exec::BufferOp buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  std::string text;
  llvm::raw_string_ostream os(text);
  os << name(buffer.getKind()) << " " << type.getElementType() << "[";
  llvm::interleaveComma(type.getShape(), os);
  os << "] of " << describeLocation(buffer.getLoc());
  if (int64_t slots = buffer.getSlots().value_or(0); slots > 1)
    os << ", for " << slots << " microbatches"
       << (buffer.getSlotMap() ? " of all stages of the device" : "");
  return text;
}

MemoryPeak dtc::findPeak(ModuleOp module) {
  exec::ProgramOp largest;
  int64_t coordinate = 0, count = 0;
  llvm::DenseMap<StringAttr, int64_t> counts; // by entry point
  for (auto program : module.getOps<exec::ProgramOp>()) {
    count = counts[program.getEntryAttr()]++;
    if (!largest || *program.getArenaBytes() > *largest.getArenaBytes()) {
      largest = program;
      coordinate = count;
    }
  }
  ++count;
  Liveness liveness(largest);
  auto liveRanges = liveness.compute();
  std::vector<LiveRange> list;
  auto isOfDevice = [](Operation *buffer) { return !exec::isOnHost(buffer->getResult(0)); };
  for (auto &[buffer, liveRange] : liveRanges)
    if (isOfDevice(buffer))
      list.push_back(liveRange);
  int at = assignOffsets(list).peak;
  MemoryPeak peak{count > 1
                      ? "devices of coordinate " + std::to_string(coordinate) + " on the pipeline"
                      : std::string("each device"),
                  "the end",
                  int64_t(*largest.getArenaBytes()),
                  largest.getLoc(),
                  {}};
  if (Operation *instruction = liveness.instructionAt(at)) {
    peak.where = instruction->getLoc();
    peak.moment = describeLocation(instruction->getLoc()) + ", in the task \"" +
                  cast<exec::TaskOp>(instruction->getParentOp()).getSymName().str() + "\"";
  }
  for (auto &[buffer, liveRange] : liveRanges)
    if (isOfDevice(buffer) && liveRange.first <= at && at <= liveRange.last)
      peak.largest.push_back(
          {describe(cast<exec::BufferOp>(buffer)), liveRange.bytes, buffer->getLoc()});
  llvm::stable_sort(peak.largest, [](const MemoryPeak::Tensor &a, const MemoryPeak::Tensor &b) {
    return a.bytes > b.bytes;
  });
  if (peak.largest.size() > kMostTensors)
    peak.largest.erase(peak.largest.begin() + kMostTensors, peak.largest.end());
  return peak;
}
