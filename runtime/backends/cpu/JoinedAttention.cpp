//===- JoinedAttention.cpp - Attention to parts of one tensor -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The kernels of attention, with queries, keys and values and their gradients where they lie.
//
//===----------------------------------------------------------------------===//

#include "calls/JoinedAttention.h"
#include "runtime/backends/cpu/AttentionShape.h"

#include <algorithm>
#include <array>
#include <span>

namespace dtc::runtime::cpu {

namespace {

class JoinedAttentionKernel final : public CpuKernel {
public:
  JoinedAttentionKernel(const PlacedAttention &call, std::unique_ptr<CpuKernel> apart)
      : isGradient(call.isGradient), apart(std::move(apart)) {
    for (size_t i = 0; i < offsets.size(); ++i)
      offsets[i] = static_cast<size_t>(call.joined->offsets[i]) * byteWidth(call.call.dtype);
  }

  size_t workspaceBytesFor(int threads) const override { return apart->workspaceBytesFor(threads); }

  void run(const CpuArguments &args) const override {
    std::array<void *, kMostInputs> inputs{};
    placeParts(args.inputs[0], inputs);
    std::copy(args.inputs.begin() + 1, args.inputs.end(), inputs.begin() + offsets.size());
    std::array<void *, 3> gradients{};
    CpuArguments placed = args;
    placed.inputs = std::span(inputs).first(args.inputs.size() + offsets.size() - 1);
    if (isGradient) {
      placeParts(args.outputs[0], gradients);
      placed.outputs = gradients;
    }
    apart->run(placed);
  }

private:
  static constexpr size_t kMostInputs = 8;

  /// The addresses of the three parts of a joint tensor.
  void placeParts(void *joined, std::span<void *> parts) const {
    for (size_t i = 0; i < offsets.size(); ++i)
      parts[i] = static_cast<std::byte *>(joined) + offsets[i];
  }

  bool isGradient;
  std::unique_ptr<CpuKernel> apart;
  std::array<size_t, 3> offsets{}; // bytes
};

PrepareResult prepareJoined(const PlacedAttention &placed) {
  AttentionCall call = placed.call;
  call.shape.joinedHeads = placed.joined->count;
  std::unique_ptr<CpuKernel> apart =
      placed.isGradient ? makeAttentionGrad(std::move(call)) : makeAttention(std::move(call));
  return PrepareResult(std::make_unique<JoinedAttentionKernel>(placed, std::move(apart)));
}

} // namespace

std::span<const KernelEntry> joinedAttentionKernels() {
  static constexpr KernelEntry entries[] = {
      {"joined_attention", prepareBy<checkPlacedAttention, prepareJoined>},
      {"joined_attention_grad", prepareBy<checkPlacedAttention, prepareJoined>},
  };
  return entries;
}

} // namespace dtc::runtime::cpu
