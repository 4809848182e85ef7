//===- JoinedAttention.cpp - Attention to parts of one tensor -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Queries, keys and values are copied from the joint tensor to the workspace, and their gradients
// from there to its gradient.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/JoinedAttention.h"

#include "calls/JoinedAttention.h"
#include "runtime/backends/cpu/StridedCopy.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace dtc::runtime::cpu {

namespace {

/// A part of the joint tensor and its copy.
struct JoinedPart {
  int64_t offset = 0;      // bytes in the joint tensor
  size_t workspace = 0;    // where the copy begins
  StridedCopy split, join; // to the copy, and from it
};

class JoinedAttentionKernel final : public CpuKernel {
public:
  JoinedAttentionKernel(const JoinedAttention &call, std::unique_ptr<CpuKernel> apart)
      : isGradient(call.isGradient), apart(std::move(apart)) {
    for (size_t i = 0; i < call.heads.offsets.size(); ++i) {
      TensorType type = call.apart.inputs[i];
      int64_t size = type.shape[3], row = call.heads.count * size;
      int64_t width = static_cast<int64_t>(byteWidth(type.dtype));
      std::vector<int64_t> inJoint = {type.shape[1] * row, row, size, 1};
      std::vector<int64_t> dense = denseStrides(type.shape);
      parts.push_back({call.heads.offsets[i] * width, ownBytes,
                       StridedCopy(type.shape, dense, inJoint),
                       StridedCopy(type.shape, inJoint, dense)});
      ownBytes += (type.numBytes() + kAlignment - 1) / kAlignment * kAlignment;
      elementBytes = static_cast<size_t>(width);
    }
  }

  size_t workspaceBytesFor(int threads) const override {
    return ownBytes * (isGradient ? 2 : 1) + apart->workspaceBytesFor(threads);
  }

  void run(const CpuArguments &args) const override {
    auto *copies = static_cast<std::byte *>(args.workspace);
    std::array<void *, kMostInputs> inputs{};
    std::array<void *, 3> gradients{};
    for (size_t i = 0; i < parts.size(); ++i) {
      inputs[i] = copies + parts[i].workspace;
      gradients[i] = copies + ownBytes + parts[i].workspace;
      copy(parts[i].split, inputs[i], partOf(args.inputs[0], i), args.threads);
    }
    std::copy(args.inputs.begin() + 1, args.inputs.end(), inputs.begin() + parts.size());
    CpuArguments split = args;
    split.inputs = std::span(inputs).first(args.inputs.size() + parts.size() - 1);
    split.workspace = copies + ownBytes * (isGradient ? 2 : 1);
    if (isGradient)
      split.outputs = gradients;
    apart->run(split);
    for (size_t i = 0; isGradient && i < parts.size(); ++i)
      copy(parts[i].join, partOf(args.outputs[0], i), gradients[i], args.threads);
  }

private:
  static constexpr size_t kAlignment = 64, kMostInputs = 8;

  std::byte *partOf(void *joined, size_t part) const {
    return static_cast<std::byte *>(joined) + parts[part].offset;
  }

  void copy(const StridedCopy &copied, void *to, const void *from, int threads) const {
    if (elementBytes == 2)
      copied.run(static_cast<uint16_t *>(to), static_cast<const uint16_t *>(from), threads);
    else if (elementBytes == 4)
      copied.run(static_cast<uint32_t *>(to), static_cast<const uint32_t *>(from), threads);
    else
      copied.run(static_cast<uint64_t *>(to), static_cast<const uint64_t *>(from), threads);
  }

  bool isGradient;
  std::unique_ptr<CpuKernel> apart;
  std::vector<JoinedPart> parts;
  size_t ownBytes = 0; // of the copies
  size_t elementBytes = 0;
};

/// Prepares the call apart by the kernel of that name.
PrepareResult prepareApart(const KernelSignature &signature) {
  for (const KernelEntry &entry : attentionKernels())
    if (entry.name == signature.kernel)
      return entry.prepare(signature);
  return Error{"there is no kernel '" + signature.kernel + "'"};
}

PrepareResult prepareJoined(const KernelSignature &signature) {
  Expected<JoinedAttention> joined = splitJoinedAttention(signature);
  if (!joined)
    return joined.error();
  PrepareResult apart = prepareApart(joined->apart);
  if (!apart)
    return apart.error().inContext("kernel '" + signature.kernel + "'");
  return PrepareResult(std::make_unique<JoinedAttentionKernel>(*joined, std::move(*apart)));
}

} // namespace

std::span<const KernelEntry> joinedAttentionKernels() {
  static constexpr KernelEntry entries[] = {
      {"joined_attention", prepareJoined},
      {"joined_attention_grad", prepareJoined},
  };
  return entries;
}

} // namespace dtc::runtime::cpu
