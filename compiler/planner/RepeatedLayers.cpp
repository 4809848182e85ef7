//===- RepeatedLayers.cpp - Removal of repeated layers --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/RepeatedLayers.h"

#include "compiler/analysis/DescribeLocation.h"
#include "compiler/passes/DeadOps.h"
#include "dialects/dtc/DtcOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

#include <map>
#include <optional>
#include <vector>

using namespace mlir;
using namespace dtc;

namespace {

/// The ops of one layer, in order.
using Layer = std::vector<Operation *>;

/// Where an op of a layer takes an operand from.
struct Origin {
  enum Kind { Own, Before, Argument, Shared } kind = Own;
  size_t op = 0;             ///< Own, Before: the number of the op in its layer; Argument: of the
                             ///< argument among those of the layer
  unsigned result = 0;       ///< of that op
  Value value;               ///< Shared: the same value for all layers
  Type type;                 ///< Argument
  DictionaryAttr attributes; ///< Argument: all but its name

  bool operator==(const Origin &) const = default;
};

class Shortener {
public:
  Shortener(func::FuncOp function, ReducedModel &result, int64_t kept)
      : function(function), result(result), kept(kept) {}

  void run() {
    if (kept < 1 || !findLayers() || !findFirst() || !onlyLastIsUsedOutside())
      return;
    if (first > 0) {
      if (!findStream())
        return;
      cutBeginning();
    }
    result.prefix = prefix;
    result.layers = int64_t(layers.size()) + cutLayers;
    result.keptLayers = kept;
    cut();
  }

private:
  /// The layers of the prefix that most ops have.
  bool findLayers() {
    std::map<std::string, int64_t> counts;
    for (Operation &op : function.getBody().front())
      if (LayerName name(nameOf(op.getLoc())); !name.prefix.empty())
        ++counts[name.prefix.str()];
    if (counts.empty())
      return false;
    prefix = llvm::max_element(counts, [](auto &a, auto &b) { return a.second < b.second; })->first;
    int64_t last = -1;
    for (Operation &op : function.getBody().front()) {
      LayerName name(nameOf(op.getLoc()));
      if (name.prefix != prefix) {
        // Ops without a name between layers are constants and the like; they make no layer of
        // several pieces.
        continue;
      }
      if (name.number != last && name.number != last + 1)
        return false;
      last = name.number;
      if (name.number >= int64_t(layers.size()))
        layers.emplace_back();
      places[&op] = {size_t(name.number), layers.back().size()};
      layers.back().push_back(&op);
    }
    return true;
  }

  /// The arguments of a layer, numbered as they are met.
  using Arguments = llvm::DenseMap<Value, size_t>;

  std::optional<Origin> originOf(size_t layer, Value value, Arguments &arguments) {
    Operation *definer = value.getDefiningOp();
    if (!definer) {
      auto argument = cast<BlockArgument>(value);
      bool isOwn = llvm::all_of(argument.getUsers(), [&](Operation *user) {
        auto it = places.find(user);
        return it != places.end() && it->second.first == layer;
      });
      if (!isOwn)
        return Origin{.kind = Origin::Shared, .value = value};
      size_t number = arguments.try_emplace(value, arguments.size()).first->second;
      NamedAttrList attributes(function.getArgAttrDict(argument.getArgNumber()));
      attributes.erase("dtc.param");
      return Origin{.kind = Origin::Argument,
                    .op = number,
                    .type = value.getType(),
                    .attributes = attributes.getDictionary(function.getContext())};
    }
    auto it = places.find(definer);
    unsigned number = cast<OpResult>(value).getResultNumber();
    if (it == places.end())
      return Origin{.kind = Origin::Shared, .value = value};
    if (it->second.first == layer)
      return Origin{.kind = Origin::Own, .op = it->second.second, .result = number};
    if (it->second.first + 1 == layer)
      return Origin{.kind = Origin::Before, .op = it->second.second, .result = number};
    return std::nullopt; // of another layer
  }

  /// Attributes without those that number ops, and those by which layers of one model differ that
  /// cost nearly the same: windows and rotary positions.
  static DictionaryAttr attributesOf(Operation *op) {
    NamedAttrList list(op->getAttrDictionary());
    for (const char *name : {"number", "dtc.op", "op", "window", "theta", "frequencies", "factor"})
      list.erase(name);
    return list.getDictionary(op->getContext());
  }

  bool isLike(size_t layer, size_t other) {
    if (layers[layer].size() != layers[other].size())
      return false;
    Arguments own, others;
    for (auto [a, b] : llvm::zip_equal(layers[layer], layers[other])) {
      // The contents of regions are not compared.
      if (a->getNumRegions() > 0 || a->getName() != b->getName() ||
          a->getNumOperands() != b->getNumOperands() ||
          a->getResultTypes() != b->getResultTypes() || attributesOf(a) != attributesOf(b))
        return false;
      for (auto [x, y] : llvm::zip_equal(a->getOperands(), b->getOperands())) {
        std::optional<Origin> from = originOf(layer, x, own);
        if (!from)
          return false;
        // The first layer takes this operand from the ops before it.
        if (other == first && from->kind == Origin::Before) {
          Operation *definer = y.getDefiningOp();
          auto it = definer ? places.find(definer) : places.end();
          if (first == 0 ? it != places.end() : it == places.end() || it->second.first + 1 != first)
            return false;
          continue;
        }
        std::optional<Origin> of = originOf(other, y, others);
        if (!of)
          return false;
        if (!(*from == *of))
          return false;
      }
    }
    return true;
  }

  /// The first of the layers that are alike.
  bool findFirst() {
    for (; first <= layers.size() / 8 && int64_t(layers.size() - first) > kept; ++first) {
      auto others = llvm::seq(first + 1, layers.size());
      if (llvm::all_of(others, [&](size_t layer) {
            return isLike(layer, layer == first + 1 ? first : first + 1);
          }))
        return true;
    }
    return false;
  }

  /// The one value that layers hand on, before layer 0 and before the first of those that are
  /// alike.
  bool findStream() {
    llvm::SetVector<Value> before, between;
    for (Operation *op : layers[0])
      for (Value operand : op->getOperands())
        if (Operation *definer = operand.getDefiningOp(); definer && !places.contains(definer))
          before.insert(operand);
    before.remove_if([&](Value value) {
      return llvm::any_of(value.getUsers(), [&](Operation *user) {
        auto it = places.find(user);
        return it != places.end() && it->second.first > 0;
      });
    });
    for (Operation *op : layers[first])
      for (Value operand : op->getOperands())
        if (Operation *definer = operand.getDefiningOp();
            definer && places.contains(definer) && places.at(definer).first < first)
          between.insert(operand);
    if (before.size() != 1 || between.size() != 1 ||
        before.front().getType() != between.front().getType())
      return false;
    streamBefore = before.front();
    streamBetween = between.front();
    return true;
  }

  /// Takes the layers before the first out, and numbers the others from 0.
  void cutBeginning() {
    streamBetween.replaceUsesWithIf(
        streamBefore, [&](OpOperand &use) { return places.at(use.getOwner()).first >= first; });
    MLIRContext *context = function.getContext();
    auto rename = [&](StringRef name) {
      LayerName layer(name);
      return StringAttr::get(context, layer.prefix + Twine(layer.number - int64_t(first)) +
                                          (layer.rest.empty() ? "" : "." + layer.rest.str()));
    };
    for (BlockArgument argument : function.getArguments()) {
      auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "dtc.param");
      bool isOfLayers = llvm::all_of(argument.getUsers(), [&](Operation *user) {
        auto it = places.find(user);
        return it != places.end() && it->second.first >= first;
      });
      if (name && isOfLayers && !LayerName(name).prefix.empty())
        function.setArgAttr(argument.getArgNumber(), "dtc.param", rename(name));
    }
    for (size_t layer = first; layer < layers.size(); ++layer)
      for (auto [number, op] : llvm::enumerate(layers[layer])) {
        op->setLoc(NameLoc::get(rename(nameOf(op->getLoc()))));
        places[op] = {layer - first, number};
      }
    erase(0, first);
    layers.erase(layers.begin(), layers.begin() + int64_t(first));
    cutLayers = int64_t(first);
  }

  /// Erases layers [begin, end) and the arguments that nothing uses then.
  void erase(size_t begin, size_t end) {
    Block &body = function.getBody().front();
    llvm::BitVector unused(body.getNumArguments());
    for (BlockArgument argument : body.getArguments())
      unused[argument.getArgNumber()] = !argument.use_empty();
    for (size_t layer = end; layer-- > begin;)
      for (Operation *op : llvm::reverse(layers[layer])) {
        places.erase(op);
        op->erase();
      }
    for (BlockArgument argument : body.getArguments())
      if (!argument.use_empty())
        unused.reset(argument.getArgNumber());
    (void)function.eraseArguments(unused);
  }

  /// Whether ops outside of layers use the values of no layer but the last.
  bool onlyLastIsUsedOutside() {
    return llvm::all_of(llvm::ArrayRef(layers).drop_back(), [&](const Layer &layer) {
      return llvm::all_of(layer, [&](Operation *op) {
        return llvm::all_of(op->getUsers(), [&](Operation *user) { return places.contains(user); });
      });
    });
  }

  void cut() {
    // The last of the layers that stay hands on the results in place of the last layer.
    size_t last = layers.size() - 1;
    for (auto [from, to] : llvm::zip_equal(layers[last], layers[size_t(kept) - 1]))
      for (auto [value, replacement] : llvm::zip_equal(from->getResults(), to->getResults()))
        value.replaceUsesWithIf(replacement, [&](OpOperand &use) {
          auto it = places.find(use.getOwner());
          return it == places.end() || it->second.first < size_t(kept);
        });
    erase(size_t(kept), layers.size());
  }

  func::FuncOp function;
  ReducedModel &result;
  int64_t kept;
  std::string prefix;
  std::vector<Layer> layers;
  size_t first = 0;      ///< of the layers that are alike
  int64_t cutLayers = 0; ///< those before the first, once they are taken out
  Value streamBefore, streamBetween;
  llvm::DenseMap<Operation *, std::pair<size_t, size_t>> places; ///< layer, number in it
};

} // namespace

/// Metrics cost next to nothing, and those of all layers are returned at the end.
static void removeMetrics(func::FuncOp function) {
  auto ret = cast<func::ReturnOp>(function.front().getTerminator());
  llvm::BitVector metrics(ret.getNumOperands());
  for (unsigned index = 0; index < ret.getNumOperands(); ++index)
    metrics[index] = bool(function.getResultAttr(index, DtcDialect::kMetricAttrName));
  if (metrics.none())
    return;
  ret->eraseOperands(metrics);
  (void)function.eraseResults(metrics);
  eraseDeadOps(function.front());
}

ReducedModel dtc::removeRepeatedLayers(ModuleOp model, int64_t kept) {
  ReducedModel result;
  result.module = model.clone();
  auto functions = result.module->getOps<func::FuncOp>();
  if (llvm::hasSingleElement(functions) && (*functions.begin()).getBody().hasOneBlock()) {
    removeMetrics(*functions.begin());
    Shortener(*functions.begin(), result, kept).run();
  }
  return result;
}
