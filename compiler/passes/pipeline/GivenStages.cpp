//===- GivenStages.cpp - Stages given by the user -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/pipeline/GivenStages.h"

#include "compiler/analysis/DescribeLocation.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace dtc;

/// The names that an item stands for: itself, or the layers of a range that the function has.
static FailureOr<SmallVector<std::string>>
expand(func::FuncOp function, StringRef item, const llvm::MapVector<StringRef, size_t> &layers) {
  auto unknown = [&](StringRef name) {
    SmallVector<std::string> known;
    for (auto &[layer, first] : layers)
      known.push_back(layer.str());
    return function.emitError() << "stages name the layer '" << name
                                << "', which no op has; the layers are " << llvm::join(known, ", ");
  };
  if (layers.contains(item))
    return SmallVector<std::string>{item.str()};
  auto [first, last] = item.split('-');
  if (last.empty())
    return unknown(item);
  for (StringRef end : {first, last})
    if (!layers.contains(end))
      return unknown(end);
  LayerName from(first), to(last);
  if (from.prefix.empty() || from.prefix != to.prefix || from.number > to.number)
    return function.emitError() << "stages have the range '" << item
                                << "', expected two layers of one kind in order, such as h.0-h.3";
  SmallVector<std::string> names;
  for (int64_t number = from.number; number <= to.number; ++number) {
    std::string name = (from.prefix + Twine(number)).str();
    if (!layers.contains(name))
      return unknown(name);
    names.push_back(name);
  }
  return names;
}

FailureOr<std::vector<size_t>> dtc::cutAtGivenStages(func::FuncOp function,
                                                     ArrayRef<Operation *> ops, int64_t stages,
                                                     StringRef given) {
  std::vector<std::string> layerOf;
  for (Operation *op : ops)
    layerOf.push_back(LayerName(nameOf(op->getLoc())).layer());
  llvm::MapVector<StringRef, size_t> layers;
  for (auto [number, layer] : llvm::enumerate(layerOf))
    if (!layer.empty())
      layers.insert({layer, number});

  SmallVector<StringRef> parts, items;
  given.split(parts, '|');
  if (int64_t(parts.size()) != stages)
    return function.emitError() << "stages are " << parts.size() << " ('" << given
                                << "'), expected " << stages << ", as many as the pipeline has";
  llvm::StringMap<size_t> pinned;
  for (auto [stage, part] : llvm::enumerate(parts)) {
    items.clear();
    part.split(items, ',');
    for (StringRef item : items) {
      auto names = expand(function, item.trim(), layers);
      if (failed(names))
        return failure();
      for (const std::string &name : *names)
        if (auto [it, fresh] = pinned.try_emplace(name, stage); !fresh && it->second != stage)
          return function.emitError() << "the layer '" << name << "' is in stages " << it->second
                                      << " and " << stage << ", expected one";
    }
  }

  std::vector<size_t> begins{0};
  for (auto [number, op] : llvm::enumerate(ops)) {
    auto it = pinned.find(layerOf[number]);
    if (it == pinned.end() || it->second == begins.size() - 1)
      continue;
    if (it->second < begins.size() - 1)
      return op->emitError() << "the layer '" << layerOf[number] << "' is put in stage "
                             << it->second << ", after an op of stage " << begins.size() - 1
                             << "; stages must rise along the program";
    if (it->second > begins.size())
      return op->emitError() << "stage " << begins.size()
                             << " has no op: the program goes from stage " << begins.size() - 1
                             << " to stage " << it->second << " here";
    begins.push_back(number);
  }
  if (int64_t(begins.size()) != stages)
    return function.emitError() << "stage " << begins.size() << " has no op";
  return begins;
}
