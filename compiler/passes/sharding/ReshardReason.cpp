//===- ReshardReason.cpp - Readable reasons of reshards -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/sharding/ReshardReason.h"

#include "compiler/analysis/DescribeLocation.h"
#include "dialects/dtc/AgreedAttribute.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace dtc;

DictionaryAttr dtc::describeReason(const LinkedMesh &mesh, Value value, const Layout &from,
                                   const Layout &to, Operation *user) {
  Builder b(user->getContext());
  // Whose sum it is says more.
  while (auto sum = value.getDefiningOp<dist::SumBatchesOp>())
    value = sum.getInput();
  std::string what = "a value", remedy;
  bool isParameter = false;
  const bool isAgreed = value.getDefiningOp() && value.getDefiningOp()->hasAttr(kAgreedAttrName);
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    auto function = cast<func::FuncOp>(arg.getOwner()->getParentOp());
    for (StringRef key :
         {"dtc.param", "dtc.state", "dtc.cache", "dtc.input", "dtc.scalar", "dtc.step_state"})
      if (auto name = function.getArgAttrOfType<StringAttr>(arg.getArgNumber(), key)) {
        isParameter = key == "dtc.param";
        what = ((isParameter ? "parameter " : "argument ") + name.getValue()).str();
      }
  } else {
    what = ("result of " + value.getDefiningOp()->getName().getStringRef()).str();
    if (isAgreed)
      what += ", on which all devices agree";
  }
  AxisList completed, gathered;
  for (unsigned axis = 0; axis < mesh.axes.size(); ++axis) {
    if (from.isPartialOver(axis) && !to.isPartialOver(axis))
      completed.push_back(axis);
    if (from.isShardedOver(axis) && !to.isShardedOver(axis))
      gathered.push_back(axis);
  }
  if (isAgreed)
    remedy = ""; // there is none
  else if (!completed.empty())
    remedy = std::string("it is a ") + name(from.partialKind) + " over " + mesh.str(completed) +
             ", which split a dimension that was reduced; keep that dimension whole";
  else if (isParameter && !gathered.empty())
    remedy = "keep the parameter whole over " + mesh.str(gathered);
  else
    remedy = "give the value and its user one sharding";
  std::string consumer =
      isa<func::ReturnOp>(user)
          ? "the step's result"
          : (user->getName().getStringRef() + " in " + describeLocation(user->getLoc())).str();
  auto text = [&](StringRef key, const std::string &value) {
    return b.getNamedAttr(key, b.getStringAttr(value));
  };
  return b.getDictionaryAttr({text("value", what), text("from", from.str(mesh)),
                              text("to", to.str(mesh)), text("consumer", consumer),
                              text("remedy", remedy)});
}
