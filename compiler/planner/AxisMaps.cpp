//===- AxisMaps.cpp - Search for the axis map of tensor parallelism -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/AxisMaps.h"

#include "compiler/analysis/DimensionClasses.h"
#include "compiler/driver/PassPipeline.h"
#include "compiler/passes/sharding/ArgumentDims.h"
#include "dialects/dtc/DtcOps.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <tuple>

using namespace mlir;
using namespace dtc;

/// Decisions about a smaller part of the parameters are left as they are.
static constexpr double kLeastShare = 0.001;
/// A dimension without a name is split only if padding makes it at most this many times larger.
static constexpr double kMostPadding = 1.1;
/// A change that gains less than this is noise of estimates.
static constexpr double kLeastGain = 0.001;
/// How many changes are announced ahead, as if none helped.
static constexpr size_t kMapsAhead = 2;
/// The share of a step that an axis map must gain over the default one, and that it may lose where
/// it saves memory that is needed.
static constexpr double kWorthIt = 0.01;

std::vector<std::string> AxisDecision::entries(bool isSplit) const {
  std::vector<std::string> result;
  if (isSplit == isDefault())
    return result;
  for (const std::string &key : isDefault() ? names : dims)
    result.push_back(key + (isSplit ? "=tp" : "="));
  return result;
}

/// Whether an entry of an axis map can speak of the argument: its own signs are not in the name.
static bool canBeKey(StringRef name) {
  return !name.empty() && name.find_first_of("=,@+#*") == StringRef::npos;
}

//===----------------------------------------------------------------------===//
// The decisions of a model
//===----------------------------------------------------------------------===//

namespace {

/// An argument's name with "*" for the number of its layer.
struct LayeredName {
  std::string text;
  int64_t layer = -1; ///< -1: in no layer
};

/// A dimension of an argument, so named.
struct LayeredDim {
  std::string key;   ///< with a star for the layer
  std::string exact; ///< without
  int64_t layer;

  auto operator<=>(const LayeredDim &) const = default;
};

class DecisionFinder {
public:
  DecisionFinder(func::FuncOp function, ArrayRef<std::string> fixed, StringRef prefix,
                 int64_t keptLayers, int64_t layers)
      : function(function), fixed(fixed), prefix(prefix), keptLayers(keptLayers), layers(layers) {}

  std::vector<AxisDecision> run() {
    DimensionClasses classes(function);
    for (const DimensionClass &group : classes.classes())
      consider(group);
    addRepeated();
    double all = 0;
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      all += bytesOf(i);
    llvm::erase_if(decisions, [&](const AxisDecision &decision) {
      return isFixed(decision) || (!decision.isDefault() && decision.bytes < kLeastShare * all);
    });
    llvm::stable_sort(decisions, [](const AxisDecision &a, const AxisDecision &b) {
      return std::tie(b.bytes, a.names, a.dims) < std::tie(a.bytes, b.names, b.dims);
    });
    return std::move(decisions);
  }

private:
  LayeredName nameOf(unsigned argument) const {
    LayeredName result{argumentName(function, argument).str()};
    if (prefix.empty())
      return result;
    // "transformer.h.3.attn.weight" is of layer 3 of "h.".
    StringRef text = result.text;
    for (size_t at = text.find(prefix); at != StringRef::npos; at = text.find(prefix, at + 1)) {
      if (at > 0 && text[at - 1] != '.')
        continue;
      StringRef rest = text.drop_front(at + prefix.size());
      StringRef number = rest.take_while(llvm::isDigit), after = rest.drop_front(number.size());
      if (number.getAsInteger(10, result.layer) || (!after.empty() && after[0] != '.')) {
        result.layer = -1;
        continue;
      }
      result.text = (text.take_front(at + prefix.size()) + "*" + after).str();
      return result;
    }
    return result;
  }

  /// The bytes of a parameter, for all layers that it stands for.
  double bytesOf(unsigned argument) {
    if (!function.getArgAttr(argument, DtcDialect::kParamAttrName))
      return 0;
    auto type = cast<RankedTensorType>(function.getArgument(argument).getType());
    double times =
        nameOf(argument).layer >= 0 && keptLayers > 0 ? double(layers) / double(keptLayers) : 1;
    return double(type.getNumElements()) * type.getElementTypeBitWidth() / 8 * times;
  }

  void consider(const DimensionClass &group) {
    if (group.isTwiceInValue || group.size <= 1)
      return;
    AxisDecision decision;
    decision.size = group.size;
    std::vector<LayeredDim> dims;
    for (auto [argument, dim] : group.arguments) {
      decision.arguments.insert(argument);
      LayeredName name = nameOf(argument);
      // An entry of an axis map could not be read.
      StringRef exact = argumentName(function, argument);
      if (canBeKey(exact))
        dims.push_back({fmt::format("{}#{}", name.text, dim),
                        fmt::format("{}#{}", exact.str(), dim), name.layer});
    }
    for (unsigned argument : decision.arguments)
      decision.bytes += bytesOf(argument);
    if (decision.bytes == 0) // of inputs alone
      return;
    for (const char *name : tensorAxisNames())
      if (group.names.contains(name))
        decision.names.emplace_back(name);
    if (decision.isDefault()) {
      llvm::sort(decision.names);
      addNamed(std::move(decision));
      return;
    }
    if (!group.names.empty() || dims.empty())
      return;
    llvm::sort(dims);
    addUnnamed(std::move(decision), dims);
  }

  /// Classes with a name in common are one decision.
  void addNamed(AxisDecision decision) {
    auto shares = [&](const AxisDecision &other) {
      return llvm::any_of(other.names, [&](const std::string &name) {
        return llvm::is_contained(decision.names, name);
      });
    };
    for (auto it = decisions.begin(); it != decisions.end();) {
      if (!shares(*it)) {
        ++it;
        continue;
      }
      decision.names.insert(decision.names.end(), it->names.begin(), it->names.end());
      merge(decision, *it);
      it = decisions.erase(it);
    }
    llvm::sort(decision.names);
    decision.names.erase(std::unique(decision.names.begin(), decision.names.end()),
                         decision.names.end());
    decisions.push_back(std::move(decision));
  }

  static void merge(AxisDecision &into, const AxisDecision &other) {
    into.arguments.insert(other.arguments.begin(), other.arguments.end());
    into.size = std::min(into.size, other.size);
    into.bytes += other.bytes;
  }

  void addUnnamed(AxisDecision decision, const std::vector<LayeredDim> &dims) {
    std::set<int64_t> touched;
    std::map<std::string, int64_t> counts;
    bool isOutside = false;
    for (const LayeredDim &dim : dims) {
      isOutside |= dim.layer < 0;
      if (dim.layer >= 0)
        touched.insert(dim.layer);
      ++counts[dim.key];
    }
    for (const auto &[key, count] : counts)
      decision.dims.push_back(key);
    if (touched.empty()) {
      decisions.push_back(std::move(decision));
    } else if (touched.size() == 1 && !isOutside) {
      repeated[decision.dims].emplace_back(std::move(decision), exactOf(dims));
    } else if (llvm::all_of(dims, [&](const LayeredDim &dim) {
                 return dim.layer < 0 || counts[dim.key] == keptLayers;
               })) {
      decisions.push_back(std::move(decision)); // it goes through all layers
    } else if (keptLayers == layers) {
      decision.dims = exactOf(dims);
      decisions.push_back(std::move(decision));
    }
    // Else it is about single layers, which cannot be spoken of where layers are taken out.
  }

  static std::vector<std::string> exactOf(const std::vector<LayeredDim> &dims) {
    std::vector<std::string> result;
    for (const LayeredDim &dim : dims)
      result.push_back(dim.exact);
    llvm::sort(result);
    return result;
  }

  /// Decides once for all layers about dimensions that every layer has. Dimensions that only some
  /// layers have are decided one by one if the function has all layers, and are left out otherwise.
  void addRepeated() {
    for (auto &[dims, list] : repeated) {
      AxisDecision &first = list.front().first;
      if (int64_t(list.size()) == keptLayers) {
        for (const auto &[other, exact] : llvm::ArrayRef(list).drop_front())
          merge(first, other);
        decisions.push_back(std::move(first));
      } else if (keptLayers == layers) {
        for (auto &[decision, exact] : list) {
          decision.dims = exact;
          decisions.push_back(std::move(decision));
        }
      }
    }
  }

  /// Whether patterns can speak of one argument.
  static bool overlap(StringRef a, StringRef b) {
    auto example = [](StringRef pattern) {
      SmallVector<StringRef> parts;
      pattern.split(parts, '.');
      std::replace(parts.begin(), parts.end(), StringRef("*"), StringRef("0"));
      return llvm::join(parts, ".");
    };
    return matchesArgument(a, example(b)) || matchesArgument(b, example(a));
  }

  bool isFixed(const AxisDecision &decision) const {
    return llvm::any_of(fixed, [&](StringRef entry) {
      StringRef key = entry.split('=').first;
      if (!namesArgumentDims(key))
        return llvm::is_contained(decision.names, key);
      auto [name, dim] = key.rsplit('#');
      if (decision.isDefault())
        return llvm::any_of(decision.arguments, [&](unsigned argument) {
          return overlap(name, nameOf(argument).text);
        });
      return llvm::any_of(decision.dims, [&](StringRef other) {
        return other.rsplit('#').second == dim && overlap(name, other.rsplit('#').first);
      });
    });
  }

  func::FuncOp function;
  ArrayRef<std::string> fixed;
  StringRef prefix;
  int64_t keptLayers, layers;
  std::vector<AxisDecision> decisions;
  /// The decisions about repeated layers by their dims, each with the dims in one layer.
  std::map<std::vector<std::string>, std::vector<std::pair<AxisDecision, std::vector<std::string>>>>
      repeated;
};

} // namespace

std::vector<AxisDecision> dtc::findAxisDecisions(func::FuncOp function, ArrayRef<std::string> fixed,
                                                 StringRef layerPrefix, int64_t keptLayers,
                                                 int64_t layers) {
  return DecisionFinder(function, fixed, layerPrefix, keptLayers, layers).run();
}

std::vector<std::string> dtc::findBatchDims(func::FuncOp function) {
  std::vector<std::string> dims;
  std::optional<int64_t> size;
  std::set<unsigned> inputs;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto type = dyn_cast<RankedTensorType>(function.getArgument(i).getType());
    if (!function.getArgAttr(i, DtcDialect::kInputAttrName) || !type || type.getRank() == 0)
      continue;
    if (!type.hasStaticShape() || type.getNumElements() == 0 ||
        (size && type.getDimSize(0) != *size))
      return {};
    // A dimension with a name is not the batch, and an axis map cannot split one that it cannot
    // name.
    auto names = function.getArgAttrOfType<ArrayAttr>(i, DtcDialect::kAxesAttrName);
    std::string name = argumentName(function, i).str(), key = name + "#0";
    if ((names && !names.empty() && !cast<StringAttr>(names[0]).getValue().empty()) ||
        !canBeKey(name))
      return {};
    if (auto found = findArgumentDims(function, key);
        !found || *found != std::vector<ArgumentDim>{{i, 0}})
      return {};
    size = type.getDimSize(0);
    inputs.insert(i);
    dims.push_back(std::move(key));
  }
  DimensionClasses classes(function);
  for (const DimensionClass &group : classes.classes()) {
    if (llvm::none_of(group.arguments, [&](std::pair<unsigned, unsigned> entry) {
          return entry.second == 0 && inputs.contains(entry.first);
        }))
      continue;
    if (group.isTwiceInValue ||
        llvm::any_of(group.arguments, [&](auto entry) { return !inputs.contains(entry.first); }))
      return {};
  }
  return dims;
}

std::vector<std::string> dtc::batchEntries(ArrayRef<std::string> batchDims,
                                           ArrayRef<std::pair<std::string, int64_t>> mesh) {
  std::vector<std::string> axes, entries;
  for (const MeshAxisInfo &axis : meshAxes())
    if (axis.splitsBatch &&
        llvm::any_of(mesh, [&](const auto &entry) { return entry.first == axis.name; }))
      axes.emplace_back(axis.name);
  for (const std::string &dim : batchDims)
    entries.push_back(dim + "=" + llvm::join(axes, "+"));
  return entries;
}

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

namespace {
class AxisMapSearch {
public:
  AxisMapSearch(ArrayRef<AxisDecision> decisions, int64_t tp, int64_t mostCosts, AxisMapCosts costs,
                AxisMapsAhead ahead)
      : decisions(decisions), tp(tp), left(mostCosts), costs(costs), ahead(ahead) {}

  std::vector<std::string> run() {
    State start;
    for (const AxisDecision &decision : decisions)
      start.push_back(decision.isDefault());
    std::optional<AxisMapCost> first = costOf(start);
    State best = start;
    descend(best);
    // Where dimensions exclude each other, the one that gains most by itself may be in the way of
    // several that gain more together.
    if (llvm::none_of(start, [](bool isSplit) { return isSplit; }))
      for (size_t i = 0; i < decisions.size(); ++i)
        if (isPossible(i)) {
          State other = start;
          other[i] = true;
          descend(other);
          std::optional<AxisMapCost> least = costOf(best);
          if (improves(costOf(other), least))
            best = other;
        }
    std::optional<AxisMapCost> last = costOf(best);
    if (first && last && last->excessBytes >= first->excessBytes &&
        last->seconds > (1 - kWorthIt) * first->seconds)
      best = start;
    return entriesOf(best);
  }

private:
  using State = std::vector<bool>;

  std::vector<std::string> entriesOf(const State &state) const {
    std::vector<std::string> entries;
    for (auto [decision, isSplit] : llvm::zip_equal(decisions, state))
      llvm::append_range(entries, decision.entries(isSplit));
    return entries;
  }

  std::optional<AxisMapCost> costOf(const State &state) {
    auto it = known.find(state);
    if (it == known.end()) {
      if (left == 0)
        return std::nullopt;
      --left;
      it = known.emplace(state, costs(entriesOf(state))).first;
    }
    return it->second;
  }

  static bool improves(const std::optional<AxisMapCost> &next,
                       const std::optional<AxisMapCost> &before) {
    if (!next || !before)
      return next.has_value();
    if (next->excessBytes > before->excessBytes)
      return false;
    return next->seconds < (1 - kLeastGain) * before->seconds ||
           (next->excessBytes < (1 - kWorthIt) * before->excessBytes &&
            next->seconds < (1 + kWorthIt) * before->seconds);
  }

  bool isPossible(size_t i) const {
    const AxisDecision &decision = decisions[i];
    double padded = double(llvm::alignTo(uint64_t(decision.size), uint64_t(tp)));
    return decision.isDefault() || padded <= kMostPadding * double(decision.size);
  }

  bool excludes(size_t i, const State &state) const {
    for (size_t other = 0; other < decisions.size(); ++other)
      if (other != i && state[other] &&
          llvm::any_of(decisions[other].arguments, [&](unsigned argument) {
            return decisions[i].arguments.contains(argument);
          }))
        return true;
    return false;
  }

  static State change(size_t i, State state) {
    state[i] = !state[i];
    return state;
  }

  bool mayChange(size_t i, const State &state) const {
    State next = change(i, state);
    // Without any, devices would all do the same.
    if (llvm::none_of(next, [](bool isSplit) { return isSplit; }))
      return false;
    return !next[i] || (isPossible(i) && !excludes(i, state));
  }

  /// Tells which costs are asked for if no change from the one of decision `i` on helps.
  void announce(size_t i, const State &state) {
    std::vector<std::vector<std::string>> maps;
    for (; i < decisions.size() && maps.size() < std::min(kMapsAhead, size_t(left)); ++i)
      if (mayChange(i, state) && !known.contains(change(i, state)))
        maps.push_back(entriesOf(change(i, state)));
    ahead(maps);
  }

  void descend(State &state) {
    std::optional<AxisMapCost> cost = costOf(state);
    for (bool changes = true; changes;) {
      changes = false;
      for (size_t i = 0; i < decisions.size(); ++i) {
        if (!mayChange(i, state))
          continue;
        State next = change(i, state);
        if (!known.contains(next))
          announce(i, state);
        std::optional<AxisMapCost> other = costOf(next);
        if (!improves(other, cost))
          continue;
        state = next;
        cost = other;
        changes = true;
      }
    }
  }

  ArrayRef<AxisDecision> decisions;
  int64_t tp, left;
  AxisMapCosts costs;
  AxisMapsAhead ahead;
  std::map<State, std::optional<AxisMapCost>> known;
};
} // namespace

std::vector<std::string> dtc::chooseAxisMap(ArrayRef<AxisDecision> decisions, int64_t tp,
                                            int64_t mostCosts, AxisMapCosts costs,
                                            AxisMapsAhead ahead) {
  return AxisMapSearch(decisions, tp, mostCosts, costs, ahead).run();
}
