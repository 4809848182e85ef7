//===- KnownTrialsTest.cpp - Tests of what trials of a search share -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/KnownTrials.h"

#include "compiler/driver/CandidateSearch.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/pipeline/SchedulePipeline.h"
#include "test/compiler/driver/SearchedPlans.h"
#include "test/lib/RandomCases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <set>
#include <string>

namespace knownTrialsTest {

using namespace dtc;
using namespace dtc::test;

namespace {

/// A model with experts.
const SearchedModel kMixtral = {"Mixtral",
                                R"({"model_type": "mixtral", "vocab_size": 48, "hidden_size": 16,
  "intermediate_size": 24, "num_hidden_layers": 4, "num_attention_heads": 4,
  "num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2,
  "max_position_embeddings": 32, "rms_norm_eps": 1e-5, "sliding_window": null,
  "tie_word_embeddings": false})",
                                32, 16};

struct PipelineCase {
  SearchedModel model;
  const char *strategy;
};

void PrintTo(const PipelineCase &each, std::ostream *os) {
  *os << each.model.name << " " << each.strategy;
}

class KnownFunctions : public testing::TestWithParam<PipelineCase> {};

/// The functions of all devices by name, as text.
using Functions = std::map<std::string, std::string>;

} // namespace

static Functions textsOf(mlir::ModuleOp module) {
  Functions texts;
  for (auto function : module.getOps<mlir::func::FuncOp>())
    llvm::raw_string_ostream(texts[function.getSymName().str()]) << function;
  return texts;
}

/// The arenas after all passes from the functions of devices on.
static std::vector<int64_t> lower(mlir::ModuleOp module, const ResolvedOptions &options) {
  EXPECT_TRUE(succeeded(runPasses(module, [&](mlir::OpPassManager &manager) {
    buildPrograms(manager, options);
    manager.addPass(createPlanMemoryPass());
  })));
  std::vector<int64_t> arenas;
  for (auto program : module.getOps<exec::ProgramOp>())
    arenas.push_back(int64_t(*program.getArenaBytes()));
  return arenas;
}

// Trials with random bounds on the saved bytes of each device. A function that a trial takes from
// an earlier one is the same as the one that it would build, and all arenas are those of a search
// that knows nothing.
TEST_P(KnownFunctions, AreThoseOfAllDevices) {
  forEachRandomCase(3, [&](uint64_t seed) {
    std::mt19937_64 random(seed);
    ResolvedOptions options = searchedStrategy(GetParam().strategy);
    options.recompute = Recompute::Auto;
    Compiler compiler;
    auto local = GetParam().model.load(compiler);
    ASSERT_TRUE(local && succeeded(partitionModel(*local, options))) << compiler.diagnostics();
    ResolvedOptions rest = options;
    rest.recompute = Recompute::None; // it is done first

    KnownTrials known;
    std::vector<int64_t> bounds;
    for (const auto &[name, size] : options.mesh)
      if (name == kPipelineAxis)
        bounds.assign(size_t(size), std::numeric_limits<int64_t>::max());
    std::vector<DeviceSavedBytes> whole; // of each device, where it recomputes nothing
    std::set<std::string> built;         // functions, as text with their names
    size_t spared = 0;
    for (int trial = 0; trial < 8; ++trial) {
      mlir::OwningOpRef<mlir::ModuleOp> all = local->clone(), some = local->clone();
      auto keeps = recomputeActivations(*all, recomputeOptions(options, bounds));
      ASSERT_TRUE(succeeded(keeps)) << compiler.diagnostics();
      ASSERT_TRUE(succeeded(runPasses(
          *all, [&](mlir::OpPassManager &manager) { buildDeviceFunctions(manager, rest); })));
      const Functions expected = textsOf(*all);

      ASSERT_TRUE(succeeded(
          recomputeActivations(*some, recomputeOptions(options, bounds), &known.choices)));
      SchedulePipelinePassOptions schedule;
      schedule.schedule = options.schedule;
      schedule.chunks = chunksOf(options);
      size_t asked = 0, needed = 0;
      ASSERT_TRUE(succeeded(
          schedulePipeline(*some, schedule, [&](int64_t device, llvm::ArrayRef<int64_t> order) {
            EXPECT_EQ(device, int64_t(asked++));
            const bool isNew = known.isNew(int(device), bounds[size_t(device)], order);
            needed += isNew;
            return isNew;
          })));
      EXPECT_EQ(asked, bounds.size());
      const Functions found = textsOf(*some);
      EXPECT_EQ(found.size(), needed);
      for (const auto &[name, text] : expected)
        if (auto it = found.find(name); it != found.end()) {
          EXPECT_EQ(it->second, text);
          built.insert(text);
        } else {
          EXPECT_TRUE(built.contains(text)) << text;
        }
      spared += asked - needed;

      const std::vector<std::optional<int64_t>> arenas = known.eraseKnown(*some);
      EXPECT_EQ(known.complete(arenas, lower(*some, rest)), lower(*all, rest));
      if (whole.empty())
        whole = *keeps;
      // One or two devices get another bound, which they may have had before.
      for (int change = 0; change < 2; ++change) {
        const size_t device = random() % bounds.size();
        bounds[device] = whole[device].bytes * int64_t(random() % 4) / 3;
      }
    }
    EXPECT_GT(spared, bounds.size());
  });
}

INSTANTIATE_TEST_SUITE_P(
    Pipelines, KnownFunctions,
    testing::Values(PipelineCase{kDeepLlama, "pp=3 m=6"}, // as many layers on each stage
                    PipelineCase{kDeepLlama, "pp=4 m=8"}, // uneven
                    PipelineCase{kDeepLlama, "pp=3,dp=2 m=4 zero=1 schedule=interleaved chunks=2"},
                    PipelineCase{kDeepLlama, "pp=3 m=6 schedule=zb-v"},
                    PipelineCase{kDeepLlama, "pp=4 m=8 schedule=zb-h1"},
                    PipelineCase{kDeepLlama, "pp=2,dp=2,tp=2 m=4 sp zero=2"},
                    PipelineCase{kGpt2, "pp=2 m=4"}, // tied embeddings: both have the weight
                    PipelineCase{kMixtral, "pp=4,ep=2 m=4"}));

} // namespace knownTrialsTest
