//===- TestShardingRules.cpp - Checks and prints sharding rules -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/lib/passes/TestPasses.h"

#include "dialects/dtc/DtcOps.h"

#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace {

/// "a", "b", ... "z", "a1", ...
std::string getFactorName(unsigned factor) {
  std::string name(1, static_cast<char>('a' + factor % 26));
  return factor < 26 ? name : name + std::to_string(factor / 26);
}

std::string formatTensors(ArrayRef<dtc::TensorFactors> tensors) {
  std::string text;
  for (auto [index, dims] : llvm::enumerate(tensors)) {
    if (index > 0)
      text += ",";
    for (const auto &group : dims) {
      std::string factors = llvm::join(llvm::map_range(group, getFactorName), "");
      text += group.size() == 1 ? factors : "(" + factors + ")";
    }
  }
  return text;
}

/// "abc,cd->abd a=16 b=128 c=64 sum d=256 whole linear {0} {1} indices 1: c."
std::string formatRule(const dtc::ShardingRule &rule) {
  std::string text = formatTensors(rule.operands) + "->" + formatTensors(rule.results);
  for (auto [index, factor] : llvm::enumerate(rule.factors)) {
    text += " " + getFactorName(index) + "=" + std::to_string(factor.size);
    if (factor.whole)
      text += " whole";
    if (factor.reduction)
      text += std::string(" ") + name(*factor.reduction);
  }
  if (!rule.linearOperands.empty())
    text += " linear";
  for (const auto &set : rule.linearOperands)
    text += " {" +
            llvm::join(llvm::map_range(set, [](unsigned i) { return std::to_string(i); }), ", ") +
            "}";
  for (auto [operand, factor] : rule.indexedFactors)
    text += " indices " + std::to_string(operand) + ": " + getFactorName(factor);
  return text + ".";
}

struct TestPrintShardingRulesPass : PassWrapper<TestPrintShardingRulesPass, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestPrintShardingRulesPass)

  StringRef getArgument() const final { return "test-print-sharding-rules"; }
  StringRef getDescription() const final { return "Checks sharding rules and remarks on them"; }

  void runOnOperation() override {
    WalkResult result = getOperation()->walk([](dtc::ShardingRuleOpInterface op) {
      dtc::ShardingRule rule = op.getShardingRule();
      if (failed(dtc::checkShardingRule(
              op, rule, [&] { return op->emitError() << "invalid sharding rule: "; })))
        return WalkResult::interrupt();
      op->emitRemark() << formatRule(rule);
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace

void dtc::test::registerTestShardingRules() { PassRegistration<TestPrintShardingRulesPass>(); }
