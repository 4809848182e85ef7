//===- PropagateShardings.cpp - Give every value a sharding ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/FactorMerge.h"
#include "compiler/analysis/Layout.h"
#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/SignatureAttributes.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <deque>
#include <set>

#define DEBUG_TYPE "dtc-propagate-shardings"

namespace dtc {
#define GEN_PASS_DEF_PROPAGATESHARDINGSPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

/// What the map says of one logical axis.
struct LogicalAxis {
  AxisList axes;
  bool asked = false;      ///< by the user: it is an error where it cannot be done
  bool mustDivide = false; ///< a dimension that it does not divide is an error
};

/// The shardings of one function, while they grow.
class Propagation {
public:
  Propagation(func::FuncOp function, const Mesh &mesh,
              const llvm::StringMap<LogicalAxis> &logicalAxes)
      : function(function), mesh(mesh), logicalAxes(logicalAxes) {}

  LogicalResult run();

private:
  LogicalResult seed();
  void constrainExplicitResults();
  LogicalResult seedValue(Value value, ArrayAttr axisNames, const Twine &what, Location loc);
  LogicalResult fix(Value value, dist::ShardingAttr sharding, const Twine &what, Location loc);
  void enqueue(Operation *op);
  void visit(Operation *op);
  bool decomposeSplitOps();
  Layout &layoutOf(Value value);

  func::FuncOp function;
  const Mesh &mesh;
  const llvm::StringMap<LogicalAxis> &logicalAxes;
  llvm::DenseMap<Value, Layout> layouts;
  llvm::DenseSet<Value> fixed;
  std::deque<Operation *> worklist;
  llvm::DenseSet<Operation *> queued;
};

} // namespace

/// Emits an error where the axes of a layout do not divide a tensor.
static LogicalResult checkDivides(Location loc, const Mesh &mesh, const Layout &layout, Type type,
                                  const Twine &what) {
  for (auto [index, dim] : llvm::enumerate(layout.dims)) {
    int64_t size = cast<RankedTensorType>(type).getDimSize(index), shards = mesh.product(dim);
    if (size % shards != 0)
      return emitError(loc) << what << ": dimension " << index << " of size " << size
                            << " is sharded over " << mesh.str(dim) << ", which makes " << shards
                            << " shards and does not divide it; change the size or the mesh";
  }
  return success();
}

Layout &Propagation::layoutOf(Value value) {
  auto it = layouts.find(value);
  if (it != layouts.end())
    return it->second;
  return layouts
      .try_emplace(value, Layout::replicated(cast<RankedTensorType>(value.getType()).getRank()))
      .first->second;
}

LogicalResult Propagation::fix(Value value, dist::ShardingAttr sharding, const Twine &what,
                               Location loc) {
  Layout layout = getLayout(mesh, sharding);
  if (!layout.partial.empty())
    return emitError(loc) << what << ": the sharding " << sharding
                          << " is partial; only complete ones can be asked for";
  if (fixed.contains(value) && layoutOf(value) != layout)
    return emitError(loc) << what << ": is asked to be " << layout.str(mesh) << " and "
                          << layoutOf(value).str(mesh) << "; remove one of the two";
  if (failed(checkDivides(loc, mesh, layout, value.getType(), what)))
    return failure();
  layoutOf(value) = layout;
  fixed.insert(value);
  return success();
}

LogicalResult Propagation::seedValue(Value value, ArrayAttr axisNames, const Twine &what,
                                     Location loc) {
  Layout &layout = layoutOf(value);
  for (auto [index, attr] : llvm::enumerate(axisNames)) {
    auto it = logicalAxes.find(cast<StringAttr>(attr).getValue());
    if (it == logicalAxes.end())
      continue;
    int64_t size = cast<RankedTensorType>(value.getType()).getDimSize(index);
    AxisList axes;
    for (unsigned axis : it->second.axes) {
      axes.push_back(axis);
      bool divides = size % mesh.product(axes) == 0, free = !layout.isShardedOver(axis);
      if (divides && free)
        continue;
      if (!(free ? it->second.mustDivide : it->second.asked)) {
        axes.pop_back();
        break;
      }
      if (!free)
        return emitError(loc) << what << ": axis \"" << mesh.axes[axis].name
                              << "\" would split two dimensions of it, '" << it->first()
                              << "' and an earlier one; map them to different axes";
      int64_t shards = mesh.product(it->second.axes);
      return emitError(loc) << what << ": dimension " << index << " ('" << it->first()
                            << "') has size " << size << ", which " << mesh.str(it->second.axes)
                            << " would split in " << shards
                            << " shards that do not divide it; change the size or the mesh";
    }
    layout.dims[index] = axes;
  }
  return success();
}

/// Writes a sharding that the user gave an op's result as a dist.constrain: what the op computes
/// best may lie differently.
void Propagation::constrainExplicitResults() {
  for (Operation &op : llvm::make_early_inc_range(function.front())) {
    if (isa<dist::ConstrainOp>(op))
      continue;
    OpBuilder builder(op.getContext());
    builder.setInsertionPointAfter(&op);
    for (Value value : op.getResults())
      if (auto sharding = dist::getSharding(value)) {
        auto constrain =
            dist::ConstrainOp::create(builder, op.getLoc(), value.getType(), value, sharding);
        value.replaceAllUsesExcept(constrain.getResult(), constrain);
      }
    op.removeAttr(dist::kShardingAttrName);
  }
}

LogicalResult Propagation::seed() {
  for (BlockArgument arg : function.getArguments()) {
    unsigned index = arg.getArgNumber();
    std::string what = "argument " + std::to_string(index);
    for (StringRef key : {"dtc.param", "dtc.slot_of", "dtc.input"})
      if (auto name = function.getArgAttrOfType<StringAttr>(index, key))
        what = ("'" + name.getValue() + "'").str();
    if (auto sharding = dist::getSharding(arg)) {
      if (failed(fix(arg, sharding, what, arg.getLoc())))
        return failure();
    } else if (auto names = function.getArgAttrOfType<ArrayAttr>(index, "dtc.axes")) {
      if (failed(seedValue(arg, names, what, arg.getLoc())))
        return failure();
    }
  }
  constrainExplicitResults();
  for (Operation &op : function.front()) {
    if (auto constrain = dyn_cast<dist::ConstrainOp>(op)) {
      for (auto sharding : {constrain.getSharding(), dist::getSharding(constrain.getResult())})
        if (sharding && failed(fix(constrain.getResult(), sharding, "dist.constrain", op.getLoc())))
          return failure();
      continue;
    }
    if (auto names = op.getAttrOfType<ArrayAttr>("dtc.axes"))
      for (Value value : op.getResults())
        if (failed(seedValue(value, names, op.getName().getStringRef(), op.getLoc())))
          return failure();
  }
  // A function's results are where its return operands are; an explicit sharding there fixes them.
  auto *terminator = function.front().getTerminator();
  for (auto [index, value] : llvm::enumerate(terminator->getOperands()))
    if (auto sharding =
            function.getResultAttrOfType<dist::ShardingAttr>(index, dist::kShardingAttrName)) {
      Layout layout = getLayout(mesh, sharding);
      if (!layout.partial.empty())
        return emitError(function.getLoc()) << "result " << index << ": the sharding " << sharding
                                            << " is partial; only complete ones can be asked for";
      if (auto time = mesh.temporalAxis(); time && layout.isShardedOver(*time))
        return emitError(function.getLoc())
               << "result " << index << ": the sharding " << sharding
               << " splits it over the temporal axis \"" << mesh.axes[*time].name
               << "\"; a result is there once for all microbatches";
      if (failed(checkDivides(function.getLoc(), mesh, layout, value.getType(),
                              "result " + Twine(index))))
        return failure();
    }
  return success();
}

void Propagation::enqueue(Operation *op) {
  if (isa<ShardingRuleOpInterface>(op) && queued.insert(op).second)
    worklist.push_back(op);
}

void Propagation::visit(Operation *op) {
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  SmallVector<Value> values(op->getOperands());
  llvm::append_range(values, op->getResults());
  SmallVector<const TensorFactors *> factors;
  for (const TensorFactors &tensor : rule.operands)
    factors.push_back(&tensor);
  for (const TensorFactors &tensor : rule.results)
    factors.push_back(&tensor);

  for (Value value : values)
    layoutOf(value); // the map must not grow while it is pointed into
  SmallVector<FactorTensor> tensors;
  for (auto [value, tensor] : llvm::zip_equal(values, factors)) {
    auto type = cast<RankedTensorType>(value.getType());
    double bytes = double(type.getNumElements()) * std::max(8u, type.getElementTypeBitWidth()) / 8;
    tensors.push_back({tensor, &layoutOf(value), bytes});
  }
  FactorAxes axes = mergeFactorAxes(mesh, rule, tensors);
  for (auto [value, tensor] : llvm::zip_equal(values, factors)) {
    if (fixed.contains(value) || !extendLayout(mesh, rule, *tensor, axes, layoutOf(value)))
      continue;
    if (Operation *definer = value.getDefiningOp())
      enqueue(definer);
    for (Operation *user : value.getUsers())
      enqueue(user);
  }
}

/// Replaces the ops that would need a dimension whole that is now sharded by simpler ones, where
/// they have such a form.
bool Propagation::decomposeSplitOps() {
  SmallVector<ShardingRuleOpInterface> split;
  for (auto op : function.front().getOps<ShardingRuleOpInterface>()) {
    ShardingRule rule = op.getShardingRule();
    auto splitsWhole = [&](Value value, const TensorFactors &factors) {
      for (auto [dim, axes] : llvm::zip_equal(factors, layoutOf(value).dims))
        for (unsigned factor : dim)
          if (rule.factors[factor].whole && mesh.product(axes) > 1)
            return true;
      return false;
    };
    for (auto [operand, factors] : llvm::zip_equal(op->getOperands(), rule.operands))
      if (splitsWhole(operand, factors)) {
        split.push_back(op);
        break;
      }
  }
  bool changed = false;
  for (ShardingRuleOpInterface op : split) {
    Operation *before = op->getPrevNode();
    OpBuilder builder(op);
    FailureOr<SmallVector<Value>> replacements = op.decompose(builder);
    if (failed(replacements))
      continue;
    for (auto [from, to] : llvm::zip_equal(op->getResults(), *replacements)) {
      if (fixed.erase(from))
        fixed.insert(to);
      Layout layout = layoutOf(from); // a copy: the map grows
      layouts[to] = layout;
      layouts.erase(from);
      from.replaceAllUsesWith(to);
    }
    Operation *first = before ? before->getNextNode() : &function.front().front();
    for (Operation *fresh = first; fresh != op; fresh = fresh->getNextNode())
      enqueue(fresh);
    for (Value value : *replacements)
      for (Operation *user : value.getUsers())
        enqueue(user);
    if (queued.erase(op))
      llvm::erase(worklist, op.getOperation());
    op.erase();
    changed = true;
  }
  return changed;
}

LogicalResult Propagation::run() {
  if (failed(checkProgram(function, mesh.name)) || failed(seed()))
    return failure();
  for (Operation &op : function.front())
    enqueue(&op);
  do {
    // Axes are only ever appended and each value can hold each axis once, so this ends.
    while (!worklist.empty()) {
      Operation *op = worklist.front();
      worklist.pop_front();
      queued.erase(op);
      visit(op);
    }
  } while (decomposeSplitOps());

  MLIRContext *context = function.getContext();
  SignatureAttributes attributes(function);
  for (BlockArgument arg : function.getArguments())
    attributes.argument(arg.getArgNumber())
        .set(dist::kShardingAttrName, toAttr(context, mesh, layoutOf(arg)));
  attributes.commit();
  for (Operation &op : function.front())
    for (Value result : op.getResults())
      dist::setSharding(result, toAttr(context, mesh, layoutOf(result)));
  return success();
}

/// Parses "batch=dp+micro" entries into `map`; what it has already stays.
static LogicalResult parseMap(Location loc, const Mesh &mesh, ArrayRef<std::string> entries,
                              bool asked, llvm::StringMap<LogicalAxis> &map) {
  for (StringRef entry : entries) {
    auto [logical, axes] = entry.split('=');
    if (logical.empty() || !entry.contains('='))
      return emitError(loc) << "shard: '" << entry << "' is not of the form logical=axis+axis";
    if (map.contains(logical)) {
      if (asked)
        return emitError(loc) << "shard: '" << entry << "' maps '" << logical
                              << "' a second time; several axes of one are written as " << logical
                              << "=axis+axis";
      continue;
    }
    LogicalAxis result{{}, asked, asked};
    SmallVector<StringRef> names;
    axes.split(names, '+', -1, /*KeepEmpty=*/false);
    for (StringRef name : names) {
      std::optional<unsigned> axis = mesh.find(name);
      if (!axis) {
        auto diagnostic = emitError(loc) << "shard: '" << entry << "' names the mesh axis '" << name
                                         << "', which does not exist; the mesh has ";
        if (mesh.axes.empty())
          return diagnostic << "no axes; give it some with --mesh";
        llvm::interleaveComma(mesh.axes, diagnostic,
                              [&](const MeshAxis &a) { diagnostic << a.name; });
        return diagnostic;
      }
      if (llvm::is_contained(result.axes, *axis))
        return emitError(loc) << "shard: '" << entry << "' names axis '" << name << "' twice";
      result.axes.push_back(*axis);
    }
    map[logical] = result;
  }
  return success();
}

/// Emits an error where the user maps a logical axis that no tensor of the module has: it would do
/// nothing.
static LogicalResult checkLogicalAxesExist(ModuleOp module, Location loc,
                                           const llvm::StringMap<LogicalAxis> &map) {
  std::set<StringRef> known; // sorted, for the message
  auto collect = [&](ArrayAttr names) {
    if (names)
      for (auto name : names.getAsRange<StringAttr>())
        if (!name.empty())
          known.insert(name.getValue());
  };
  for (auto function : module.getOps<func::FuncOp>()) {
    for (unsigned i = 0, e = function.getNumArguments(); i < e; ++i)
      collect(function.getArgAttrOfType<ArrayAttr>(i, "dtc.axes"));
    function.walk([&](Operation *op) { collect(op->getAttrOfType<ArrayAttr>("dtc.axes")); });
  }
  std::set<StringRef> unknown;
  for (const auto &entry : map)
    if (entry.second.asked && !known.count(entry.first()))
      unknown.insert(entry.first());
  for (StringRef name : unknown) {
    auto diagnostic = emitError(loc) << "shard: the model has no logical axis '" << name << "'";
    if (known.empty()) {
      diagnostic << "; it names none (dtc.axes names the dimensions of parameters and inputs)";
      continue;
    }
    diagnostic << "; it has ";
    llvm::interleaveComma(known, diagnostic, [&](StringRef other) { diagnostic << other; });
  }
  return success(unknown.empty());
}

/// Emits a warning for each axis that splits no value of the module.
static void warnOfUnusedAxes(ModuleOp module, Location loc, const Mesh &mesh) {
  llvm::StringSet<> used;
  auto collect = [&](Value value) {
    if (auto sharding = dist::getSharding(value))
      for (auto dim : sharding.getDims().getAsRange<ArrayAttr>())
        for (auto axis : dim.getAsRange<StringAttr>())
          used.insert(axis.getValue());
  };
  module.walk([&](Operation *op) {
    llvm::for_each(op->getResults(), collect);
    if (auto function = dyn_cast<func::FuncOp>(op); function && !function.isExternal())
      llvm::for_each(function.getArguments(), collect);
  });
  for (const MeshAxis &axis : mesh.axes)
    if (axis.size > 1 && !used.contains(axis.name))
      emitWarning(loc) << "mesh axis '" << axis.name << "' of size " << axis.size
                       << " splits no tensor, so "
                       << (axis.temporal ? "there are no microbatches"
                                         : "all devices along it do the same work")
                       << "; map a logical axis to it (--shard logical=" << axis.name
                       << ") or leave it out";
}

namespace {
struct PropagateShardingsPass : dtc::impl::PropagateShardingsPassBase<PropagateShardingsPass> {
  using Base::Base;

  void runOnOperation() override {
    FailureOr<dist::MeshOp> meshOp = findMesh(getOperation());
    if (failed(meshOp))
      return signalPassFailure();
    Mesh mesh = getMesh(*meshOp);
    llvm::StringMap<LogicalAxis> map;
    Location loc = meshOp->getLoc();
    if (failed(parseMap(loc, mesh, shard, /*asked=*/true, map)) ||
        failed(checkLogicalAxesExist(getOperation(), loc, map)) ||
        failed(parseMap(loc, mesh, defaultShard, /*asked=*/false, map)))
      return signalPassFailure();
    for (const std::string &logical : mustDivide)
      if (auto it = map.find(logical); it != map.end())
        it->second.mustDivide = true;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && failed(Propagation(function, mesh, map).run()))
        return signalPassFailure();
    warnOfUnusedAxes(getOperation(), loc, mesh);
  }
};
} // namespace
