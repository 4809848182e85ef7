//===- KernelTable.cpp - Operands and attributes of each kernel -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/KernelTable.h"

#include "plan/plan.pb.h"
#include "support/NearestName.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace dtc {

using enum AttributeKind;

static constexpr KernelAttribute kAdam[] = {
    {"beta1", Float}, {"beta2", Float}, {"eps", Float}, {"weight_decay", Float}};
static constexpr KernelAttribute kApproximate[] = {{"approximate", String}};
static constexpr KernelAttribute kAttention[] = {
    {"causal", Bool},         {"scale", Float},
    {"window", Int, true},    {"softcap", Float, true},
    {"dropout", Float, true}, {"op", Int, true},
    {"shape", Ints, true},    {"sharding", Strings, true},
    {"key_shift", Int, true}, {"zigzag", Int, true},
    {"sequence", Int, true},  {"sequence_axes", Strings, true}};
static constexpr KernelAttribute kAxis[] = {{"axis", String}};
static constexpr KernelAttribute kBlock[] = {{"axes", Strings}, {"size", Int}};
static constexpr KernelAttribute kBlockOfDim[] = {{"dim", Int}, {"axes", Strings}};
static constexpr KernelAttribute kBroadcasts[] = {{"lhs_dims", Ints, true},
                                                  {"rhs_dims", Ints, true}};
static constexpr KernelAttribute kConv[] = {
    {"strides", Ints}, {"padding", Ints}, {"dilations", Ints}};
static constexpr KernelAttribute kData[] = {{"data", Data}};
static constexpr KernelAttribute kCachedAttention[] = {
    {"scale", Float}, {"window", Int, true}, {"softcap", Float, true}};
static constexpr KernelAttribute kDim[] = {{"dim", Int}};
static constexpr KernelAttribute kDims[] = {{"dims", Ints}};
static constexpr KernelAttribute kEps[] = {{"eps", Float}};
static constexpr KernelAttribute kEquation[] = {{"equation", String}};
static constexpr KernelAttribute kLion[] = {
    {"beta1", Float}, {"beta2", Float}, {"weight_decay", Float}};
static constexpr KernelAttribute kMask[] = {
    {"rate", Float}, {"op", Int}, {"shape", Ints}, {"sharding", Strings}};
static constexpr KernelAttribute kOffsets[] = {{"offsets", Ints}};
static constexpr KernelAttribute kOfElements[] = {
    {"op", Int}, {"shape", Ints}, {"sharding", Strings}};
static constexpr KernelAttribute kPad[] = {{"low", Ints}, {"value", Float}};
static constexpr KernelAttribute kPadding[] = {
    {"dim", Int}, {"axes", Strings}, {"size", Int}, {"value", String}};
static constexpr KernelAttribute kPermutation[] = {{"permutation", Ints}};
static constexpr KernelAttribute kPool[] = {
    {"window", Ints}, {"strides", Ints}, {"padding", Ints}, {"dilations", Ints}};
static constexpr KernelAttribute kPredicate[] = {{"predicate", String}};
static constexpr KernelAttribute kReduction[] = {{"kind", String}, {"dims", Ints}};
static constexpr KernelAttribute kRotary[] = {
    {"theta", Float, true},          {"frequencies", Data, true},
    {"factor", Float, true},         {"inverse", Bool},
    {"zigzag", Int, true},           {"sequence", Int, true},
    {"sequence_axes", Strings, true}};
static constexpr KernelAttribute kQuantizedBlocks[] = {
    {"bits", Int}, {"block", Int}, {"dim", Int}, {"parts", Int}};
static constexpr KernelAttribute kScaleOrOne[] = {{"scale", Float, true}};
static constexpr KernelAttribute kSgd[] = {{"momentum", Float}, {"weight_decay", Float}};
static constexpr KernelAttribute kSmoothing[] = {{"label_smoothing", Float, true}};
static constexpr KernelAttribute kSmoothingOfClasses[] = {{"label_smoothing", Float, true},
                                                          {"classes", Int, true}};
static constexpr KernelAttribute kSoftmax[] = {{"causal", Bool, true}, {"scale", Float, true}};
static constexpr KernelAttribute kTopK[] = {{"k", Int}};
static constexpr KernelAttribute kValue[] = {{"value", Float}};
static constexpr KernelAttribute kZigzag[] = {{"dim", Int}, {"parts", Int}, {"inverse", Bool}};

/// The number of inputs of a kernel that takes any number.
static constexpr int kAnyNumber = std::numeric_limits<int>::max();

static constexpr InPlacePair kFirst[] = {{0, 0}};
static constexpr InPlacePair kSecond[] = {{1, 0}};
static constexpr InPlacePair kEither[] = {{0, 0}, {1, 0}};
static constexpr InPlacePair kSecondOrFirst[] = {{1, 0}, {0, 0}};
static constexpr InPlacePair kChoices[] = {{1, 0}, {2, 0}};
// An optimizer's operands are parameter, gradient and moments, its results parameter and moments.
static constexpr InPlacePair kOneMoment[] = {{0, 0}, {2, 1}};
static constexpr InPlacePair kTwoMoments[] = {{0, 0}, {2, 1}, {3, 2}};

static constexpr KernelInfo kKernels[] = {
    {.name = "abs", .isPointwise = true, .keepsZeros = true, .inPlace = kFirst},
    {.name = "accumulate",
     .attributes = kAxis,
     .traffic = KernelTraffic::Accumulate,
     .isPointwise = true,
     .isEpilogue = true},
    {.name = "adam",
     .inputs = {8, 8},
     .outputs = 3,
     .attributes = kAdam,
     .kernelClass = KernelClass::Optimizer,
     .inPlace = kTwoMoments},
    {.name = "adamw",
     .inputs = {8, 8},
     .outputs = 3,
     .attributes = kAdam,
     .kernelClass = KernelClass::Optimizer,
     .inPlace = kTwoMoments},
    {.name = "add",
     .inputs = {2, 2},
     .attributes = kBroadcasts,
     .isPointwise = true,
     .keepsZeros = true,
     .inPlace = kEither},
    {.name = "attention",
     .inputs = {3, 5},
     .outputs = 2,
     .attributes = kAttention,
     .kernelClass = KernelClass::Attention,
     .drawsMask = true},
    {.name = "attention_grad",
     .inputs = {6, 8},
     .outputs = 3,
     .attributes = kAttention,
     .kernelClass = KernelClass::Attention,
     .drawsMask = true},
    {.name = "broadcast", .attributes = kDims, .isPointwise = true},
    {.name = "cache_update", .inputs = {3, 3}, .traffic = KernelTraffic::Cache, .inPlace = kFirst},
    {.name = "cached_attention",
     .inputs = {4, 5},
     .attributes = kCachedAttention,
     .kernelClass = KernelClass::Attention},
    {.name = "compare", .inputs = {2, 2}, .attributes = kPredicate, .isPointwise = true},
    {.name = "concat", .inputs = {1, kAnyNumber}, .attributes = kDim},
    {.name = "constant", .inputs = {0, 0}, .attributes = kData},
    {.name = "conv", .inputs = {2, 2}, .attributes = kConv, .kernelClass = KernelClass::Product},
    {.name = "conv_input_grad",
     .inputs = {2, 2},
     .attributes = kConv,
     .kernelClass = KernelClass::Product},
    {.name = "conv_weight_grad",
     .inputs = {2, 2},
     .attributes = kConv,
     .kernelClass = KernelClass::Product},
    {.name = "convert", .isPointwise = true, .keepsZeros = true, .isEpilogue = true},
    {.name = "copy"},
    {.name = "cross_entropy", .inputs = {2, 2}, .outputs = 2, .attributes = kSmoothing},
    {.name = "cross_entropy_grad",
     .inputs = {4, 4},
     .attributes = kSmoothingOfClasses,
     .inPlace = kFirst},
    {.name = "dequantize_blocks", .attributes = kQuantizedBlocks},
    {.name = "div",
     .inputs = {2, 2},
     .attributes = kBroadcasts,
     .isPointwise = true,
     .inPlace = kEither},
    {.name = "dropout",
     .inputs = {2, 2},
     .attributes = kMask,
     .isPointwise = true,
     .drawsMask = true,
     .inPlace = kFirst},
    {.name = "einsum",
     .inputs = {2, 2},
     .attributes = kEquation,
     .kernelClass = KernelClass::Product},
    {.name = "embedding", .inputs = {2, 2}, .traffic = KernelTraffic::Rows},
    {.name = "embedding_grad", .inputs = {2, 2}},
    {.name = "exp", .isPointwise = true, .inPlace = kFirst},
    {.name = "fill", .inputs = {0, 0}, .attributes = kValue, .isPointwise = true},
    {.name = "gelu",
     .attributes = kApproximate,
     .isPointwise = true,
     .keepsZeros = true,
     .inPlace = kFirst},
    {.name = "gelu_grad",
     .inputs = {2, 2},
     .attributes = kApproximate,
     .isPointwise = true,
     .keepsZeros = true,
     .inPlace = kSecondOrFirst},
    {.name = "grouped_product",
     .inputs = {3, 3},
     .attributes = kEquation,
     .kernelClass = KernelClass::Product},
    {.name = "joined_attention",
     .inputs = {1, 3},
     .outputs = 2,
     .attributes = kAttention,
     .kernelClass = KernelClass::Attention,
     .drawsMask = true},
    {.name = "joined_attention_grad",
     .inputs = {4, 6},
     .attributes = kAttention,
     .kernelClass = KernelClass::Attention,
     .drawsMask = true},
    {.name = "largest_magnitude"},
    {.name = "layer_norm", .inputs = {3, 3}, .outputs = 3, .attributes = kEps},
    {.name = "layer_norm_grad", .inputs = {5, 5}, .outputs = 3},
    {.name = "lion",
     .inputs = {6, 6},
     .outputs = 2,
     .attributes = kLion,
     .kernelClass = KernelClass::Optimizer,
     .inPlace = kOneMoment},
    {.name = "log", .isPointwise = true, .inPlace = kFirst},
    {.name = "mask_padding", .attributes = kPadding, .isPointwise = true, .inPlace = kFirst},
    {.name = "max_pool", .attributes = kPool},
    {.name = "max_pool_grad", .inputs = {2, 2}, .attributes = kPool},
    {.name = "maximum",
     .inputs = {2, 2},
     .attributes = kBroadcasts,
     .isPointwise = true,
     .keepsZeros = true,
     .inPlace = kEither},
    {.name = "merge_attention", .inputs = {4, 4}, .outputs = 2, .inPlace = kFirst},
    {.name = "minimum",
     .inputs = {2, 2},
     .attributes = kBroadcasts,
     .isPointwise = true,
     .keepsZeros = true,
     .inPlace = kEither},
    {.name = "mul",
     .inputs = {2, 2},
     .attributes = kBroadcasts,
     .isPointwise = true,
     .keepsZeros = true,
     .inPlace = kEither},
    {.name = "neg", .isPointwise = true, .inPlace = kFirst},
    {.name = "nonzero"},
    {.name = "pad", .attributes = kPad},
    {.name = "pick", .inputs = {2, 2}, .traffic = KernelTraffic::Rows},
    {.name = "pick_grad", .inputs = {2, 2}},
    {.name = "quantize_blocks", .inputs = {1, 2}, .attributes = kQuantizedBlocks},
    {.name = "quantize_f8", .inputs = {2, 2}, .outputs = 2},
    {.name = "random_uniform", .attributes = kOfElements},
    {.name = "reduce", .attributes = kReduction},
    {.name = "relu", .isPointwise = true, .keepsZeros = true, .inPlace = kFirst},
    {.name = "rms_norm", .inputs = {2, 2}, .outputs = 2, .attributes = kEps},
    {.name = "rms_norm_grad", .inputs = {4, 4}, .outputs = 2},
    {.name = "rotary", .inputs = {1, 2}, .attributes = kRotary, .inPlace = kFirst},
    {.name = "rsqrt", .isPointwise = true, .inPlace = kFirst},
    {.name = "scaled_product",
     .inputs = {4, 4},
     .attributes = kEquation,
     .kernelClass = KernelClass::Product},
    {.name = "select", .inputs = {3, 3}, .isPointwise = true, .inPlace = kChoices},
    {.name = "select_row", .inputs = {2, 2}, .traffic = KernelTraffic::Rows},
    {.name = "sgd",
     .inputs = {6, 6},
     .outputs = 2,
     .attributes = kSgd,
     .kernelClass = KernelClass::Optimizer,
     .inPlace = kOneMoment},
    {.name = "shard_offset", .inputs = {0, 0}, .attributes = kBlock},
    {.name = "shard_slice", .attributes = kBlockOfDim, .traffic = KernelTraffic::Rows},
    {.name = "sigmoid", .isPointwise = true, .inPlace = kFirst},
    {.name = "silu", .isPointwise = true, .keepsZeros = true, .inPlace = kFirst},
    {.name = "silu_grad",
     .inputs = {2, 2},
     .isPointwise = true,
     .keepsZeros = true,
     .inPlace = kSecondOrFirst},
    {.name = "slice", .attributes = kOffsets, .traffic = KernelTraffic::Rows},
    {.name = "softmax", .attributes = kSoftmax, .inPlace = kFirst},
    {.name = "softmax_grad", .inputs = {2, 2}, .attributes = kScaleOrOne, .inPlace = kSecond},
    {.name = "softplus", .isPointwise = true, .inPlace = kFirst},
    {.name = "sqrt", .isPointwise = true, .keepsZeros = true, .inPlace = kFirst},
    {.name = "sub",
     .inputs = {2, 2},
     .attributes = kBroadcasts,
     .isPointwise = true,
     .keepsZeros = true,
     .inPlace = kEither},
    {.name = "tanh", .isPointwise = true, .keepsZeros = true, .inPlace = kFirst},
    {.name = "top_k", .attributes = kTopK},
    {.name = "transpose", .attributes = kPermutation},
    {.name = "zigzag", .attributes = kZigzag},
};
static_assert(std::is_sorted(std::begin(kKernels), std::end(kKernels),
                             [](const KernelInfo &a, const KernelInfo &b) {
                               return a.name < b.name;
                             }),
              "findKernel() searches by name");

std::span<const KernelInfo> allKernels() { return kKernels; }

/// The kernels added by addKernel(). A list, so that results of findKernel() stay valid.
static std::list<KernelInfo> &addedKernels() {
  static std::list<KernelInfo> kernels;
  return kernels;
}

const KernelInfo &findKernel(std::string_view name) {
  static constexpr KernelInfo kUnknown;
  const auto *found = std::lower_bound(
      std::begin(kKernels), std::end(kKernels), name,
      [](const KernelInfo &kernel, std::string_view sought) { return kernel.name < sought; });
  if (found != std::end(kKernels) && found->name == name)
    return *found;
  auto added = std::ranges::find(addedKernels(), name, &KernelInfo::name);
  return added != addedKernels().end() ? *added : kUnknown;
}

MaybeError addKernel(const KernelInfo &kernel) {
  if (kernel.name.empty())
    return Error{"a kernel without a name cannot be added"};
  if (!findKernel(kernel.name).name.empty())
    return Error{fmt::format("there is a kernel \"{}\" already; expected another name for one that "
                             "is added",
                             kernel.name)};
  addedKernels().push_back(kernel);
  return std::nullopt;
}

std::string_view name(AttributeKind kind) {
  static constexpr std::string_view kNames[] = {"b", "i", "f", "s", "ints", "strings", "bytes"};
  return kNames[static_cast<size_t>(kind)];
}

/// The kind of an attribute's value; none if it has no value.
static std::optional<AttributeKind> kindOf(const plan::Attribute &attribute) {
  switch (attribute.value_case()) {
  case plan::Attribute::kB:
    return Bool;
  case plan::Attribute::kI:
    return Int;
  case plan::Attribute::kF:
    return Float;
  case plan::Attribute::kS:
    return String;
  case plan::Attribute::kInts:
    return Ints;
  case plan::Attribute::kStrings:
    return Strings;
  case plan::Attribute::kData:
    return Data;
  case plan::Attribute::VALUE_NOT_SET:
    break;
  }
  return std::nullopt;
}

static Error unknownKernel(const std::string &name) {
  std::vector<std::string> names;
  for (const KernelInfo &kernel : kKernels)
    names.emplace_back(kernel.name);
  std::string guess = didYouMean(name, names);
  return Error{fmt::format("there is no kernel \"{}\"{}", name,
                           guess.empty() ? "; docs/kernels.md lists all kernels" : guess)};
}

/// "3", "3 to 4", "1 or more".
static std::string describe(const KernelInputs &inputs) {
  if (inputs.most == inputs.least)
    return fmt::format("{}", inputs.least);
  return inputs.most == kAnyNumber ? fmt::format("{} or more", inputs.least)
                                   : fmt::format("{} to {}", inputs.least, inputs.most);
}

static MaybeError checkAttributes(const KernelInfo &kernel, const plan::KernelCall &call) {
  auto problem = [&](const std::string &text) {
    return Error{fmt::format("kernel \"{}\" {}", kernel.name, text)};
  };
  std::vector<std::string> names;
  for (const KernelAttribute &each : kernel.attributes)
    names.emplace_back(each.name);
  std::set<std::string> unknown; // the map has no order of its own
  for (const auto &[found, value] : call.attributes())
    if (std::ranges::find(names, found) == names.end())
      unknown.insert(found);
  if (!unknown.empty())
    return problem(fmt::format("has the attribute \"{}\", expected {}", *unknown.begin(),
                               names.empty() ? "none" : quoteNames(names)));
  for (const KernelAttribute &attribute : kernel.attributes) {
    auto found = call.attributes().find(std::string(attribute.name));
    if (found == call.attributes().end()) {
      if (!attribute.isOptional)
        return problem(fmt::format("has no attribute \"{}\", expected one of kind {}",
                                   attribute.name, name(attribute.kind)));
      continue;
    }
    std::optional<AttributeKind> kind = kindOf(found->second);
    if (kind != attribute.kind)
      return problem(fmt::format(
          "has the attribute \"{}\" {}, expected one of kind {}", attribute.name,
          kind ? fmt::format("of kind {}", name(*kind)) : "without a value", name(attribute.kind)));
  }
  return std::nullopt;
}

MaybeError checkKernelCall(const plan::KernelCall &call) {
  const KernelInfo &kernel = findKernel(call.kernel());
  if (kernel.name.empty())
    return unknownKernel(call.kernel());
  if (call.inputs_size() < kernel.inputs.least || call.inputs_size() > kernel.inputs.most)
    return Error{fmt::format("kernel \"{}\" has {} inputs, expected {}", kernel.name,
                             call.inputs_size(), describe(kernel.inputs))};
  if (call.outputs_size() != kernel.outputs)
    return Error{fmt::format("kernel \"{}\" has {} outputs, expected {}", kernel.name,
                             call.outputs_size(), kernel.outputs)};
  return checkAttributes(kernel, call);
}

KernelClass classOf(std::string_view kernel) { return findKernel(kernel).kernelClass; }

bool mayRunInPlace(std::string_view kernel, int input, int output) {
  return std::ranges::any_of(findKernel(kernel).inPlace, [&](const InPlacePair &pair) {
    return pair.input == input && pair.output == output;
  });
}

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

bool readsOwnOutput(std::string_view kernel) {
  return findKernel(kernel).traffic == KernelTraffic::Accumulate;
}

} // namespace dtc
