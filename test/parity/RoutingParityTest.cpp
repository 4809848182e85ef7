//===- RoutingParityTest.cpp - The same experts as transformers -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Which experts each token has in the first step is stored with the references of mixtures of
// experts. Here the same models are run in f64 on several meshes: each token has the same experts,
// and the metrics of the train step say how many tokens each expert has.
//
//===----------------------------------------------------------------------===//

#include "dialects/dtc/DtcOps.h"
#include "plan/plan.pb.h"
#include "test/lib/compile/CompileAndRun.h"
#include "test/lib/plans/TrainStep.h"
#include "test/parity/Reference.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace routingParityTest {

using namespace dtc;
using namespace dtc::test;

namespace {

class RoutingParity : public testing::TestWithParam<std::tuple<std::string, std::string>> {
protected:
  void import(bool withMetrics) {
    ImportOptions options = reference.importOptions();
    options.doublePrecision = true;
    options.expertMetrics = withMetrics;
    module = compiler.import(reference.path("config.json"), reference.expected["batch"],
                             reference.sequence(), options);
    ASSERT_TRUE(module) << compiler.diagnostics();
  }

  /// Opens a session that starts from the file's weights and has the first batch; null after an
  /// error.
  std::unique_ptr<runtime::Session> open(CompileMode mode) {
    CompileOptions options = reference.compileOptions(std::get<1>(GetParam()));
    options.mode = mode;
    if (mode != CompileMode::Train)
      options.zero = 0; // there is no optimizer
    auto session = compiler.open(*module, options);
    EXPECT_TRUE(session) << compiler.diagnostics();
    if (!session)
      return nullptr;
    reference.setWeights(*session, "weights.safetensors");
    reference.setBatch(*session, "samples.safetensors", 0);
    return session;
  }

  /// The experts of each token, i32 [batch, seq, selected], in each layer that has experts.
  std::vector<HostTensor> wantedExperts() const {
    std::vector<HostTensor> wanted;
    int64_t layers = reference.json("config.json")["num_hidden_layers"];
    for (int64_t layer = 0; layer < layers; ++layer)
      if (std::string name = "layers." + std::to_string(layer) + ".experts";
          reference.hasTensor("routing.safetensors", name))
        wanted.push_back(reference.tensor("routing.safetensors", name, DType::I32));
    return wanted;
  }

  Reference reference{std::get<0>(GetParam())};
  Compiler compiler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace

/// Makes the function return, after its loss, which experts each token has, i32 [batch, seq,
/// experts], of each layer that has experts.
static size_t returnChoices(mlir::func::FuncOp function, int64_t experts) {
  auto ret = llvm::cast<mlir::func::ReturnOp>(function.front().getTerminator());
  mlir::OpBuilder builder(ret);
  llvm::SmallVector<mlir::Value> choices;
  for (TopKOp op : function.front().getOps<TopKOp>()) {
    auto type = llvm::cast<mlir::RankedTensorType>(op.getType());
    if (type.getRank() != 3 || type.getShape().back() != experts)
      continue; // it selects groups of experts
    choices.push_back(
        ConvertOp::create(builder, op.getLoc(), type.clone(builder.getI32Type()), op.getResult()));
  }
  choices.insert(choices.begin(), ret.getOperand(0));
  ret->setOperands(choices);
  function.setType(builder.getFunctionType(function.getArgumentTypes(),
                                           mlir::TypeRange(mlir::ValueRange(choices))));
  function.setAllResultAttrs(
      llvm::SmallVector<mlir::DictionaryAttr>(choices.size(), builder.getDictionaryAttr({})));
  return choices.size() - 1;
}

/// The sizes of the routed layers: how many experts a layer has.
static int64_t expertsOf(const Reference &reference) {
  nlohmann::json config = reference.json("config.json");
  for (const char *field : {"num_local_experts", "num_experts", "n_routed_experts"})
    if (config.contains(field))
      return config[field];
  return 0;
}

TEST_P(RoutingParity, TokensHaveTheSameExperts) {
  import(/*withMetrics=*/false);
  ASSERT_TRUE(module);
  int64_t experts = expertsOf(reference);
  size_t layers = returnChoices(*module->getOps<mlir::func::FuncOp>().begin(), experts);
  std::vector<HostTensor> all = wantedExperts();
  ASSERT_EQ(layers, all.size());
  auto session = open(CompileMode::Forward);
  ASSERT_TRUE(session);
  ASSERT_FALSE(trainStep(*session, 0));
  for (size_t layer = 0; layer < layers; ++layer) {
    const HostTensor &wanted = all[layer];
    int64_t selected = wanted.type.shape.back();
    int64_t tokens = wanted.type.numElements() / selected;
    auto choices = session->getOutput("result" + std::to_string(layer + 1));
    ASSERT_TRUE(bool(choices)) << choices.error().message;
    ASSERT_EQ(choices->type.numElements(), tokens * experts);
    for (int64_t token = 0; token < tokens; ++token) {
      std::set<int64_t> expected, found;
      for (int64_t i = 0; i < selected; ++i)
        expected.insert(int64_t(element(wanted, token * selected + i)));
      for (int64_t expert = 0; expert < experts; ++expert)
        if (element(*choices, token * experts + expert) != 0)
          found.insert(expert);
      EXPECT_EQ(found, expected) << "layer " << layer << ", token " << token;
    }
  }
}

TEST_P(RoutingParity, MetricsCountTheSameTokens) {
  import(/*withMetrics=*/true);
  ASSERT_TRUE(module);
  auto session = open(CompileMode::Train);
  ASSERT_TRUE(session);
  ASSERT_FALSE(trainStep(*session, 0));
  int64_t experts = expertsOf(reference);
  std::vector<HostTensor> all = wantedExperts();
  size_t layer = 0;
  for (int program = 0; program < session->plan().programs_size(); ++program)
    for (const plan::Output &output : session->plan().programs(program).outputs()) {
      if (!output.name().starts_with("expert_tokens:"))
        continue;
      ASSERT_LT(layer, all.size());
      const HostTensor &wanted = all[layer++];
      std::vector<double> counts(size_t(experts), 0), found;
      for (int64_t i = 0; i < wanted.type.numElements(); ++i)
        ++counts[size_t(element(wanted, i))];
      auto value = session->getOutput(output.name());
      ASSERT_TRUE(bool(value)) << value.error().message;
      for (int64_t i = 0; i < value->type.numElements(); ++i)
        found.push_back(element(*value, i));
      EXPECT_EQ(found, counts) << output.name();
    }
  EXPECT_EQ(layer, all.size());
  bool balances = reference.expected.contains("balance_loss");
  EXPECT_EQ(bool(session->findOutput("balance_loss")), balances);
  if (balances) {
    double wanted = reference.expected["balance_loss"][0];
    EXPECT_NEAR(element(*session->getOutput("balance_loss")), wanted, 1e-9 * wanted);
  }
}

static std::string nameOf(const testing::TestParamInfo<RoutingParity::ParamType> &info) {
  const auto &[model, strategy] = info.param;
  std::string name = model + "_" + (strategy.empty() ? "one_device" : strategy);
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Mixtures, RoutingParity,
                         testing::Combine(testing::ValuesIn(findReferences("routing.safetensors")),
                                          testing::Values("", "dp=2,ep=2 zero=1", "ep=4,tp=2 sp",
                                                          "pp=2,ep=2",
                                                          "ep=4 expert_group=2 "
                                                          "link=ep.0=1MB/s,1us")),
                         nameOf);

TEST(RoutingReferences, AreFound) { EXPECT_GE(findReferences("routing.safetensors").size(), 14u); }

} // namespace routingParityTest
