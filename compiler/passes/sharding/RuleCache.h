//===- RuleCache.h - Cache of sharding rules ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_SHARDING_RULECACHE_H
#define DTC_COMPILER_PASSES_SHARDING_RULECACHE_H

#include "dialects/dtc/DtcOps.h"

#include "llvm/ADT/DenseMap.h"

#include <memory>

namespace dtc {

/// The sharding rules of ops. Passes ask for the same one many times, and making one takes longer
/// than finding it. Types of operands and results must not change while the cache lives.
class RuleCache {
public:
  const ShardingRule &of(ShardingRuleOpInterface op) {
    std::unique_ptr<ShardingRule> &rule = rules[op];
    if (!rule)
      rule = std::make_unique<ShardingRule>(op.getShardingRule());
    return *rule;
  }
  /// To be called before an op is erased: another may get its place in memory.
  void forget(mlir::Operation *op) { rules.erase(op); }

private:
  llvm::DenseMap<mlir::Operation *, std::unique_ptr<ShardingRule>> rules;
};

} // namespace dtc

#endif // DTC_COMPILER_PASSES_SHARDING_RULECACHE_H
