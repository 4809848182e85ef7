//===- KernelTable.cpp - What is known of each kernel ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/KernelTable.h"

#include <algorithm>

namespace dtc::runtime {

static constexpr InPlacePair kFirst[] = {{0, 0}};
static constexpr InPlacePair kSecond[] = {{1, 0}};
static constexpr InPlacePair kEither[] = {{0, 0}, {1, 0}};
static constexpr InPlacePair kChoices[] = {{1, 0}, {2, 0}};
// An optimizer's operands are parameter, gradient and moments, its results parameter and moments.
static constexpr InPlacePair kOneMoment[] = {{0, 0}, {2, 1}};
static constexpr InPlacePair kTwoMoments[] = {{0, 0}, {2, 1}, {3, 2}};

static constexpr KernelInfo kKernels[] = {
    {.name = "abs", .isPointwise = true, .inPlace = kFirst},
    {.name = "accumulate",
     .traffic = KernelTraffic::Accumulate,
     .isPointwise = true,
     .isEpilogue = true},
    {.name = "adam", .kernelClass = KernelClass::Optimizer, .inPlace = kTwoMoments},
    {.name = "adamw", .kernelClass = KernelClass::Optimizer, .inPlace = kTwoMoments},
    {.name = "add", .isPointwise = true, .inPlace = kEither},
    {.name = "attention", .kernelClass = KernelClass::Attention, .drawsMask = true},
    {.name = "attention_grad", .kernelClass = KernelClass::Attention, .drawsMask = true},
    {.name = "broadcast", .isPointwise = true},
    {.name = "cache_update", .traffic = KernelTraffic::Cache, .inPlace = kFirst},
    {.name = "cached_attention", .kernelClass = KernelClass::Attention},
    {.name = "compare", .isPointwise = true},
    {.name = "concat"},
    {.name = "constant"},
    {.name = "convert", .isPointwise = true, .isEpilogue = true},
    {.name = "copy"},
    {.name = "cross_entropy"},
    {.name = "cross_entropy_grad", .inPlace = kFirst},
    {.name = "div", .isPointwise = true, .inPlace = kEither},
    {.name = "dropout", .isPointwise = true, .drawsMask = true, .inPlace = kFirst},
    {.name = "einsum", .kernelClass = KernelClass::Product},
    {.name = "embedding", .traffic = KernelTraffic::Rows},
    {.name = "embedding_grad"},
    {.name = "exp", .isPointwise = true, .inPlace = kFirst},
    {.name = "fill", .isPointwise = true},
    {.name = "gelu", .isPointwise = true, .inPlace = kFirst},
    {.name = "gelu_grad", .isPointwise = true, .inPlace = kEither},
    {.name = "layer_norm"},
    {.name = "layer_norm_grad"},
    {.name = "lion", .kernelClass = KernelClass::Optimizer, .inPlace = kOneMoment},
    {.name = "log", .isPointwise = true, .inPlace = kFirst},
    {.name = "mask_padding", .isPointwise = true, .inPlace = kFirst},
    {.name = "maximum", .isPointwise = true, .inPlace = kEither},
    {.name = "minimum", .isPointwise = true, .inPlace = kEither},
    {.name = "mul", .isPointwise = true, .inPlace = kEither},
    {.name = "neg", .isPointwise = true, .inPlace = kFirst},
    {.name = "pad"},
    {.name = "pick", .traffic = KernelTraffic::Rows},
    {.name = "pick_grad"},
    {.name = "reduce"},
    {.name = "relu", .isPointwise = true, .inPlace = kFirst},
    {.name = "rms_norm"},
    {.name = "rms_norm_grad"},
    {.name = "rotary", .inPlace = kFirst},
    {.name = "rsqrt", .isPointwise = true, .inPlace = kFirst},
    {.name = "select", .isPointwise = true, .inPlace = kChoices},
    {.name = "select_row", .traffic = KernelTraffic::Rows},
    {.name = "sgd", .kernelClass = KernelClass::Optimizer, .inPlace = kOneMoment},
    {.name = "shard_offset"},
    {.name = "shard_slice", .traffic = KernelTraffic::Rows},
    {.name = "sigmoid", .isPointwise = true, .inPlace = kFirst},
    {.name = "silu", .isPointwise = true, .inPlace = kFirst},
    {.name = "silu_grad", .isPointwise = true, .inPlace = kEither},
    {.name = "slice", .traffic = KernelTraffic::Rows},
    {.name = "softmax", .inPlace = kFirst},
    {.name = "softmax_grad", .inPlace = kSecond},
    {.name = "sqrt", .isPointwise = true, .inPlace = kFirst},
    {.name = "sub", .isPointwise = true, .inPlace = kEither},
    {.name = "tanh", .isPointwise = true, .inPlace = kFirst},
    {.name = "transpose"},
};
static_assert(std::is_sorted(std::begin(kKernels), std::end(kKernels),
                             [](const KernelInfo &a, const KernelInfo &b) {
                               return a.name < b.name;
                             }),
              "findKernel() searches by name");

std::span<const KernelInfo> allKernels() { return kKernels; }

const KernelInfo &findKernel(std::string_view name) {
  static constexpr KernelInfo kUnknown;
  const auto *found = std::lower_bound(
      std::begin(kKernels), std::end(kKernels), name,
      [](const KernelInfo &kernel, std::string_view sought) { return kernel.name < sought; });
  return found != std::end(kKernels) && found->name == name ? *found : kUnknown;
}

KernelClass classOf(std::string_view kernel) { return findKernel(kernel).kernelClass; }

bool mayRunInPlace(std::string_view kernel, int input, int output) {
  return std::ranges::any_of(findKernel(kernel).inPlace, [&](const InPlacePair &pair) {
    return pair.input == input && pair.output == output;
  });
}

bool readsOwnOutput(std::string_view kernel) {
  return findKernel(kernel).traffic == KernelTraffic::Accumulate;
}

} // namespace dtc::runtime
