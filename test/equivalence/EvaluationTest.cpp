//===- EvaluationTest.cpp - The loss on other data, with any strategy -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The entry point "evaluate" of a train step gives, with any strategy, the loss that one device's
// forward program without dropout gives, and leaves every state as it is.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanTypes.h"
#include "plan/plan.pb.h"
#include "test/equivalence/Training.h"
#include "test/lib/plans/TrainStep.h"

#include <gtest/gtest.h>

namespace evaluationTest {

using namespace dtc;
using namespace dtc::test;

namespace {

const Model kGpt2 = {"Gpt2",
                     R"({"model_type": "gpt2", "vocab_size": 64, "n_positions": 32, "n_embd": 32,
                         "n_layer": 4, "n_head": 8, "attn_pdrop": 0.2, "embd_pdrop": 0.2,
                         "resid_pdrop": 0.2})",
                     16, 16};
const Model kLlama = {"Llama",
                      R"({"model_type": "llama", "vocab_size": 64, "hidden_size": 32,
                          "intermediate_size": 48, "num_hidden_layers": 4,
                          "num_attention_heads": 8, "num_key_value_heads": 4,
                          "max_position_embeddings": 32, "attention_dropout": 0.25})",
                      16, 16};

class Evaluation : public testing::TestWithParam<std::tuple<Model, const char *>> {};

using States = std::map<std::string, HostTensor>;

States statesOf(const runtime::Session &session) {
  States states;
  for (const plan::State *state : distinctStates(session.plan()))
    states.emplace(state->name(), *session.getState(state->name()));
  return states;
}

/// Other plans may not know which indices labels can be.
void setBatch(const Model &model, runtime::Session &session, uint64_t seed) {
  TensorType type{DType::I32, {model.batch, model.seq}};
  for (const char *name : {"tokens", "labels"})
    EXPECT_FALSE(session.setInput(name, randomTensor(type, seed, name, 64)));
}

/// The loss of one device's forward program with these parameters.
double forwardLoss(const Model &model, const States &states, uint64_t seed) {
  Compiler compiler;
  CompileOptions options;
  options.mode = CompileMode::Forward;
  ImportOptions import;
  import.dropout = false;
  auto session = compiler.importAndOpen(model.config, model.batch, model.seq, options, import);
  EXPECT_TRUE(session) << compiler.diagnostics();
  for (const plan::State *state : distinctStates(session->plan()))
    EXPECT_FALSE(session->setState(state->name(), states.at(state->name())));
  setBatch(model, *session, seed);
  EXPECT_FALSE(trainStep(*session, 0));
  return element(*session->getOutput("result0"));
}

TEST_P(Evaluation, IsTheForwardLossAndChangesNothing) {
  auto [model, text] = GetParam();
  Compiler compiler;
  auto session = compiler.importAndOpen(model.config, model.batch, model.seq, strategy(text));
  ASSERT_TRUE(session) << compiler.diagnostics();
  runtime::Session *evaluate = session->findEntry("evaluate");
  ASSERT_TRUE(evaluate);
  ASSERT_FALSE(session->initializeStates(/*seed=*/7));
  for (int step = 1; step <= 2; ++step) {
    setBatch(model, *session, step);
    ASSERT_FALSE(setStepState(*session, plan::State::RANDOM_KEY, {7, double(step)}));
    ASSERT_FALSE(trainStep(*session, 1e-2));
    States before = statesOf(*session);
    setBatch(model, *evaluate, 100 + step);
    auto problem = trainStep(*evaluate, 0);
    ASSERT_FALSE(problem) << problem->message;
    double loss = element(*evaluate->getOutput("loss"));
    EXPECT_NEAR(loss, forwardLoss(model, before, 100 + step), 1e-5 * loss);
    for (const auto &[name, tensor] : statesOf(*session))
      EXPECT_TRUE(tensor.bytes == before.at(name).bytes) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Evaluation, Evaluation,
    testing::Combine(testing::Values(kGpt2, kLlama),
                     testing::Values("", "m=4", "dp=3 m=2", "dp=2,tp=2 zero=1", "dp=4 zero=2 m=2",
                                     "fsdp=2,tp=2 zero=3 m=2", "tp=4 sp", "pp=2 m=1", "pp=2 m=4",
                                     "dp=2,pp=2 m=4 zero=3",
                                     "pp=2 m=4 schedule=interleaved chunks=2",
                                     "pp=2 m=4 schedule=zb-v", "pp=2 m=4 schedule=zb-h1",
                                     "pp=4 m=4 schedule=gpipe recompute=full",
                                     "dp=2,tp=2,pp=2 m=4 zero=1 recompute=selective")),
    [](const auto &info) {
      return std::string(std::get<0>(info.param).name) + "_" +
             strategyName(std::get<1>(info.param));
    });

} // namespace

} // namespace evaluationTest
