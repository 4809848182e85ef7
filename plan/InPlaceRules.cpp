//===- InPlaceRules.cpp - Which operands of a kernel may share memory -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/InPlaceRules.h"

#include <algorithm>

namespace dtc::runtime {

namespace {
struct InPlacePair {
  std::string_view kernel;
  int input;
  int output;
};

// The pairs that docs/kernels.md calls "in place", in its order.
constexpr InPlacePair inPlacePairs[] = {
    {"neg", 0, 0},       {"abs", 0, 0},          {"exp", 0, 0},
    {"log", 0, 0},       {"sqrt", 0, 0},         {"rsqrt", 0, 0},
    {"tanh", 0, 0},      {"sigmoid", 0, 0},      {"relu", 0, 0},
    {"silu", 0, 0},      {"gelu", 0, 0},         {"gelu_grad", 0, 0},
    {"gelu_grad", 1, 0}, {"silu_grad", 0, 0},    {"silu_grad", 1, 0},
    {"add", 0, 0},       {"add", 1, 0},          {"sub", 0, 0},
    {"sub", 1, 0},       {"mul", 0, 0},          {"mul", 1, 0},
    {"div", 0, 0},       {"div", 1, 0},          {"maximum", 0, 0},
    {"maximum", 1, 0},   {"minimum", 0, 0},      {"minimum", 1, 0},
    {"select", 1, 0},    {"select", 2, 0},       {"mask_padding", 0, 0},
    {"softmax", 0, 0},   {"softmax_grad", 1, 0}, {"dropout", 0, 0},
    {"rotary", 0, 0},    {"cache_update", 0, 0}, {"cross_entropy_grad", 0, 0},
    {"adamw", 0, 0},     {"adamw", 2, 1},        {"adamw", 3, 2},
    {"adam", 0, 0},      {"adam", 2, 1},         {"adam", 3, 2},
    {"sgd", 0, 0},       {"sgd", 2, 1},          {"lion", 0, 0},
    {"lion", 2, 1}};
} // namespace

bool mayRunInPlace(std::string_view kernel, int input, int output) {
  return std::any_of(std::begin(inPlacePairs), std::end(inPlacePairs),
                     [&](const InPlacePair &pair) {
                       return pair.kernel == kernel && pair.input == input && pair.output == output;
                     });
}

bool readsOwnOutput(std::string_view kernel) { return kernel == "accumulate"; }

} // namespace dtc::runtime
