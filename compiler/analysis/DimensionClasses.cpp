//===- DimensionClasses.cpp - Dimensions that are split together ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/DimensionClasses.h"

#include "dialects/dtc/DtcOps.h"

#include <algorithm>
#include <map>
#include <optional>

using namespace mlir;
using namespace dtc;

dtc::DimensionClasses::DimensionClasses(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments())
    add(argument);
  for (Operation &op : function.front()) {
    for (Value result : op.getResults())
      add(result);
    unite(&op);
  }
  collect(function);
}

void dtc::DimensionClasses::add(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return;
  firstNode[value] = parents.size();
  values.push_back(value);
  for (int64_t size : type.getShape()) {
    parents.push_back(parents.size());
    sizes.push_back(size);
  }
}

size_t dtc::DimensionClasses::rootOf(size_t node) const {
  while (parents[node] != node) {
    parents[node] = parents[parents[node]];
    node = parents[node];
  }
  return node;
}

void dtc::DimensionClasses::unite(Operation *op) {
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (!interface)
    return;
  ShardingRule rule = interface.getShardingRule();
  // Each factor has the node of a dimension in which it is the first factor: propagation splits a
  // product by its first factor.
  std::vector<std::optional<size_t>> nodes(rule.factors.size());
  auto visit = [&](ValueRange tensors, ArrayRef<TensorFactors> all) {
    for (auto [value, dims] : llvm::zip_equal(tensors, all))
      for (auto [dim, factors] : llvm::enumerate(dims)) {
        auto *first =
            llvm::find_if(factors, [&](unsigned factor) { return rule.factors[factor].size > 1; });
        if (first == factors.end())
          continue;
        size_t node = rootOf(nodeOf(value, unsigned(dim)));
        sizes[node] = std::min(sizes[node], rule.factors[*first].size);
        std::optional<size_t> &other = nodes[*first];
        if (!other) {
          other = node;
          continue;
        }
        // The first in the program stands for all.
        size_t before = rootOf(*other), root = std::min(before, node),
               child = std::max(before, node);
        parents[child] = root;
        sizes[root] = std::min(sizes[root], sizes[child]);
      }
  };
  visit(op->getOperands(), rule.operands);
  visit(op->getResults(), rule.results);
}

void dtc::DimensionClasses::collect(func::FuncOp function) {
  std::map<size_t, DimensionClass> byRoot;
  auto addNames = [&](Value value, ArrayAttr names) {
    if (!names)
      return;
    for (auto [dim, name] : llvm::enumerate(names.getAsRange<StringAttr>()))
      if (!name.empty())
        byRoot[rootOf(nodeOf(value, unsigned(dim)))].names.insert(name.str());
  };
  for (Value value : values) {
    std::set<size_t> seen;
    for (unsigned dim = 0; dim < cast<RankedTensorType>(value.getType()).getRank(); ++dim) {
      size_t root = rootOf(nodeOf(value, dim));
      DimensionClass &group = byRoot[root];
      group.size = sizes[root];
      group.isTwiceInValue |= !seen.insert(root).second;
      if (auto argument = dyn_cast<BlockArgument>(value))
        group.arguments.emplace_back(argument.getArgNumber(), dim);
    }
    if (auto argument = dyn_cast<BlockArgument>(value))
      addNames(value, function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(),
                                                           DtcDialect::kAxesAttrName));
    else if (Operation *op = value.getDefiningOp(); op->getNumResults() == 1)
      addNames(value, op->getAttrOfType<ArrayAttr>(DtcDialect::kAxesAttrName));
  }
  // A root is the first of its class in the program, so an argument's where it has one.
  for (auto &[root, group] : byRoot)
    if (!group.arguments.empty())
      found.push_back(std::move(group));
}
