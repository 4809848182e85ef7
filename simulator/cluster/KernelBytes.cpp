//===- KernelBytes.cpp - What a kernel moves ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/cluster/KernelBytes.h"

#include <algorithm>
#include <array>

namespace dtc::runtime {

static int64_t bytesOf(const TensorType &type) { return static_cast<int64_t>(type.numBytes()); }

/// Kernels that take some rows of their first operand.
static bool takesRows(std::string_view kernel) {
  constexpr std::array kernels = {"slice", "shard_slice", "select_row", "embedding", "pick"};
  return std::find(kernels.begin(), kernels.end(), kernel) != kernels.end();
}

int64_t kernelBytes(std::string_view kernel, std::span<const TensorType> inputs,
                    std::span<const TensorType> outputs) {
  int64_t bytes = 0;
  for (std::span<const TensorType> operands : {inputs, outputs})
    for (const TensorType &type : operands)
      bytes += bytesOf(type);
  if (takesRows(kernel) && !inputs.empty() && !outputs.empty())
    bytes += bytesOf(outputs[0]) - bytesOf(inputs[0]);
  // A sum reads what it adds to.
  if (kernel == "accumulate" && !outputs.empty())
    bytes += bytesOf(outputs[0]);
  if (kernel == "cache_update" && inputs.size() > 1 && !outputs.empty())
    bytes += bytesOf(inputs[1]) - bytesOf(inputs[0]) - bytesOf(outputs[0]);
  return bytes;
}

} // namespace dtc::runtime
