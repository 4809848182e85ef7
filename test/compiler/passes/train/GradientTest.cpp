//===- GradientTest.cpp - Gradients against finite differences ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each differentiable op, executed in f64: the gradient of a random linear function of its results
// against central differences. Every element of every parameter is perturbed.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanTypes.h"
#include "plan/plan.pb.h"
#include "test/lib/compile/CompileAndRun.h"
#include "test/lib/plans/TrainStep.h"

#include "dialects/dtc/DtcOps.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

namespace gradientTest {

using namespace dtc;
using namespace dtc::test;

namespace {

struct Case {
  const char *name;
  const char *parameters; ///< types of %p0, %p1, ...
  const char *inputs;     ///< types of %i0, %i1, ... (integers; indices)
  const char *body;       ///< computes %r
  const char *result;     ///< the type of %r
};

const Case kCases[] = {
#define UNARY(op)                                                                                  \
  { #op, "2x5", "", "%r = dtc." #op " %p0 : tensor<2x5xf64>", "2x5" }
#define BINARY(op)                                                                                 \
  { #op, "2x5 2x5", "", "%r = dtc." #op " %p0, %p1 : tensor<2x5xf64>", "2x5" }
    UNARY(neg),
    UNARY(abs),
    UNARY(exp),
    UNARY(tanh),
    UNARY(sigmoid),
    UNARY(softplus),
    UNARY(relu),
    UNARY(silu),
    BINARY(add),
    BINARY(sub),
    BINARY(mul),
    BINARY(maximum),
    BINARY(minimum),
    {"log", "2x5", "", "%e = dtc.exp %p0 : tensor<2x5xf64>\n%r = dtc.log %e : tensor<2x5xf64>",
     "2x5"},
    {"sqrt", "2x5", "", "%e = dtc.exp %p0 : tensor<2x5xf64>\n%r = dtc.sqrt %e : tensor<2x5xf64>",
     "2x5"},
    {"rsqrt", "2x5", "", "%e = dtc.exp %p0 : tensor<2x5xf64>\n%r = dtc.rsqrt %e : tensor<2x5xf64>",
     "2x5"},
    {"div", "2x5 2x5", "",
     "%e = dtc.exp %p1 : tensor<2x5xf64>\n%r = dtc.div %p0, %e : tensor<2x5xf64>", "2x5"},
    {"gelu_tanh", "2x5", "", "%r = dtc.gelu tanh %p0 : tensor<2x5xf64>", "2x5"},
    {"gelu_none", "2x5", "", "%r = dtc.gelu none %p0 : tensor<2x5xf64>", "2x5"},
    {"select", "2x5 2x5", "",
     "%z = dtc.constant dense<0.1> : tensor<2x5xf64>\n%c = dtc.compare lt %p0, %z : "
     "tensor<2x5xf64>\n"
     "%r = dtc.select %c, %p0, %p1 : tensor<2x5xf64>",
     "2x5"},
    {"convert", "2x5", "",
     "%f = dtc.convert %p0 : (tensor<2x5xf64>) -> tensor<2x5xf64>\n%r = dtc.tanh %f : "
     "tensor<2x5xf64>",
     "2x5"},
    {"einsum", "2x3x4 4x5", "",
     "%r = dtc.einsum \"bsd,df->bsf\" %p0, %p1 : (tensor<2x3x4xf64>, tensor<4x5xf64>) -> "
     "tensor<2x3x5xf64>",
     "2x3x5"},
    {"einsum_batched", "3x2x4 4x5x2", "",
     "%r = dtc.einsum \"abk,kcb->bca\" %p0, %p1 : (tensor<3x2x4xf64>, tensor<4x5x2xf64>) -> "
     "tensor<2x5x3xf64>",
     "2x5x3"},
    {"einsum_dot", "3x4 3x4", "",
     "%r = dtc.einsum \"ab,ab->\" %p0, %p1 : (tensor<3x4xf64>, tensor<3x4xf64>) -> tensor<f64>",
     ""},
    {"grouped_product", "2x2x3x4 2x5x4", "",
     "%i = dtc.constant dense<[[[0, 1, -1], [-1, -1, -1]], [[2, -1, -1], [0, 1, 2]]]> : "
     "tensor<2x2x3xi32>\n"
     "%r = dtc.grouped_product \"xbcd,xfd->xbcf\" %p0, %p1 rows %i : (tensor<2x2x3x4xf64>, "
     "tensor<2x5x4xf64>, tensor<2x2x3xi32>) -> tensor<2x2x3x5xf64>",
     "2x2x3x5"},
    {"grouped_product_sum", "2x2x3x4 2x2x3x5", "",
     "%i = dtc.constant dense<[[[0, 1, -1], [-1, -1, -1]], [[2, -1, -1], [0, 1, 2]]]> : "
     "tensor<2x2x3xi32>\n"
     "%r = dtc.grouped_product \"xbcd,xbcf->xdf\" %p0, %p1 rows %i : (tensor<2x2x3x4xf64>, "
     "tensor<2x2x3x5xf64>, tensor<2x2x3xi32>) -> tensor<2x4x5xf64>",
     "2x4x5"},
    {"conv", "2x3x5x6 4x3x3x2", "",
     "%r = dtc.conv %p0, %p1 strides [2, 1] padding [1, 2] dilations [1, 2] : "
     "(tensor<2x3x5x6xf64>, tensor<4x3x3x2xf64>) -> tensor<2x4x3x8xf64>",
     "2x4x3x8"},
    {"conv_groups", "2x3x2x5 3x2x2x3", "",
     "%r = dtc.conv %p0, %p1 strides [1] padding [1] dilations [1] : (tensor<2x3x2x5xf64>, "
     "tensor<3x2x2x3xf64>) -> tensor<2x3x2x5xf64>",
     "2x3x2x5"},
    {"conv_input_grad", "2x4x3x3 4x3x2x2", "",
     "%r = dtc.conv_input_grad %p0, %p1 strides [2, 1] padding [1, 0] dilations [1, 2] : "
     "(tensor<2x4x3x3xf64>, tensor<4x3x2x2xf64>) -> tensor<2x3x5x5xf64>",
     "2x3x5x5"},
    {"conv_weight_grad", "2x3x4x5 2x4x2x5", "",
     "%r = dtc.conv_weight_grad %p0, %p1 strides [2, 1] padding [0, 1] dilations [1, 1] : "
     "(tensor<2x3x4x5xf64>, tensor<2x4x2x5xf64>) -> tensor<4x3x2x3xf64>",
     "4x3x2x3"},
    {"max_pool", "2x5x6", "",
     "%r = dtc.max_pool %p0 window [3, 2] strides [2, 1] padding [1, 0] dilations [1, 2] : "
     "(tensor<2x5x6xf64>) -> tensor<2x3x4xf64>",
     "2x3x4"},
    {"reduce_sum", "2x3x4", "",
     "%r = dtc.reduce sum %p0 dims [0, 2] : (tensor<2x3x4xf64>) -> tensor<3xf64>", "3"},
    {"reduce_max", "2x3x4", "",
     "%r = dtc.reduce max %p0 dims [1] : (tensor<2x3x4xf64>) -> tensor<2x4xf64>", "2x4"},
    {"reduce_min", "2x3x4", "",
     "%r = dtc.reduce min %p0 dims [1] : (tensor<2x3x4xf64>) -> tensor<2x4xf64>", "2x4"},
    {"broadcast", "3", "", "%r = dtc.broadcast %p0 dims [1] : (tensor<3xf64>) -> tensor<2x3x2xf64>",
     "2x3x2"},
    {"reshape", "2x6", "", "%r = dtc.reshape %p0 : (tensor<2x6xf64>) -> tensor<4x3xf64>", "4x3"},
    {"transpose", "2x3x4", "",
     "%r = dtc.transpose %p0 permutation [2, 0, 1] : (tensor<2x3x4xf64>) -> tensor<4x2x3xf64>",
     "4x2x3"},
    {"zigzag", "2x12x2", "",
     "%r = dtc.zigzag %p0 {dim = 1, inverse = false, parts = 3} : tensor<2x12x2xf64>", "2x12x2"},
    {"zigzag_inverse", "8x3", "",
     "%r = dtc.zigzag %p0 {dim = 0, inverse = true, parts = 2} : tensor<8x3xf64>", "8x3"},
    {"slice", "4x5", "",
     "%r = dtc.slice %p0 offsets [1, 2] sizes [2, 3] : (tensor<4x5xf64>) -> tensor<2x3xf64>",
     "2x3"},
    {"pad", "2x3", "",
     "%r = dtc.pad %p0 low [1, 0] high [0, 2] value 0.5 : (tensor<2x3xf64>) -> tensor<3x5xf64>",
     "3x5"},
    {"concat", "2x3 2x4", "",
     "%r = dtc.concat %p0, %p1 dim 1 : (tensor<2x3xf64>, tensor<2x4xf64>) -> tensor<2x7xf64>",
     "2x7"},
    {"embedding", "7x3", "2x4",
     "%r = dtc.embedding %p0, %i0 : (tensor<7x3xf64>, tensor<2x4xi32>) -> tensor<2x4x3xf64>",
     "2x4x3"},
    {"embedding_of_samples", "4x3x2", "2x4x5",
     "%r = dtc.embedding %p0, %i0 : (tensor<4x3x2xf64>, tensor<2x4x5xi32>) -> "
     "tensor<2x4x5x2xf64>",
     "2x4x5x2"},
    {"embedding_grad", "2x4x3", "2x4",
     "%r = dtc.embedding_grad %i0, %p0 : (tensor<2x4xi32>, tensor<2x4x3xf64>) -> tensor<3x3xf64>",
     "3x3"},
    {"embedding_grad_of_samples", "2x4x5x2", "2x4x5",
     "%r = dtc.embedding_grad %i0, %p0 : (tensor<2x4x5xi32>, tensor<2x4x5x2xf64>) -> "
     "tensor<4x3x2xf64>",
     "4x3x2"},
    {"top_k", "3x5", "",
     "%m = dtc.top_k %p0 {k = 2} : tensor<3x5xf64>\n"
     "%z = dtc.constant dense<0.0> : tensor<3x5xf64>\n"
     "%r = dtc.select %m, %p0, %z : tensor<3x5xf64>",
     "3x5"},
    {"pick", "2x4x3", "2x4",
     "%r = dtc.pick %p0, %i0 : (tensor<2x4x3xf64>, tensor<2x4xi32>) -> tensor<2x4xf64>", "2x4"},
    {"softmax", "3x5", "", "%r = dtc.softmax %p0 : tensor<3x5xf64>", "3x5"},
    {"softmax_scaled", "3x5", "", "%r = dtc.softmax %p0 {scale = -7.0e-1 : f64} : tensor<3x5xf64>",
     "3x5"},
    {"softmax_causal", "2x3x4", "",
     "%r = dtc.softmax %p0 {causal = true, scale = 7.0e-1 : f64} : tensor<2x3x4xf64>", "2x3x4"},
    {"layer_norm", "2x3x4 4 4", "",
     "%r, %m, %s = dtc.layer_norm %p0, %p1, %p2 {eps = 1.0e-5 : f64} : (tensor<2x3x4xf64>, "
     "tensor<4xf64>, tensor<4xf64>) "
     "-> (tensor<2x3x4xf64>, tensor<2x3xf64>, tensor<2x3xf64>)",
     "2x3x4"},
    {"rms_norm", "2x3x4 4", "",
     "%r, %s = dtc.rms_norm %p0, %p1 {eps = 1.0e-5 : f64} : (tensor<2x3x4xf64>, tensor<4xf64>) -> "
     "(tensor<2x3x4xf64>, "
     "tensor<2x3xf64>)",
     "2x3x4"},
    {"dropout", "4x5", "",
     "%k = dtc.constant dense<[7, 3]> : tensor<2xi32>\n"
     "%r = dtc.dropout %p0, %k {number = 2, rate = 0.4} : (tensor<4x5xf64>, tensor<2xi32>) -> "
     "tensor<4x5xf64>",
     "4x5"},
    {"attention_dropout", "2x3x4x2 2x3x2x2 2x3x2x2", "",
     "%k = dtc.constant dense<[7, 3]> : tensor<2xi32>\n"
     "%r, %l = dtc.attention %p0, %p1, %p2 key %k {causal = true, scale = 7.0e-1 : f64, "
     "dropout = 0.3, number = 1} : (tensor<2x3x4x2xf64>, tensor<2x3x2x2xf64>, "
     "tensor<2x3x2x2xf64>, tensor<2xi32>) -> (tensor<2x3x4x2xf64>, tensor<2x4x3xf64>)",
     "2x3x4x2"},
    {"cross_entropy_smoothed", "2x3x5", "2x3",
     "%r, %l = dtc.cross_entropy %p0, %i0 {label_smoothing = 0.2} : (tensor<2x3x5xf64>, "
     "tensor<2x3xi32>) -> (tensor<2x3xf64>, tensor<2x3xf64>)",
     "2x3"},
    {"rotary", "2x3x2x4", "",
     "%r = dtc.rotary %p0 {theta = 1.0e+4 : f64, inverse = false} : tensor<2x3x2x4xf64>",
     "2x3x2x4"},
    {"attention", "2x3x4x2 2x3x2x2 2x3x2x2", "",
     "%r, %l = dtc.attention %p0, %p1, %p2 {causal = true, scale = 7.0e-1 : f64} : "
     "(tensor<2x3x4x2xf64>, "
     "tensor<2x3x2x2xf64>, tensor<2x3x2x2xf64>) -> (tensor<2x3x4x2xf64>, tensor<2x4x3xf64>)",
     "2x3x4x2"},
    {"rotary_part", "2x3x2x6", "",
     "%r = dtc.rotary %p0 {frequencies = array<f64: 1.0, 0.3>, factor = 1.25, inverse = false} : "
     "tensor<2x3x2x6xf64>",
     "2x3x2x6"},
    {"attention_window", "2x4x4x2 2x4x2x2 2x4x2x2", "",
     "%r, %l = dtc.attention %p0, %p1, %p2 {causal = true, scale = 7.0e-1 : f64, window = 2} : "
     "(tensor<2x4x4x2xf64>, "
     "tensor<2x4x2x2xf64>, tensor<2x4x2x2xf64>) -> (tensor<2x4x4x2xf64>, tensor<2x4x4xf64>)",
     "2x4x4x2"},
    {"rotary_zigzag", "2x4x2x4", "",
     "%r = dtc.rotary %p0 {theta = 1.0e+4 : f64, inverse = false, zigzag = 2} : "
     "tensor<2x4x2x4xf64>",
     "2x4x2x4"},
    {"attention_zigzag", "2x4x4x2 2x5x2x2 2x5x2x2", "",
     "%r, %l = dtc.attention %p0, %p1, %p2 {causal = true, scale = 7.0e-1 : f64, zigzag = 2} : "
     "(tensor<2x4x4x2xf64>, "
     "tensor<2x5x2x2xf64>, tensor<2x5x2x2xf64>) -> (tensor<2x4x4x2xf64>, tensor<2x4x4xf64>)",
     "2x4x4x2"},
    {"attention_zigzag_window", "1x6x2x2 1x6x2x2 1x6x2x2", "",
     "%r, %l = dtc.attention %p0, %p1, %p2 {causal = true, scale = 7.0e-1 : f64, window = 3, "
     "zigzag = 3} : (tensor<1x6x2x2xf64>, "
     "tensor<1x6x2x2xf64>, tensor<1x6x2x2xf64>) -> (tensor<1x6x2x2xf64>, tensor<1x2x6xf64>)",
     "1x6x2x2"},
    {"attention_softcap", "2x3x4x2 2x3x2x2 2x3x2x2", "",
     "%r, %l = dtc.attention %p0, %p1, %p2 {causal = true, scale = 7.0e-1 : f64, softcap = 0.8} : "
     "(tensor<2x3x4x2xf64>, "
     "tensor<2x3x2x2xf64>, tensor<2x3x2x2xf64>) -> (tensor<2x3x4x2xf64>, tensor<2x4x3xf64>)",
     "2x3x4x2"},
    {"attention_full", "1x3x2x2 1x4x2x2 1x4x2x2", "",
     "%r, %l = dtc.attention %p0, %p1, %p2 {causal = false, scale = 7.0e-1 : f64} : "
     "(tensor<1x3x2x2xf64>, "
     "tensor<1x4x2x2xf64>, tensor<1x4x2x2xf64>) -> (tensor<1x3x2x2xf64>, tensor<1x2x3xf64>)",
     "1x3x2x2"},
    {"attention_sinks", "2x4x4x2 2x4x2x2 2x4x2x2 4", "",
     "%r, %l = dtc.attention %p0, %p1, %p2 sinks %p3 {causal = true, scale = 7.0e-1 : f64, "
     "window = 3} : (tensor<2x4x4x2xf64>, tensor<2x4x2x2xf64>, tensor<2x4x2x2xf64>, "
     "tensor<4xf64>) -> (tensor<2x4x4x2xf64>, tensor<2x4x4xf64>)",
     "2x4x4x2"},
    {"attention_sinks_dropout", "2x3x4x2 2x3x2x2 2x3x2x2 4", "2x3",
     "%k = dtc.constant dense<[7, 3]> : tensor<2xi32>\n"
     "%r, %l = dtc.attention %p0, %p1, %p2 segments %i0 key %k sinks %p3 {causal = true, "
     "scale = 7.0e-1 : f64, softcap = 0.8, dropout = 0.3, number = 1} : (tensor<2x3x4x2xf64>, "
     "tensor<2x3x2x2xf64>, tensor<2x3x2x2xf64>, tensor<2x3xi32>, tensor<2xi32>, tensor<4xf64>) -> "
     "(tensor<2x3x4x2xf64>, tensor<2x4x3xf64>)",
     "2x3x4x2"},
    {"cross_entropy", "2x3x5", "2x3",
     "%r, %l = dtc.cross_entropy %p0, %i0 : (tensor<2x3x5xf64>, tensor<2x3xi32>) -> "
     "(tensor<2x3xf64>, tensor<2x3xf64>)",
     "2x3"},
    {"cross_entropy_lse", "2x3x5", "2x3",
     "%l, %r = dtc.cross_entropy %p0, %i0 : (tensor<2x3x5xf64>, tensor<2x3xi32>) -> "
     "(tensor<2x3xf64>, tensor<2x3xf64>)",
     "2x3"},
};

std::string tensorType(llvm::StringRef shape, llvm::StringRef element) {
  return ("tensor<" + shape + (shape.empty() ? "" : "x") + element + ">").str();
}

/// The module that computes sum(weights * %r).
std::string moduleOf(const Case &c) {
  std::string text = "func.func @loss(";
  llvm::SmallVector<llvm::StringRef> types;
  llvm::StringRef(c.parameters).split(types, ' ');
  for (auto [index, shape] : llvm::enumerate(types)) {
    std::string name = "p" + std::to_string(index);
    text += fmt::format("%{}: {} {{dtc.param = \"{}\"}}, ", name, tensorType(shape, "f64"), name);
  }
  types.clear();
  llvm::StringRef(c.inputs).split(types, ' ', -1, /*KeepEmpty=*/false);
  for (auto [index, shape] : llvm::enumerate(types)) {
    std::string name = "i" + std::to_string(index);
    text += fmt::format("%{}: {} {{dtc.input = \"{}\"}}, ", name, tensorType(shape, "i32"), name);
  }
  std::string type = tensorType(c.result, "f64"), letters;
  for (char letter = 'a'; *c.result && letter <= 'a' + char(llvm::StringRef(c.result).count('x'));
       ++letter)
    letters += letter;
  return text + "%w: " + type + " {dtc.input = \"w\"}) -> tensor<f64> {\n" + c.body +
         "\n%loss = dtc.einsum \"" + letters + "," + letters + "->\" %r, %w : (" + type + ", " +
         type + ") -> tensor<f64>\nreturn %loss : tensor<f64>\n}\n";
}

class Gradient : public testing::TestWithParam<Case> {};

} // namespace

TEST_P(Gradient, EqualsFiniteDifferences) {
  constexpr double h = 1e-5;
  std::string text = moduleOf(GetParam());
  Compiler compiler;
  auto module = compiler.parse(text);
  ASSERT_TRUE(module) << compiler.diagnostics() << text;
  CompileOptions options;
  options.mode = CompileMode::Gradients;
  auto session = compiler.open(*module, options);
  ASSERT_TRUE(session) << compiler.diagnostics() << text;
  auto problem = setRandomInputs(*session, /*seed=*/11);
  ASSERT_FALSE(problem) << problem->message;

  std::map<std::string, HostTensor> parameters;
  for (const plan::State *each : distinctStates(session->plan())) {
    const plan::State &state = *each;
    TensorType type{DType::F64, {state.file_shape().begin(), state.file_shape().end()}};
    parameters[state.name()] = randomTensor(type, /*seed=*/5, state.name());
    ASSERT_FALSE(session->setState(state.name(), parameters[state.name()]));
  }
  auto lossAt = [&](const std::string &name, int64_t index, double delta) {
    HostTensor moved = parameters[name];
    setElement(moved, index, element(moved, index) + delta);
    EXPECT_FALSE(session->setState(name, moved));
    EXPECT_FALSE(trainStep(*session, 0));
    EXPECT_FALSE(session->setState(name, parameters[name]));
    return element(*session->getOutput("loss"));
  };
  for (auto &[name, value] : parameters) {
    ASSERT_FALSE(trainStep(*session, 0));
    HostTensor gradient = *session->getOutput("grad:" + name);
    for (int64_t i = 0; i < value.type.numElements(); ++i) {
      double difference = (lossAt(name, i, h) - lossAt(name, i, -h)) / (2 * h);
      EXPECT_NEAR(element(gradient, i), difference, 1e-7 + 1e-6 * std::abs(difference))
          << name << "[" << i << "]";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Gradient, testing::ValuesIn(kCases),
                         [](const auto &info) { return std::string(info.param.name); });

TEST(GradientCoverage, EveryDifferentiableOpHasACase) {
  std::string all;
  for (const Case &c : kCases)
    all += std::string(c.body) + "\n";
  Compiler compiler;
  for (mlir::RegisteredOperationName op : compiler.context().getRegisteredOperations())
    if (op.getDialectNamespace() == "dtc" && op.hasInterface<DifferentiableOpInterface>())
      EXPECT_NE(all.find(op.getStringRef().str() + " "), std::string::npos)
          << op.getStringRef().str() << " has a gradient and no case here";
}

#undef UNARY
#undef BINARY

} // namespace gradientTest
