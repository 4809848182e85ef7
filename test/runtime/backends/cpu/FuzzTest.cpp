//===- FuzzTest.cpp - Fuzz tests of kernel calls --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Every kernel gets calls that are nearly right: a size, a type or an attribute of a valid call is
// replaced by something invalid. Preparing must give an error or a kernel, and a kernel must run on
// random bytes without touching memory that is not its own, which the guards of KernelCall::run and
// the sanitizers watch.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/CpuBackend.h"
#include "test/runtime/backends/conformance/KernelTest.h"

#include <cmath>
#include <limits>
#include <set>

namespace dtc::runtime::test::fuzzTest {
namespace {

using Axes = std::vector<std::string>;

TensorType f32(Shape shape) { return {DType::F32, std::move(shape)}; }
TensorType i32(Shape shape) { return {DType::I32, std::move(shape)}; }
TensorType boolean(Shape shape) { return {DType::Bool, std::move(shape)}; }

/// A valid call of every kernel.
// NOLINTNEXTLINE(readability-function-size): a table
std::vector<KernelSignature> validCalls() {
  TensorType s = f32({}), a = f32({2, 3}), row = f32({3}), rows = f32({2});
  TensorType flag = boolean({});
  std::vector<AxisCoordinate> mesh = {{"dp", 2, 0, false}, {"micro", 3, 0, true}};
  AttributeMap line{{"strides", Shape{1}}, {"padding", Shape{0}}, {"dilations", Shape{1}}};
  AttributeMap conv{{"strides", Shape{2, 1}}, {"padding", Shape{1, 0}}, {"dilations", Shape{1, 1}}};
  AttributeMap pool = conv;
  pool["window"] = Shape{3, 2};
  std::vector<KernelSignature> calls;
  for (const char *kernel : {"neg", "abs", "exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid",
                             "softplus", "relu", "silu", "softmax"})
    calls.push_back({kernel, {a}, {a}, {}, mesh});
  for (const char *kernel : {"silu_grad", "softmax_grad"})
    calls.push_back({kernel, {a, a}, {a}, {}, mesh});
  for (const char *kernel : {"add", "sub", "mul", "div", "maximum", "minimum"})
    calls.push_back(
        {kernel, {a, row}, {a}, {{"lhs_dims", Shape{0, 1}}, {"rhs_dims", Shape{1}}}, mesh});
  std::vector<KernelSignature> others = {
      {"softmax", {a}, {a}, {{"causal", true}, {"scale", 0.5}}, mesh},
      {"softmax_grad", {a, a}, {a}, {{"scale", 0.5}}, mesh},
      {"gelu", {a}, {a}, {{"approximate", "tanh"}}, mesh},
      {"gelu_grad", {a, a}, {a}, {{"approximate", "none"}}, mesh},
      {"compare", {a, a}, {boolean({2, 3})}, {{"predicate", "lt"}}, mesh},
      {"select", {boolean({2, 3}), a, a}, {a}, {}, mesh},
      {"convert", {a}, {i32({2, 3})}, {}, mesh},
      {"fill", {}, {a}, {{"value", 2.0}}, mesh},
      {"constant", {}, {rows}, {{"data", RawBytes{"12345678"}}}, mesh},
      {"copy", {a}, {f32({3, 2})}, {}, mesh},
      {"broadcast", {row}, {a}, {{"dims", Shape{1}}}, mesh},
      {"transpose", {f32({2, 3, 4})}, {f32({4, 2, 3})}, {{"permutation", Shape{2, 0, 1}}}, mesh},
      {"slice", {f32({4, 5})}, {a}, {{"offsets", Shape{1, 2}}}, mesh},
      {"pad", {a}, {f32({4, 5})}, {{"low", Shape{1, 2}}, {"value", 0.0}}, mesh},
      {"concat", {a, f32({2, 2})}, {f32({2, 5})}, {{"dim", int64_t{1}}}, mesh},
      {"zigzag",
       {f32({2, 8})},
       {f32({2, 8})},
       {{"dim", int64_t{1}}, {"parts", int64_t{2}}, {"inverse", false}},
       mesh},
      {"reduce", {f32({2, 3, 4})}, {f32({3})}, {{"kind", "sum"}, {"dims", Shape{0, 2}}}, mesh},
      {"shard_slice",
       {f32({6, 2})},
       {f32({1, 2})},
       {{"dim", int64_t{0}}, {"axes", Axes{"dp", "micro"}}},
       mesh},
      {"shard_offset", {}, {i32({})}, {{"axes", Axes{"dp"}}, {"size", int64_t{8}}}, mesh},
      {"mask_padding",
       {a},
       {a},
       {{"dim", int64_t{1}}, {"axes", Axes{"dp"}}, {"size", int64_t{5}}, {"value", "lowest"}},
       mesh},
      {"accumulate", {a}, {a}, {{"axis", "micro"}}, mesh},
      {"quantize_blocks",
       {f32({2, 6})},
       {i32({4, 2})},
       {{"bits", int64_t{8}}, {"block", int64_t{3}}, {"dim", int64_t{1}}, {"parts", int64_t{2}}},
       mesh},
      {"quantize_blocks",
       {f32({2, 6}), f32({2, 6})},
       {i32({4, 2})},
       {{"bits", int64_t{8}}, {"block", int64_t{3}}, {"dim", int64_t{1}}, {"parts", int64_t{2}}},
       mesh},
      {"dequantize_blocks",
       {i32({2, 2})},
       {f32({3, 3})},
       {{"bits", int64_t{4}}, {"block", int64_t{8}}, {"dim", int64_t{0}}, {"parts", int64_t{1}}},
       mesh},
      {"einsum",
       {f32({2, 3, 4}), f32({4, 5})},
       {f32({2, 3, 5})},
       {{"equation", "bsd,df->bsf"}},
       mesh},
      {"einsum", {f32({2, 3, 4}), f32({4, 2})}, {f32({4, 3})}, {{"equation", "abc,ca->cb"}}, mesh},
      {"grouped_product",
       {f32({2, 2, 3, 4}), f32({2, 5, 4}), i32({2, 2, 3})},
       {f32({2, 2, 3, 5})},
       {{"equation", "xbcd,xfd->xbcf"}},
       mesh},
      {"conv", {f32({2, 3, 5, 4}), f32({4, 3, 3, 2})}, {f32({2, 4, 3, 3})}, conv, mesh},
      {"conv_input_grad", {f32({2, 4, 3, 3}), f32({4, 3, 3, 2})}, {f32({2, 3, 5, 4})}, conv, mesh},
      {"conv_weight_grad", {f32({2, 3, 5, 4}), f32({2, 4, 3, 3})}, {f32({4, 3, 3, 2})}, conv, mesh},
      {"conv", {f32({2, 2, 3, 4}), f32({2, 5, 3, 2})}, {f32({2, 2, 5, 3})}, line, mesh},
      {"max_pool", {f32({2, 5, 4})}, {f32({2, 3, 3})}, pool, mesh},
      {"max_pool_grad", {f32({2, 5, 4}), f32({2, 3, 3})}, {f32({2, 5, 4})}, pool, mesh},
      {"embedding", {f32({4, 3}), i32({2, 2})}, {f32({2, 2, 3})}, {}, mesh},
      {"embedding_grad", {i32({2, 2}), f32({2, 2, 3})}, {f32({4, 3})}, {}, mesh},
      {"embedding", {f32({2, 4, 3}), i32({3, 2, 5})}, {f32({3, 2, 5, 3})}, {}, mesh},
      {"embedding_grad", {i32({3, 2, 5}), f32({3, 2, 5, 3})}, {f32({2, 4, 3})}, {}, mesh},
      {"top_k", {a}, {boolean({2, 3})}, {{"k", int64_t{2}}}, mesh},
      {"nonzero", {boolean({2, 3})}, {i32({2, 2})}, {}, mesh},
      {"pick", {a, i32({2})}, {rows}, {}, mesh},
      {"pick_grad", {i32({2}), rows}, {a}, {}, mesh},
      {"layer_norm", {a, row, row}, {a, rows, rows}, {{"eps", 1e-5}}, mesh},
      {"layer_norm_grad", {a, row, rows, rows, a}, {a, row, row}, {}, mesh},
      {"rms_norm", {a, row}, {a, rows}, {{"eps", 1e-5}}, mesh},
      {"rms_norm_grad", {a, row, rows, a}, {a, row}, {}, mesh},
      {"rotary",
       {f32({2, 3, 2, 4}), i32({2, 3})},
       {f32({2, 3, 2, 4})},
       {{"theta", 1e4}, {"inverse", false}},
       mesh},
      {"rotary",
       {f32({2, 3, 2, 4})},
       {f32({2, 3, 2, 4})},
       {{"theta", 1e4}, {"inverse", true}},
       mesh},
      {"rotary",
       {f32({2, 3, 2, 4})},
       {f32({2, 3, 2, 4})},
       {{"frequencies", RawBytes{std::string(8, '\0')}}, {"factor", 1.25}, {"inverse", false}},
       mesh},
      {"rotary",
       {f32({2, 3, 2, 4})},
       {f32({2, 3, 2, 4})},
       {{"theta", 1e4},
        {"inverse", false},
        {"sequence", int64_t{6}},
        {"sequence_axes", Axes{"dp"}},
        {"zigzag", int64_t{3}}},
       mesh},
      {"attention",
       {f32({2, 3, 4, 5}), f32({2, 3, 2, 5}), f32({2, 3, 2, 5})},
       {f32({2, 3, 4, 5}), f32({2, 4, 3})},
       {{"causal", true}, {"scale", 0.5}, {"window", int64_t{2}}, {"softcap", 1.5}},
       mesh},
      {"attention",
       {f32({2, 3, 4, 5}), f32({2, 4, 2, 5}), f32({2, 4, 2, 5}), i32({2, 4})},
       {f32({2, 3, 4, 5}), f32({2, 4, 3})},
       {{"causal", false}, {"scale", 0.5}},
       mesh},
      {"attention",
       {f32({2, 3, 4, 5}), f32({2, 8, 2, 5}), f32({2, 8, 2, 5}), i32({2, 8})},
       {f32({2, 3, 4, 5}), f32({2, 4, 3})},
       {{"causal", true},
        {"scale", 0.5},
        {"sequence", int64_t{6}},
        {"sequence_axes", Axes{"dp"}},
        {"zigzag", int64_t{3}}},
       mesh},
      {"attention_grad",
       {f32({2, 3, 4, 5}), f32({2, 3, 2, 5}), f32({2, 3, 2, 5}), f32({2, 3, 4, 5}), f32({2, 4, 3}),
        f32({2, 3, 4, 5})},
       {f32({2, 3, 4, 5}), f32({2, 3, 2, 5}), f32({2, 3, 2, 5})},
       {{"causal", true}, {"scale", 0.5}},
       mesh},
      {"attention_grad",
       {f32({2, 3, 4, 5}), f32({2, 5, 2, 5}), f32({2, 5, 2, 5}), f32({2, 3, 4, 5}), f32({2, 4, 3}),
        f32({2, 3, 4, 5})},
       {f32({2, 3, 4, 5}), f32({2, 5, 2, 5}), f32({2, 5, 2, 5})},
       {{"causal", true}, {"scale", 0.5}, {"sequence", int64_t{5}}, {"sequence_axes", Axes{"dp"}}},
       mesh},
      {"attention",
       {f32({2, 3, 4, 5}), f32({2, 3, 2, 5}), f32({2, 3, 2, 5}), i32({2, 6})},
       {f32({2, 3, 4, 5}), f32({2, 4, 3})},
       {{"causal", true},
        {"scale", 0.5},
        {"key_shift", int64_t{1}},
        {"sequence", int64_t{6}},
        {"sequence_axes", Axes{"dp"}},
        {"zigzag", int64_t{1}}},
       mesh},
      {"attention_grad",
       {f32({2, 3, 4, 5}), f32({2, 3, 2, 5}), f32({2, 3, 2, 5}), f32({2, 3, 4, 5}), f32({2, 4, 3}),
        f32({2, 3, 4, 5})},
       {f32({2, 3, 4, 5}), f32({2, 3, 2, 5}), f32({2, 3, 2, 5})},
       {{"causal", true},
        {"scale", 0.5},
        {"key_shift", int64_t{1}},
        {"sequence", int64_t{5}},
        {"sequence_axes", Axes{"dp"}}},
       mesh},
      {"joined_attention",
       {f32({2, 3, 8, 5})},
       {f32({2, 3, 4, 5}), f32({2, 4, 3})},
       {{"causal", true}, {"scale", 0.5}},
       mesh},
      {"joined_attention_grad",
       {f32({2, 3, 8, 5}), f32({2, 3, 4, 5}), f32({2, 4, 3}), f32({2, 3, 4, 5})},
       {f32({2, 3, 8, 5})},
       {{"causal", true}, {"scale", 0.5}},
       mesh},
      {"merge_attention",
       {f32({2, 3, 4, 5}), f32({2, 4, 3}), f32({2, 3, 4, 5}), f32({2, 4, 3})},
       {f32({2, 3, 4, 5}), f32({2, 4, 3})},
       {},
       mesh},
      {"cross_entropy", {a, i32({2})}, {rows, rows}, {}, mesh},
      {"cross_entropy_grad", {a, i32({2}), rows, rows}, {a}, {}, mesh},
      {"sgd", {a, a, a, s, s, flag}, {a, a}, {{"momentum", 0.9}, {"weight_decay", 0.1}}, mesh},
      {"dropout",
       {a, i32({2})},
       {a},
       {{"rate", 0.5},
        {"op", int64_t{3}},
        {"shape", Shape{4, 3}},
        {"sharding", std::vector<std::string>{"dp", ""}}},
       mesh},
      {"random_uniform",
       {i32({2})},
       {a},
       {{"op", int64_t{3}},
        {"shape", Shape{4, 3}},
        {"sharding", std::vector<std::string>{"dp", ""}}},
       mesh},
      {"lion",
       {a, a, a, s, s, flag},
       {a, a},
       {{"beta1", 0.9}, {"beta2", 0.99}, {"weight_decay", 0.1}},
       mesh}};
  for (const char *name : {"adamw", "adam"})
    others.push_back({name,
                      {a, a, a, a, s, s, s, flag},
                      {a, a, a},
                      {{"beta1", 0.9}, {"beta2", 0.99}, {"eps", 1e-8}, {"weight_decay", 0.1}},
                      mesh});
  calls.insert(calls.end(), others.begin(), others.end());
  return calls;
}

class Mutator {
public:
  explicit Mutator(uint64_t seed) : engine(seed) {}

  bool oneIn(uint64_t n) { return engine() % n == 0; }
  template <typename T> T pick(std::initializer_list<T> choices) {
    return choices.begin()[engine() % choices.size()];
  }

  int64_t number() {
    constexpr int64_t low = std::numeric_limits<int64_t>::min();
    constexpr int64_t high = std::numeric_limits<int64_t>::max();
    return pick<int64_t>({0, 1, 2, 3, 4, 5, 6, -1, -2, 7, 64, int64_t{1} << 31, int64_t{1} << 32,
                          int64_t{1} << 60, high, high - 1, low, low + 1});
  }
  double real() {
    return pick<double>({0, -1, 0.5, 1e300, std::nan(""), HUGE_VAL, -HUGE_VAL, 1e-320});
  }

  void mutateList(std::vector<int64_t> &list) {
    if (oneIn(4))
      list.push_back(number());
    else if (!list.empty() && oneIn(4))
      list.pop_back();
    else if (!list.empty() && oneIn(3))
      std::swap(list.front(), list.back());
    else if (!list.empty())
      list[engine() % list.size()] = number();
  }

  AttributeValue value() {
    switch (engine() % 7) {
    case 0:
      return number();
    case 1:
      return real();
    case 2:
      return std::string("dp");
    case 3:
      return oneIn(2);
    case 4:
      return std::vector<int64_t>{number(), number()};
    case 5:
      return Axes{"dp", pick<std::string>({"micro", "dp", "", "x"})};
    default:
      return RawBytes{std::string(engine() % 20, '\x80')};
    }
  }

  void mutateAttribute(AttributeValue &attribute) {
    if (oneIn(6))
      attribute = value();
    else if (auto *list = std::get_if<std::vector<int64_t>>(&attribute))
      mutateList(*list);
    else if (auto *text = std::get_if<std::string>(&attribute))
      mutateText(*text);
    else if (auto *axes = std::get_if<Axes>(&attribute))
      axes->push_back(pick<std::string>({"dp", "micro", "x"}));
    else if (std::holds_alternative<int64_t>(attribute))
      attribute = number();
    else if (std::holds_alternative<double>(attribute))
      attribute = real();
    else
      attribute = value();
  }

  void mutateType(TensorType &type) {
    if (oneIn(4))
      type.dtype = pick({DType::F32, DType::F64, DType::I32, DType::Bool, DType::BF16, DType::F16,
                         DType(0), DType(77)});
    else
      mutateList(type.shape);
  }

  void mutate(KernelSignature &call) {
    std::vector<TensorType *> types;
    for (TensorType &type : call.inputs)
      types.push_back(&type);
    for (TensorType &type : call.outputs)
      types.push_back(&type);
    switch (engine() % 6) {
    case 0:
      call.inputs.resize(engine() % 8, f32({2, 3}));
      break;
    case 1:
      mutateType(*types[engine() % types.size()]);
      break;
    case 2:
      // The same change everywhere that the dimension occurs is more likely to be accepted.
      replaceDim(types, *types[engine() % types.size()], number());
      break;
    case 3:
      // An output may be a statistic, which stays wide.
      replaceType(types, pick({DType::F64, DType::BF16, DType::F16}), oneIn(2));
      break;
    case 4:
      call.attributes[pick<std::string>({"dims", "axis", "x"})] = value();
      break;
    default:
      if (!call.attributes.empty())
        mutateAttribute(std::next(call.attributes.begin(),
                                  static_cast<std::ptrdiff_t>(engine() % call.attributes.size()))
                            ->second);
    }
  }

private:
  void mutateText(std::string &text) {
    if (text.empty() || oneIn(5))
      text += static_cast<char>(engine());
    else if (oneIn(3))
      std::swap(text[engine() % text.size()], text[engine() % text.size()]);
    else
      text[engine() % text.size()] = pick({'a', 'b', 's', ',', '>', '-', 'd', '\0', '\xff'});
  }

  void replaceType(const std::vector<TensorType *> &types, DType to, bool statisticsToo) {
    for (TensorType *type : types)
      if (type->dtype == DType::F32)
        type->dtype = statisticsToo || type->rank() > 1 ? to : wideType(to);
  }

  void replaceDim(const std::vector<TensorType *> &types, const TensorType &from, int64_t to) {
    if (from.shape.empty())
      return;
    int64_t old = from.shape[engine() % from.shape.size()];
    for (TensorType *type : types)
      std::replace(type->shape.begin(), type->shape.end(), old, to);
  }

  std::mt19937_64 engine;
};

HostTensor randomBytes(const TensorType &type, Mutator &mutator) {
  HostTensor tensor(type);
  for (std::byte &byte : tensor.bytes)
    byte = mutator.pick({std::byte{0}, std::byte{1}, std::byte{2}, std::byte{0xFF}});
  return tensor;
}

int64_t totalBytes(const KernelSignature &call) {
  int64_t total = 0;
  for (const auto *types : {&call.inputs, &call.outputs})
    for (const TensorType &type : *types)
      // Each is at most 2^63; the sum is only compared with a small number.
      total = std::max(total, static_cast<int64_t>(type.numBytes()));
  return total;
}

TEST(Fuzz, ValidCallsAreValid) {
  std::unique_ptr<Backend> backend = createCpuBackend();
  EXPECT_EQ(backend->name(), "cpu");
  std::set<std::string> kernels;
  for (const KernelSignature &call : validCalls()) {
    auto prepared = backend->prepare(call);
    EXPECT_TRUE(prepared) << prepared.error().message;
    kernels.insert(call.kernel);
  }
  EXPECT_EQ(kernels.size(), 72u);
  expectRefused({"sort", {}, {}, {}, {}}, "kernel 'sort' is unknown to the cpu backend");
}

TEST(Fuzz, NearlyValidCalls) {
  std::unique_ptr<Backend> backend = createCpuBackend();
  int accepted = 0, refused = 0;
  uint64_t seed = 0;
  for (const KernelSignature &valid : validCalls())
    for (int round = 0; round < 400; ++round) {
      SCOPED_TRACE("seed " + std::to_string(++seed));
      Mutator mutator(seed);
      KernelSignature call = valid;
      do
        mutator.mutate(call);
      while (mutator.oneIn(3));
      auto prepared = backend->prepare(call);
      if (!prepared) {
        ++refused;
        EXPECT_EQ(prepared.error().message.find("kernel '" + call.kernel + "': "), 0u);
        continue;
      }
      ++accepted;
      if (totalBytes(call) > 100000)
        continue;
      KernelCall run{call.kernel, {}, call.outputs, call.attributes, call.mesh};
      for (const TensorType &type : call.inputs)
        run.inputs.push_back(randomBytes(type, mutator));
      run.run(1 + static_cast<int>(seed % 2));
    }
  // Both paths are worth something only if both are taken.
  EXPECT_GT(accepted, 2000);
  EXPECT_GT(refused, 2000);
}

} // namespace
} // namespace dtc::runtime::test::fuzzTest
