//===- GatedActivation.cpp - An activation function and a gate ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/fusion/GatedActivation.h"

#include <algorithm>
#include <utility>

namespace dtc {

namespace {

class GatedActivationMatcher {
public:
  explicit GatedActivationMatcher(const FusedCalls &calls) : calls(calls) {}

  std::optional<GatedActivation> match() {
    for (const FusedCalls::Call &call : calls.calls) {
      const std::string &kernel = call.signature.kernel;
      bool isGradient = kernel == "silu_grad" || kernel == "gelu_grad";
      if (kernel == "largest_magnitude")
        largest.push_back(&call);
      else if (kernel == "mul" && isPlain(call) && products.size() < 2)
        products.push_back(&call);
      else if ((isGradient || kernel == "silu" || kernel == "gelu") && !result.activation)
        result.activation = &call, result.isGradient = isGradient;
      else
        return std::nullopt;
    }
    bool isForward = result.activation && !result.isGradient;
    if (calls.calls.size() < 2 || !(isForward ? matchForward() : matchBackward()) ||
        !std::ranges::all_of(calls.overlaps, &FusedCalls::Overlap::isSame) ||
        !std::ranges::all_of(largest, [&](const auto *call) { return matchLargest(*call); }))
      return std::nullopt;
    return result;
  }

private:
  /// A product of two tensors of one type.
  static bool isPlain(const FusedCalls::Call &call) {
    const KernelSignature &signature = call.signature;
    return signature.attributes.empty() && signature.inputs[0] == signature.inputs[1] &&
           isFloat(signature.inputs[0].dtype);
  }
  bool isBefore(size_t value) const { return !calls.values[value].maker; }
  std::optional<size_t> ifKept(size_t value) const {
    return calls.values[value].isKept ? std::optional(value) : std::nullopt;
  }
  /// The other operand of a product; none where both are `one`, or neither.
  static std::optional<size_t> other(const FusedCalls::Call &product, size_t one) {
    bool isFirst = product.inputs[0] == one, isSecond = product.inputs[1] == one;
    return isFirst == isSecond ? std::nullopt : std::optional(product.inputs[isFirst ? 1 : 0]);
  }

  bool matchForward() {
    if (products.size() != 1)
      return false;
    size_t act = result.activation->outputs[0];
    result.x = result.activation->inputs[0];
    result.gate = other(*products[0], act);
    result.act = ifKept(act);
    result.out = products[0]->outputs[0];
    return result.gate && isBefore(*result.gate);
  }

  /// Both products, or one of them and the gradient of the activation, or all.
  bool matchBackward() {
    if (result.activation) {
      result.x = result.activation->inputs[0];
      // The first is the one whose result the gradient reads.
      size_t dact = result.activation->inputs[1];
      if (products.size() == 2 && products[1]->outputs[0] == dact)
        std::swap(products[0], products[1]);
      if (products.empty() || products[0]->outputs[0] != dact || !isBefore(*result.x))
        return false;
      result.dx = result.activation->outputs[0];
    }
    const FusedCalls::Call &first = *products[0];
    result.dout = first.inputs[0];
    if (products.size() == 2) {
      const FusedCalls::Call &second = *products[1];
      if (std::ranges::find(second.inputs, *result.dout) == second.inputs.end())
        result.dout = first.inputs[1];
      result.act = other(second, *result.dout);
      result.dgate = ifKept(second.outputs[0]);
      if (!result.act || !isBefore(*result.act) ||
          second.signature.inputs[0] != first.signature.inputs[0])
        return false;
    }
    result.gate = other(first, *result.dout);
    result.dact = ifKept(first.outputs[0]);
    return result.gate && isBefore(*result.dout) && isBefore(*result.gate);
  }

  /// Of one of the results, each once.
  bool matchLargest(const FusedCalls::Call &call) {
    size_t made = call.outputs[0];
    auto overlapsIt = [&](const FusedCalls::Overlap &each) { return each.made == made; };
    if (std::ranges::any_of(calls.overlaps, overlapsIt))
      return false;
    for (auto [of, to] :
         {std::pair(result.dgate, &result.largestDgate), std::pair(result.dx, &result.largestDx),
          std::pair(result.out, &result.largestOut)})
      if (of == call.inputs[0] && !*to) {
        *to = made;
        return true;
      }
    return false;
  }

  const FusedCalls &calls;
  GatedActivation result;
  std::vector<const FusedCalls::Call *> products, largest;
};

} // namespace

std::optional<GatedActivation> matchGatedActivation(const FusedCalls &calls) {
  return GatedActivationMatcher(calls).match();
}

} // namespace dtc
