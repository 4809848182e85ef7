//===- OuterFragments.cpp - Division of parameters into fragments --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/DescribeLocation.h"
#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/outer/OuterStepBuilder.h"
#include "dialects/dtc/DtcDialect.h"
#include "support/OuterEntries.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>
#include <string>

using namespace mlir;
using namespace dtc;

namespace {
/// A layer, or a parameter of none.
struct ParameterGroup {
  bool isLayer = false;
  int64_t elements = 0;
  SmallVector<StringRef> names;
};

/// Names in their order, numbers in them by their values.
struct NameOrder {
  bool operator()(StringRef a, StringRef b) const {
    int order = a.compare_numeric(b);
    return order != 0 ? order < 0 : a < b; // "1" and "01"
  }
};

using ParameterGroups = std::map<std::string, ParameterGroup, NameOrder>;
} // namespace

/// The layer of a parameter; empty if it is in none. A model that is a list of layers names them by
/// their numbers alone.
static std::string layerOf(StringRef name) {
  StringRef first = name.split('.').first;
  if (!first.empty() && llvm::all_of(first, llvm::isDigit))
    return first.str();
  LayerName layer(name);
  return layer.prefix.empty() ? "" : layer.layer();
}

/// The elements of the whole parameter.
static int64_t elementsOf(func::FuncOp function, unsigned index) {
  auto global = function.getArgAttrOfType<DenseI64ArrayAttr>(index, "dtc.global_shape");
  auto type = cast<RankedTensorType>(function.getArgumentTypes()[index]);
  return ShapedType::getNumElements(global ? global.asArrayRef() : type.getShape());
}

/// Those of all functions that results update. Stages of a pipeline may share parameters, and the
/// functions of a schedule may have the layers in another order than the model.
static ParameterGroups findGroups(ModuleOp module) {
  ParameterGroups groups;
  llvm::StringSet<> seen;
  for (auto function : module.getOps<func::FuncOp>()) {
    llvm::SmallDenseSet<int64_t> updated;
    for (unsigned index = 0; index < function.getNumResults(); ++index)
      if (auto updates = function.getResultAttrOfType<IntegerAttr>(index, "dtc.updates"))
        updated.insert(updates.getInt());
    for (unsigned index = 0; index < function.getNumArguments(); ++index) {
      auto name = function.getArgAttrOfType<StringAttr>(index, DtcDialect::kParamAttrName);
      if (!name || !updated.contains(index) || !seen.insert(name.getValue()).second)
        continue;
      std::string layer = layerOf(name.getValue());
      ParameterGroup &group = groups[layer.empty() ? name.str() : layer];
      group.isLayer = !layer.empty();
      group.elements += elementsOf(function, index);
      group.names.push_back(name.getValue());
    }
  }
  return groups;
}

FailureOr<llvm::StringMap<int64_t>> dtc::assignFragments(ModuleOp module, int64_t fragments) {
  if (failed(checkOption(module, "fragments", fragments, 1, kMaxOuterFragments)))
    return failure();
  ParameterGroups groups = findGroups(module);
  if (fragments > 1 && int64_t(groups.size()) < fragments)
    return module.emitError() << "there are " << fragments << " fragments of outer steps, and "
                              << groups.size()
                              << " layers and other parameters that train; choose at most as many "
                                 "fragments";
  SmallVector<int64_t> sizes(fragments, 0);
  llvm::StringMap<int64_t> fragmentOf;
  auto put = [&](const ParameterGroup &group, int64_t fragment) {
    sizes[fragment] += group.elements;
    for (StringRef name : group.names)
      fragmentOf[name] = fragment;
  };
  int64_t layers = 0;
  for (auto &[name, group] : groups)
    if (group.isLayer)
      put(group, layers++ % fragments);
  for (auto &[name, group] : groups)
    if (!group.isLayer)
      put(group, llvm::min_element(sizes) - sizes.begin());
  return fragmentOf;
}
