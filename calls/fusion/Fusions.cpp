//===- Fusions.cpp - Calls that one kernel computes on a GPU --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/fusion/Fusions.h"

#include <algorithm>

namespace dtc {

namespace {

using Names = std::vector<std::string_view>;

/// A kind of fusion: at least one of its calls is of a kernel in `main`, all others are of those or
/// of kernels in `others`.
struct Kind {
  Names main, others;
  std::optional<Fusion> (*match)(const FusedCalls &);
};

template <auto match> std::optional<Fusion> as(const FusedCalls &calls) {
  auto found = match(calls);
  return found ? std::optional<Fusion>(std::move(*found)) : std::nullopt;
}

bool has(const Names &names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

const std::vector<Kind> &kinds() {
  static const std::vector<Kind> all = {
      {{"einsum", "scaled_product"},
       {"slice", "add", "gelu", "gelu_grad", "accumulate", "reduce"},
       as<matchProduct>},
      {{"layer_norm_grad", "rms_norm_grad"}, {"add", "reduce"}, as<matchAddedGradient>},
      {{"embedding_grad"}, {"add"}, as<matchAddedGradient>},
      {{"layer_norm", "rms_norm"}, {"largest_magnitude"}, as<matchNormAndLargest>},
      {{"cross_entropy_grad"}, {"cross_entropy", "broadcast"}, as<matchLossAndGrad>},
      {{"mul"},
       {"silu", "silu_grad", "gelu", "gelu_grad", "largest_magnitude"},
       as<matchGatedActivation>},
      {{"adamw", "adam", "sgd", "lion"}, {"convert"}, as<matchConvertedUpdate>}};
  return all;
}

bool mayBe(const Kind &kind, const Names &kernels) {
  return std::ranges::any_of(kernels, [&](auto name) { return has(kind.main, name); }) &&
         std::ranges::all_of(
             kernels, [&](auto name) { return has(kind.main, name) || has(kind.others, name); });
}

} // namespace

std::optional<Fusion> findFusion(const FusedCalls &calls) {
  Names kernels;
  for (const FusedCalls::Call &call : calls.calls)
    kernels.push_back(call.signature.kernel);
  for (const Kind &kind : kinds())
    if (mayBe(kind, kernels))
      if (std::optional<Fusion> fusion = kind.match(calls))
        return fusion;
  return std::nullopt;
}

bool mayHaveFusion(const std::vector<std::string_view> &kernels) {
  return std::ranges::any_of(kinds(), [&](const Kind &kind) { return mayBe(kind, kernels); });
}

} // namespace dtc
