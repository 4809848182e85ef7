//===- ScheduleEquivalenceTest.cpp - Every schedule, in f64 ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Every schedule with one to four microbatches, two to five devices and one or two batches of a
// step gives the losses, norms and states of one device. In f64 the bound is 1e-9, so that a term
// that is left out, counted twice or overwritten stands out from rounding.
//
// DTC_RANDOM_SEED sets which of all strategies run, DTC_RANDOM_CASES how many (all of them: 1000).
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/PipelineSchedule.h"
#include "plan/ClosingInstructions.h"
#include "plan/PlanTypes.h"
#include "plan/plan.pb.h"
#include "test/lib/RandomCases.h"
#include "test/lib/compile/CompileAndRun.h"
#include "test/lib/plans/TrainStep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <random>

namespace scheduleEquivalenceTest {

using namespace dtc;
using namespace dtc::test;

namespace {

constexpr int64_t kSamples = 24, kSeq = 4;
constexpr int kStepsHere = 3;
constexpr double kBound = 1e-9;

struct SmallModel {
  const char *name;
  const char *config;
};

/// One with tied embeddings, one without.
const SmallModel kModels[] = {
    {"gpt2", R"({"model_type": "gpt2", "vocab_size": 16, "n_positions": 8, "n_embd": 8,
                 "n_layer": 5, "n_head": 2, "attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0})"},
    {"llama", R"({"model_type": "llama", "vocab_size": 16, "hidden_size": 8,
                  "intermediate_size": 12, "num_hidden_layers": 6, "num_attention_heads": 2,
                  "num_key_value_heads": 1, "max_position_embeddings": 8, "rms_norm_eps": 1e-5,
                  "tie_word_embeddings": false})"},
};

struct Case {
  const SmallModel *model;
  std::string strategy;
  int64_t batches;
};

struct Results {
  std::vector<double> losses, norms;
  std::map<std::string, HostTensor> states;
  int closingScatters = 0; // reduce-scatters that run for the last microbatch alone
  int scattersInSums = 0;  // those of them with a result in the bytes of a sum
};

/// Counts what closing instructions scatter.
void countClosingScatters(const plan::Plan &plan, Results &results) {
  for (const plan::Program &program : plan.programs()) {
    ClosingInstructions closing(program);
    std::map<uint64_t, uint64_t> sums; // where their bytes begin and end
    auto rangeOf = [&](uint32_t buffer) {
      const plan::Buffer &at = program.buffers(int(buffer));
      return std::pair(at.offset(), at.offset() + uint64_t(typeOf(at).numBytes()));
    };
    for (const plan::Task &task : program.tasks())
      for (const plan::Instruction &instruction : task.instructions())
        if (instruction.kernel().kernel() == "accumulate")
          sums.insert(rangeOf(instruction.kernel().outputs(0)));
    for (int t = 0; t < program.tasks_size(); ++t)
      for (int i = 0; i < program.tasks(t).instructions_size(); ++i) {
        const plan::Collective &collective = program.tasks(t).instructions(i).collective();
        if (!closing.contains(uint32_t(t), i) ||
            collective.kind() != plan::Collective::REDUCE_SCATTER)
          continue;
        ++results.closingScatters;
        auto [begin, end] = rangeOf(collective.tensors(0).output());
        auto sum = sums.upper_bound(begin);
        results.scattersInSums += sum != sums.begin() && end <= std::prev(sum)->second;
      }
  }
}

/// Trains on the same samples, in steps of as many batches as the case has.
Results train(const Case &example) {
  Results results;
  Compiler compiler;
  int64_t batch = kSamples / example.batches;
  auto module = compiler.importText(example.model->config, "config.json", batch, kSeq);
  EXPECT_TRUE(module) << compiler.diagnostics();
  if (!module)
    return results;
  toDouble(*module);
  CompileOptions options = strategy(example.strategy);
  options.eps = 1e-4; // gradients that are all rounding make no full steps
  auto session = compiler.open(*module, options, 1, example.batches);
  EXPECT_TRUE(session) << compiler.diagnostics();
  if (!session)
    return results;
  EXPECT_FALSE(session->initializeStates(7));
  for (int step = 1; step <= kStepsHere; ++step) {
    TensorType all{DType::I32, {kSamples, kSeq}};
    for (const char *name : {"tokens", "labels"}) {
      HostTensor samples = randomTensor(all, uint64_t(step), name, 16);
      for (int64_t index = 0; index < example.batches; ++index) {
        HostTensor part(TensorType{DType::I32, {batch, kSeq}});
        std::memcpy(part.bytes.data(), samples.as<int32_t>() + index * batch * kSeq,
                    part.bytes.size());
        EXPECT_FALSE(session->setInput(name, std::move(part), index));
      }
    }
    auto problem = trainStep(*session, 1e-2);
    EXPECT_FALSE(problem) << problem->message;
    if (problem)
      return results;
    results.losses.push_back(element(*session->getOutput("loss")));
    results.norms.push_back(element(*session->getOutput("grad_norm")));
  }
  for (const plan::State *state : distinctStates(session->plan()))
    results.states.emplace(state->name(), *session->getState(state->name()));
  countClosingScatters(session->plan(), results);
  return results;
}

const Results &trainOnOneDevice(const SmallModel &model) {
  static std::map<std::string, Results> known;
  auto [it, fresh] = known.try_emplace(model.name);
  if (fresh)
    it->second = train({&model, "", 1});
  return it->second;
}

void expectEqual(const Results &expected, const Results &actual) {
  ASSERT_EQ(expected.losses.size(), size_t(kStepsHere));
  ASSERT_EQ(actual.losses.size(), size_t(kStepsHere));
  for (int step = 0; step < kStepsHere; ++step) {
    EXPECT_NEAR(actual.losses[step], expected.losses[step], kBound * expected.losses[step]);
    EXPECT_NEAR(actual.norms[step], expected.norms[step], kBound * expected.norms[step]);
  }
  ASSERT_EQ(actual.states.size(), expected.states.size());
  for (const auto &[name, tensor] : expected.states) {
    ASSERT_TRUE(actual.states.count(name)) << name;
    EXPECT_LT(relativeDifference(tensor, actual.states.at(name), 1e-6), kBound) << name;
  }
}

std::vector<Case> allCases() {
  std::vector<Case> cases;
  for (const SmallModel &model : kModels)
    for (const ScheduleRule &rule : getScheduleRules())
      for (int devices = 2; devices <= 5; ++devices)
        for (int microbatches = 1; microbatches <= 4; ++microbatches)
          for (int64_t batches : {1, 2}) {
            std::string text = "pp=" + std::to_string(devices) +
                               " m=" + std::to_string(microbatches) +
                               " schedule=" + rule.name.str();
            if (rule.minChunks > 1)
              text += " chunks=" + std::to_string(rule.minChunks);
            if (batches > 1)
              text += " accumulate";
            cases.push_back({&model, text, batches});
          }
  return cases;
}

// A V-shaped schedule runs the backward passes of two stages of a device before their weight
// passes: the result of one must not be overwritten before the other has read it.
TEST(ScheduleEquivalence, OfOneMicrobatchInAV) {
  Case example{&kModels[0], "dp=2,pp=5 schedule=zb-v", 1};
  expectEqual(trainOnOneDevice(*example.model), train(example));
}

// Gradients are scattered while the backward pass of the last microbatch goes on, and the shards
// take the bytes of sums that were scattered before.
TEST(ScheduleEquivalence, OfShardsInTheBytesOfSums) {
  for (const SmallModel &model : kModels)
    for (const char *text :
         {"dp=2 m=4 zero=1", "dp=2 m=2 zero=1", "dp=3 m=4 zero=1", "dp=2,pp=2 m=4 zero=1",
          "dp=3,pp=2 m=4 zero=1 schedule=zb-h1", "dp=2,pp=2 m=2 zero=1 schedule=zb-v",
          "dp=2,tp=2,pp=2 m=2 zero=1 schedule=interleaved chunks=2"})
      for (int64_t batches : {1, 2}) {
        Case example{&model, std::string(text) + " bucket=512" + (batches > 1 ? " accumulate" : ""),
                     batches};
        SCOPED_TRACE(std::string(model.name) + " " + example.strategy);
        Results results = train(example);
        expectEqual(trainOnOneDevice(model), results);
        EXPECT_GT(results.closingScatters, 1);
        EXPECT_GT(results.scattersInSums, 0) << "of " << results.closingScatters;
      }
}

TEST(ScheduleEquivalence, OfAllSchedules) {
  std::vector<Case> cases = allCases();
  std::mt19937_64 random(randomSeed());
  size_t count = std::min<size_t>(randomCases(40), cases.size());
  std::shuffle(cases.begin(), cases.end(), random);
  std::cout << count << " of " << cases.size() << " strategies\n";
  for (const Case &example : llvm::ArrayRef(cases).take_front(count)) {
    SCOPED_TRACE(std::string(example.model->name) + " " + example.strategy + ", " +
                 std::to_string(example.batches) + " batches");
    expectEqual(trainOnOneDevice(*example.model), train(example));
    if (testing::Test::HasFatalFailure())
      return;
  }
}

} // namespace

} // namespace scheduleEquivalenceTest
