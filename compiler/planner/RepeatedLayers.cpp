//===- RepeatedLayers.cpp - Removal of repeated layers --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/RepeatedLayers.h"

#include "compiler/analysis/DescribeLocation.h"
#include "dialects/dtc/DtcOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLExtras.h"

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
    if (kept < 1 || !findLayers() || int64_t(layers.size()) <= kept || !areAlike() ||
        !onlyLastIsUsedOutside())
      return;
    result.prefix = prefix;
    result.layers = int64_t(layers.size());
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
      // What is in regions is not compared.
      if (a->getNumRegions() > 0 || a->getName() != b->getName() ||
          a->getNumOperands() != b->getNumOperands() ||
          a->getResultTypes() != b->getResultTypes() || attributesOf(a) != attributesOf(b))
        return false;
      for (auto [x, y] : llvm::zip_equal(a->getOperands(), b->getOperands())) {
        std::optional<Origin> from = originOf(layer, x, own);
        if (!from)
          return false;
        // What the first layer takes in its place comes from what is before it.
        if (other == 0 && from->kind == Origin::Before) {
          if (Operation *definer = y.getDefiningOp(); definer && places.contains(definer))
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

  bool areAlike() {
    for (size_t layer = 1; layer < layers.size(); ++layer)
      if (!isLike(layer, layer == 1 ? 0 : 1))
        return false;
    return true;
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
    // What the last layer hands on, the last of those that stay does.
    size_t last = layers.size() - 1;
    for (auto [from, to] : llvm::zip_equal(layers[last], layers[size_t(kept) - 1]))
      for (auto [value, replacement] : llvm::zip_equal(from->getResults(), to->getResults()))
        value.replaceUsesWithIf(replacement, [&](OpOperand &use) {
          auto it = places.find(use.getOwner());
          return it == places.end() || it->second.first < size_t(kept);
        });
    Block &body = function.getBody().front();
    llvm::BitVector unused(body.getNumArguments());
    for (BlockArgument argument : body.getArguments())
      unused[argument.getArgNumber()] = !argument.use_empty();
    for (size_t layer = layers.size(); layer-- > size_t(kept);)
      for (Operation *op : llvm::reverse(layers[layer]))
        op->erase();
    for (BlockArgument argument : body.getArguments())
      if (!argument.use_empty())
        unused.reset(argument.getArgNumber());
    (void)function.eraseArguments(unused);
  }

  func::FuncOp function;
  ReducedModel &result;
  int64_t kept;
  std::string prefix;
  std::vector<Layer> layers;
  llvm::DenseMap<Operation *, std::pair<size_t, size_t>> places; ///< layer, number in it
};

} // namespace

ReducedModel dtc::removeRepeatedLayers(ModuleOp model, int64_t kept) {
  ReducedModel result;
  result.module = model.clone();
  auto functions = result.module->getOps<func::FuncOp>();
  if (llvm::hasSingleElement(functions) && (*functions.begin()).getBody().hasOneBlock())
    Shortener(*functions.begin(), result, kept).run();
  return result;
}
