//===- KernelBytes.cpp - What a kernel moves ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/cluster/KernelBytes.h"

#include "plan/KernelTable.h"

namespace dtc::runtime {

static int64_t bytesOf(const TensorType &type) { return static_cast<int64_t>(type.numBytes()); }

int64_t kernelBytes(std::string_view kernel, std::span<const TensorType> inputs,
                    std::span<const TensorType> outputs) {
  int64_t bytes = 0;
  for (std::span<const TensorType> operands : {inputs, outputs})
    for (const TensorType &type : operands)
      bytes += bytesOf(type);
  if (outputs.empty())
    return bytes;
  switch (findKernel(kernel).traffic) {
  case KernelTraffic::Operands:
    break;
  case KernelTraffic::Rows:
    if (!inputs.empty())
      bytes += bytesOf(outputs[0]) - bytesOf(inputs[0]);
    break;
  case KernelTraffic::Accumulate:
    bytes += bytesOf(outputs[0]);
    break;
  case KernelTraffic::Cache:
    if (inputs.size() > 1)
      bytes += bytesOf(inputs[1]) - bytesOf(inputs[0]) - bytesOf(outputs[0]);
    break;
  }
  return bytes;
}

} // namespace dtc::runtime
