//===- ProximalTerm.cpp - The proximal term of a gradient -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/train/ProximalTerm.h"

#include "dialects/dtc/DtcOps.h"
#include "dialects/dtc/WeightsAttributes.h"

using namespace mlir;
using namespace dtc;

llvm::DenseMap<Attribute, BlockArgument> dtc::findOuterParameters(func::FuncOp function) {
  llvm::DenseMap<Attribute, BlockArgument> found;
  for (BlockArgument arg : function.getArguments()) {
    auto state = function.getArgAttrOfType<StringAttr>(arg.getArgNumber(), "dtc.state");
    if (state && state.getValue() == kOuterParametersState)
      found[function.getArgAttr(arg.getArgNumber(), "dtc.state_of")] = arg;
  }
  return found;
}

Value dtc::addProximalTerm(OpBuilder &builder, Value gradient, Value parameter, Value outer,
                           double strength, Value factor) {
  Location loc = gradient.getLoc();
  auto type = cast<RankedTensorType>(parameter.getType());
  auto scalar = RankedTensorType::get({}, type.getElementType());
  Value by = ConstantOp::create(builder, loc, scalar, strength);
  if (factor)
    by = MulOp::create(builder, loc, by, factor);
  if (type.getRank() > 0)
    by = BroadcastOp::create(builder, loc, type, by, ArrayRef<int64_t>());
  Value moved = SubOp::create(builder, loc, parameter, outer);
  moved.getDefiningOp()->setAttr(kReadsMasterAttrName, builder.getUnitAttr());
  return AddOp::create(builder, loc, gradient, MulOp::create(builder, loc, moved, by));
}
