//===- NameDimensions.cpp - Logical axes for single dimensions ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/Passes.h"
#include "compiler/passes/SignatureAttributes.h"
#include "compiler/passes/sharding/ArgumentDims.h"
#include "dialects/dtc/DtcOps.h"

#include "llvm/ADT/StringSet.h"

namespace dtc {
#define GEN_PASS_DEF_NAMEDIMENSIONSPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {
struct NameDimensionsPass : dtc::impl::NameDimensionsPassBase<NameDimensionsPass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<StringRef> keys;
    llvm::StringMap<StringRef> byName; // entries of logical axes
    for (StringRef entry : shard) {
      StringRef key = entry.split('=').first;
      if (!namesArgumentDims(key))
        byName.try_emplace(key, entry);
      else if (!llvm::is_contained(keys, key)) // two of one key dtc-propagate-shardings refuses
        keys.push_back(key);
    }
    if (keys.empty())
      return;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && failed(name(function, keys, byName)))
        return signalPassFailure();
  }

private:
  LogicalResult name(func::FuncOp function, ArrayRef<StringRef> keys,
                     const llvm::StringMap<StringRef> &byName) {
    // Errors of the axis map have no place in the model.
    auto loc = FileLineColLoc::get(&getContext(), "<command line>", 1, 1);
    SignatureAttributes attributes(function);
    for (StringRef key : keys) {
      auto dims = findArgumentDims(function, key);
      if (!dims)
        return emitError(loc) << "shard: " << dims.error().message;
      for (ArgumentDim found : *dims) {
        auto type = cast<RankedTensorType>(function.getArgument(found.argument).getType());
        NamedAttrList &list = attributes.argument(found.argument);
        SmallVector<Attribute> names(size_t(type.getRank()), StringAttr::get(&getContext(), ""));
        if (auto axes = dyn_cast_or_null<ArrayAttr>(list.get(DtcDialect::kAxesAttrName)))
          names.assign(axes.begin(), axes.end());
        StringRef before = cast<StringAttr>(names[found.dim]).getValue();
        auto other = byName.find(before);
        if (namesArgumentDims(before) || other != byName.end())
          return emitError(loc) << "shard: '" << key << "' and '"
                                << (other != byName.end() ? other->second : before)
                                << "' both map dimension " << found.dim << " of '"
                                << argumentName(function, found.argument)
                                << "'; keep one of the two";
        names[found.dim] = StringAttr::get(&getContext(), key);
        list.set(DtcDialect::kAxesAttrName, ArrayAttr::get(&getContext(), names));
      }
    }
    attributes.commit();
    return success();
  }
};
} // namespace
