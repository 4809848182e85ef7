//===- DecidedAxes.cpp - Axes that propagation chose for an op ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/sharding/DecidedAxes.h"

using namespace mlir;
using namespace dtc;

std::optional<FactorAxes> dtc::decidedAxes(Operation *op, const LinkedMesh &mesh,
                                           const ShardingRule &rule) {
  auto attr = op->getAttrOfType<ArrayAttr>(dist::kFactorsAttrName);
  if (!attr || attr.size() != rule.factors.size())
    return std::nullopt;
  FactorAxes axes(rule.factors.size());
  for (auto [list, names] : llvm::zip_equal(axes, attr.getAsRange<ArrayAttr>()))
    for (auto name : names.getAsRange<StringAttr>()) {
      std::optional<unsigned> axis = mesh.find(name);
      if (!axis)
        return std::nullopt;
      list.push_back(*axis);
    }
  return axes;
}
