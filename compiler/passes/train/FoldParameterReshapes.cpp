//===- FoldParameterReshapes.cpp - Fold reshapes into parameters ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/Passes.h"
#include "compiler/passes/SignatureAttributes.h"

#include "mlir/IR/Builders.h"

namespace dtc {
#define GEN_PASS_DEF_FOLDPARAMETERRESHAPESPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

/// Whether an attribute dtc.axes, which may be absent, names a dimension.
static bool namesAxis(Attribute axes) {
  auto names = dyn_cast_or_null<ArrayAttr>(axes);
  return names && llvm::any_of(names.getAsRange<StringAttr>(),
                               [](StringAttr name) { return !name.getValue().empty(); });
}

/// The reshapes that are all the uses of `arg`, whose dtc.axes are `axes`, if they all go to one
/// type and agree on logical axes; else none.
static SmallVector<ReshapeOp> foldableReshapes(BlockArgument arg, Attribute axes) {
  SmallVector<ReshapeOp> reshapes;
  for (Operation *user : arg.getUsers()) {
    auto reshape = dyn_cast<ReshapeOp>(user);
    if (!reshape || (!reshapes.empty() &&
                     (reshape.getType() != reshapes.front().getType() ||
                      reshape->getAttr("dtc.axes") != reshapes.front()->getAttr("dtc.axes"))))
      return {};
    // A sharding that the user wrote on either shape is about that shape.
    if (reshape->hasAttr(dist::kShardingAttrName))
      return {};
    // Names that the other shape does not give again would be lost.
    if (namesAxis(axes) && !reshape->hasAttr("dtc.axes"))
      return {};
    reshapes.push_back(reshape);
  }
  return reshapes;
}

namespace {
struct FoldParameterReshapesPass
    : dtc::impl::FoldParameterReshapesPassBase<FoldParameterReshapesPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        runOnFunction(function);
  }

  void runOnFunction(func::FuncOp function) {
    SignatureAttributes attributes(function);
    for (BlockArgument arg : function.getArguments()) {
      unsigned index = arg.getArgNumber();
      if (!function.getArgAttr(index, "dtc.param") || dist::getSharding(arg))
        continue;
      SmallVector<ReshapeOp> reshapes =
          foldableReshapes(arg, function.getArgAttr(index, "dtc.axes"));
      if (reshapes.empty())
        continue;
      auto fileShape = cast<RankedTensorType>(arg.getType()).getShape();
      attributes.argument(index).erase("dtc.axes");
      arg.setType(reshapes.front().getType());
      if (!function.getArgAttr(index, "dtc.file_shape"))
        attributes.argument(index).set("dtc.file_shape",
                                       DenseI64ArrayAttr::get(&getContext(), fileShape));
      if (Attribute axes = reshapes.front()->getAttr("dtc.axes"))
        attributes.argument(index).set("dtc.axes", axes);
      for (ReshapeOp reshape : reshapes) {
        reshape.getResult().replaceAllUsesWith(arg);
        reshape.erase();
      }
    }
    attributes.commit();
    function.setType(FunctionType::get(&getContext(), function.front().getArgumentTypes(),
                                       function.getResultTypes()));
  }
};
} // namespace
