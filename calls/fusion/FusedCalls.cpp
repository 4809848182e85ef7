//===- FusedCalls.cpp - Kernel calls that one kernel may compute ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/fusion/FusedCalls.h"

#include "plan/KernelTable.h"

namespace dtc {

int64_t bytesOf(const FusedCalls &calls) {
  struct Traffic {
    int64_t size = 0, whole = 0, parts = 0;
    bool isRead = false;
  };
  std::vector<Traffic> traffic(calls.values.size());
  for (const FusedCalls::Call &call : calls.calls) {
    bool readsPart = findKernel(call.signature.kernel).traffic == KernelTraffic::Rows;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      Traffic &value = traffic[call.inputs[i]];
      value.isRead = true;
      auto size = static_cast<int64_t>(call.signature.inputs[i].numBytes());
      value.size = std::max(value.size, size);
      if (i == 0 && readsPart)
        value.parts += static_cast<int64_t>(call.signature.outputs[0].numBytes());
      else
        value.whole = std::max(value.whole, size);
    }
    for (size_t i = 0; i < call.outputs.size(); ++i)
      traffic[call.outputs[i]].size = static_cast<int64_t>(call.signature.outputs[i].numBytes());
  }
  int64_t bytes = 0;
  for (size_t i = 0; i < traffic.size(); ++i) {
    const Traffic &value = traffic[i];
    if (!calls.values[i].maker)
      bytes += std::min(value.size, value.whole + value.parts);
    else if (calls.values[i].isKept || !value.isRead)
      bytes += value.size;
  }
  return bytes;
}

} // namespace dtc
