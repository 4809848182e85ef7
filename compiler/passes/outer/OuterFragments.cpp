//===- OuterFragments.cpp - Division of parameters into fragments --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/outer/OuterStepBuilder.h"
#include "dialects/dtc/DtcDialect.h"
#include "support/OuterEntries.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>

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

using ParameterGroups = std::map<StringRef, ParameterGroup, NameOrder>;
} // namespace

/// The layer of a parameter: its name up to the first number between dots; empty if there is none.
static StringRef layerOf(StringRef name) {
  for (size_t begin = 0; begin < name.size();) {
    size_t end = std::min(name.find('.', begin), name.size());
    if (StringRef part = name.slice(begin, end); !part.empty() && llvm::all_of(part, llvm::isDigit))
      return name.take_front(end);
    begin = end + 1;
  }
  return {};
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
      StringRef layer = layerOf(name.getValue());
      ParameterGroup &group = groups[layer.empty() ? name.getValue() : layer];
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
