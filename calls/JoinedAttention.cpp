//===- JoinedAttention.cpp - Calls of attention to parts of one tensor ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/JoinedAttention.h"

#include "calls/SignatureChecker.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc {

static bool isJoined(const KernelSignature &signature) {
  return signature.kernel == "joined_attention" || signature.kernel == "joined_attention_grad";
}

bool isAttention(const KernelSignature &signature) {
  return isJoined(signature) || signature.kernel == "attention" ||
         signature.kernel == "attention_grad";
}

/// Checks the heads of the joint tensor against those of the queries, which `out` has.
static JoinedHeads checkHeads(SignatureChecker &check, const TensorType &all,
                              const TensorType &out) {
  int64_t heads = out.shape[2], others = all.shape[2] - heads, size = all.shape[3];
  if (heads < 1 || others < 2 || others % 2 != 0)
    check.fail(fmt::format("input 0 is {}, expected rows of the {} heads of the queries, as {} "
                           "has, and after them as many heads of keys as of values",
                           all.str(), heads, out.str()));
  return {{0, heads * size, (heads + others / 2) * size}, all.shape[2]};
}

namespace {
/// `joined_attention` or `joined_attention_grad` as the call of `attention` or `attention_grad` on
/// queries, keys and values apart.
struct JoinedAttention {
  KernelSignature apart;
  JoinedHeads heads;
  bool isGradient = false;
};
} // namespace

/// Checks how the joint tensor is divided, and nothing else of the call.
static Expected<JoinedAttention> splitJoinedAttention(const KernelSignature &signature) {
  bool isGradient = signature.kernel == "joined_attention_grad";
  // Segments and the key of a mask come after these.
  size_t inputs = isGradient ? 4 : 1, most = inputs + 2;
  SignatureChecker check(signature, std::clamp(signature.inputs.size(), inputs, most),
                         isGradient ? 1 : 2);
  const TensorType &all = check.floatInputOfRank(0, 4);
  const TensorType &out = isGradient ? check.floatInputOfRank(1, 4) : check.output(0);
  if (!check.failed() && out.rank() != 4)
    check.fail(fmt::format("output 0 is {}, expected rank 4", out.str()));
  JoinedHeads heads;
  if (!check.failed())
    heads = checkHeads(check, all, out);
  if (isGradient)
    check.expectOutput(0, all);
  if (check.failed())
    return *check.finish();
  JoinedAttention joined{signature, heads, isGradient};
  joined.apart.kernel = isGradient ? "attention_grad" : "attention";
  TensorType q = all, k = all;
  q.shape[2] = out.shape[2];
  k.shape[2] = (all.shape[2] - out.shape[2]) / 2;
  std::vector<TensorType> &operands = joined.apart.inputs;
  operands.erase(operands.begin());
  operands.insert(operands.begin(), {q, k, k});
  if (isGradient)
    joined.apart.outputs = {q, k, k};
  return joined;
}

Expected<PlacedAttention> checkPlacedAttention(const KernelSignature &signature) {
  auto check = [](const KernelSignature &apart) {
    return apart.kernel == "attention_grad" ? checkAttentionGrad(apart) : checkAttention(apart);
  };
  if (!isJoined(signature)) {
    Expected<AttentionCall> call = check(signature);
    if (!call)
      return call.error();
    return PlacedAttention{std::move(*call), std::nullopt, signature.kernel == "attention_grad"};
  }
  Expected<JoinedAttention> joined = splitJoinedAttention(signature);
  if (!joined)
    return joined.error();
  Expected<AttentionCall> call = check(joined->apart);
  if (!call)
    return call.error().inContext("kernel '" + signature.kernel + "'");
  return PlacedAttention{std::move(*call), joined->heads, joined->isGradient};
}

} // namespace dtc
