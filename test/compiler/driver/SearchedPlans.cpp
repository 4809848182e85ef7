//===- SearchedPlans.cpp - Small models and their searched plans ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/compiler/driver/SearchedPlans.h"

#include "compiler/export/ExportPlan.h"
#include "compiler/import/ImportModel.h"
#include "compiler/passes/Passes.h"
#include "plan/PlanSummary.h"
#include "simulator/PlanSimulation.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>

using namespace dtc;
using namespace dtc::test;

const SearchedModel dtc::test::kGpt2 = {
    "Gpt2", R"({"model_type": "gpt2", "vocab_size": 64, "n_positions": 32,
  "n_embd": 32, "n_layer": 2, "n_head": 4, "attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0})",
    8, 16};
const SearchedModel dtc::test::kLlama = {
    "Llama", R"({"model_type": "llama", "vocab_size": 64, "hidden_size": 32,
  "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "max_position_embeddings": 32, "rms_norm_eps": 1e-5,
  "tie_word_embeddings": false})",
    8, 16};
const SearchedModel dtc::test::kDeepLlama = {
    "DeepLlama", R"({"model_type": "llama", "vocab_size": 48, "hidden_size": 32,
  "intermediate_size": 64, "num_hidden_layers": 6, "num_attention_heads": 4,
  "num_key_value_heads": 2, "max_position_embeddings": 32, "rms_norm_eps": 1e-5,
  "tie_word_embeddings": false})",
    32, 16};

void dtc::test::PrintTo(const SearchedModel &model, std::ostream *os) { *os << model.name; }

mlir::OwningOpRef<mlir::ModuleOp> SearchedModel::load(Compiler &compiler) const {
  if (batch == 0)
    return compiler.parse(text);
  ImportOptions options;
  options.batch = batch;
  options.seq = seq;
  ImportLog log;
  auto module = importModel(compiler.context(), text, "config.json", options, log);
  EXPECT_TRUE(log.errors.empty()) << log.errors.front();
  return module;
}

std::optional<plan::Plan> dtc::test::compileModel(const SearchedModel &model,
                                                  const CompileOptions &options,
                                                  std::string *diagnostics) {
  Compiler compiler;
  std::string text;
  compiler.context().getDiagEngine().registerHandler([&](mlir::Diagnostic &diagnostic) {
    text += diagnostic.str() + "\n";
    for (mlir::Diagnostic &note : diagnostic.getNotes())
      text += note.str() + "\n";
    return mlir::success();
  });
  auto module = model.load(compiler);
  plan::Plan plan;
  bool works = module && succeeded(compile(*module, options, "test", plan));
  if (diagnostics)
    *diagnostics = text;
  else
    EXPECT_TRUE(works) << text;
  return works ? std::optional(plan) : std::nullopt;
}

std::optional<plan::Plan> dtc::test::lowerModel(const SearchedModel &model, CompileOptions options,
                                                llvm::ArrayRef<int64_t> keepBytes) {
  options.recompute = Recompute::Auto;
  Compiler compiler;
  auto module = model.load(compiler);
  if (!module)
    return std::nullopt;
  mlir::PassManager manager(&compiler.context());
  buildPartitioning(manager, options);
  buildLowering(manager, options, keepBytes);
  manager.addPass(createPlanMemoryPass());
  plan::Plan plan;
  if (succeeded(declareMesh(*module, options)) && succeeded(manager.run(*module)) &&
      succeeded(exportPlan(*module, "test", plan)))
    return plan;
  ADD_FAILURE() << compiler.diagnostics();
  return std::nullopt;
}

int64_t dtc::test::arenaOf(const plan::Plan &plan) {
  uint64_t most = 0;
  for (const plan::Program &program : plan.programs())
    most = std::max<uint64_t>(most, program.arena_bytes());
  return int64_t(most);
}

double dtc::test::secondsOf(const plan::Plan &plan) {
  auto timeline = simulatePlan(plan);
  EXPECT_TRUE(timeline) << timeline.error().message;
  return timeline ? timeline->step().seconds() : 0;
}

double dtc::test::flopsOf(const plan::Plan &plan) { return summarizePlan(plan).flops; }

CompileOptions dtc::test::searchedStrategy(const std::string &text) {
  std::string rest;
  int64_t limit = 0;
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(text).split(parts, ' ', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef part : parts)
    if (part.consume_front("limit="))
      EXPECT_FALSE(part.getAsInteger(10, limit)) << text;
    else
      rest += part.str() + " ";
  CompileOptions options = strategy(rest);
  options.memoryLimit = limit;
  return options;
}

SearchedModel dtc::test::chain(int64_t batch, llvm::ArrayRef<int64_t> widths, bool named) {
  static const char *const kFunctions[] = {"dtc.tanh", "dtc.exp", "dtc.relu"};
  auto type = [](int64_t rows, int64_t columns) {
    return llvm::formatv("tensor<{0}x{1}xf32>", rows, columns).str();
  };
  std::string text =
      llvm::formatv("func.func @loss(%x: {0} {{dtc.input = \"x\", dtc.axes = [\"batch\", \"\"]}",
                    type(batch, widths.front()));
  for (size_t i = 1; i < widths.size(); ++i)
    text += llvm::formatv(", %w{0}: {1} {{dtc.param = \"w{0}\", dtc.init = #dtc.normal<0.1>}", i,
                          type(widths[i - 1], widths[i]));
  text += ") -> tensor<f32> {\n";
  std::string last = "%x";
  for (size_t i = 1; i < widths.size(); ++i) {
    std::string result = type(batch, widths[i]);
    std::string where = named ? llvm::formatv(" loc(\"h.{0}.mlp\")", i - 1).str() : "";
    text += llvm::formatv("  %m{0} = dtc.einsum \"bi,io->bo\" {1}, %w{0} : ({2}, {3}) -> {4}{5}\n",
                          i, last, type(batch, widths[i - 1]), type(widths[i - 1], widths[i]),
                          result, where);
    text += llvm::formatv("  %a{0} = {1} %m{0} : {2}{3}\n", i, kFunctions[i % 3], result, where);
    last = llvm::formatv("%a{0}", i);
  }
  text += llvm::formatv("  %sum = dtc.reduce sum {0} dims [0, 1] : ({1}) -> tensor<f32>\n"
                        "  return %sum : tensor<f32>\n}\n",
                        last, type(batch, widths.back()));
  return {named ? "NamedChain" : "Chain", text};
}
