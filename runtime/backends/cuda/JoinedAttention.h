//===- JoinedAttention.h - Operands in parts of one tensor ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_JOINEDATTENTION_H
#define DTC_RUNTIME_BACKENDS_CUDA_JOINEDATTENTION_H

#include "calls/JoinedAttention.h"
#include "runtime/backends/Kernel.h"

#include <array>
#include <cstddef>
#include <vector>

namespace dtc::runtime::cuda {

/// The arguments of a call of attention with queries, keys and values apart, which may lie in one
/// tensor: the result begins with three addresses in it.
class ApartArguments {
public:
  ApartArguments(const PlacedAttention &placed, const KernelArguments &args) : result(args) {
    if (!placed.joined)
      return;
    inputs = split(placed, args.inputs[0]);
    inputs.insert(inputs.end(), args.inputs.begin() + 1, args.inputs.end());
    result.inputs = inputs;
    if (!placed.isGradient)
      return;
    outputs = split(placed, args.outputs[0]);
    result.outputs = outputs;
  }
  ApartArguments(const ApartArguments &) = delete;
  ApartArguments &operator=(const ApartArguments &) = delete;

  const KernelArguments &get() const { return result; }

private:
  static std::vector<void *> split(const PlacedAttention &placed, void *joined) {
    std::vector<void *> parts;
    auto width = static_cast<int64_t>(byteWidth(placed.call.dtype));
    for (int64_t offset : placed.joined->offsets)
      parts.push_back(static_cast<std::byte *>(joined) + offset * width);
    return parts;
  }

  std::vector<void *> inputs, outputs;
  KernelArguments result;
};

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_JOINEDATTENTION_H
