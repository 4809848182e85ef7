//===- PropagationSeeds.cpp - Initial shardings of propagation ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/sharding/Propagation.h"

#include "dialects/dtc/DtcOps.h"

using namespace mlir;
using namespace dtc;

void Propagation::enter(const ShardingRequest &request) {
  Layout &layout = layoutOf(request.value);
  AxisList axes;
  for (unsigned axis : request.axes) {
    if (llvm::is_contained(layout.dims[request.dim], axis))
      continue;
    if (layout.isShardedOver(axis))
      break; // more urgent requests have used it
    axes.push_back(axis);
  }
  if (axes.empty())
    return;
  append(request.value, request.dim, axes);
  remarkPadding(request.value, request.dim, request.what);
}

void Propagation::remarkPadding(Value value, unsigned dim, const Twine &what) {
  // The optimizer's state lies as its parameter does: one remark is enough.
  auto argument = dyn_cast<BlockArgument>(value);
  if (argument && function.getArgAttr(argument.getArgNumber(), "dtc.state"))
    return;
  const AxisList &axes = layoutOf(value).dims[dim];
  int64_t size = cast<RankedTensorType>(value.getType()).getDimSize(dim);
  if (!mesh.divides(size, axes))
    emitRemark(value.getLoc()) << what << " of size " << size << " is padded to "
                               << mesh.localSize(size, axes) * mesh.product(axes)
                               << " to be split over " << mesh.str(axes);
}

//===----------------------------------------------------------------------===//
// Shardings in the IR
//===----------------------------------------------------------------------===//

LogicalResult Propagation::fix(Value value, dist::ShardingAttr sharding, const Twine &what,
                               Location loc) {
  Layout layout = getLayout(mesh, sharding);
  if (!layout.partial.empty())
    return emitError(loc) << what << ": the sharding " << sharding
                          << " is partial; only complete ones can be asked for";
  auto [known, fresh] = fixed.try_emplace(value, loc);
  if (!fresh && layoutOf(value) != layout) {
    auto diagnostic = emitError(loc) << what << ": is asked to be " << layout.str(mesh) << " and "
                                     << layoutOf(value).str(mesh) << "; remove one of the two";
    diagnostic.attachNote(known->second) << "the other one is asked for here";
    return diagnostic;
  }
  SmallVector<bool, 4> shut;
  for (auto [dim, axes] : llvm::enumerate(layout.dims)) {
    shut.push_back(!sharding.isOpen(dim));
    int64_t priority = sharding.getPriority(dim);
    if (priority == 0 || axes.empty())
      continue;
    requests[priority].push_back(
        {value, unsigned(dim), axes, (what + ": dimension " + Twine(dim)).str()});
    axes.clear();
  }
  layoutOf(value) = layout;
  if (llvm::is_contained(shut, true))
    closed[value] = shut;
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
        ownConstraints.insert(constrain);
      }
    op.removeAttr(dist::kShardingAttrName);
  }
}

//===----------------------------------------------------------------------===//
// The axis map
//===----------------------------------------------------------------------===//

/// How many of `axes` make the parts of a dimension of `size` elements smaller.
static size_t usefulAxes(const LinkedMesh &mesh, int64_t size, ArrayRef<unsigned> axes) {
  for (auto [index, axis] : llvm::enumerate(axes)) {
    if (size == 1 && mesh.axes[axis].size > 1)
      return index;
    size = llvm::divideCeil(size, mesh.axes[axis].size);
  }
  return axes.size();
}

/// Whether an op takes the rows [X, B, C, D] of experts from tokens [B, S, D].
static bool takesRowsOfExperts(Operation &op) {
  auto embedding = dyn_cast<EmbeddingOp>(op);
  return embedding && cast<RankedTensorType>(embedding.getTable().getType()).getRank() == 3 &&
         cast<RankedTensorType>(embedding.getResult().getType()).getRank() == 4;
}

/// Where the devices along the axis of experts form groups: a token travels once to each group, and
/// its rows inside of groups (DeepSeek-AI, "DeepSeek-V3", arXiv:2412.19437, section 3.2.2). A
/// device makes the rows of the experts of its group, for the samples of the devices with its place
/// in all groups. Only where that sends fewer bytes between groups: a device then sends its tokens
/// to all other groups, otherwise the rows of the experts there. Either way rows go to where their
/// experts are before anything is computed of them.
static void placeRowsOfGroups(func::FuncOp function, const LinkedMesh &mesh,
                              const LogicalAxisMap &logicalAxes) {
  auto groups = logicalAxes.find(kExpertGroupAxisName);
  if (groups == logicalAxes.end())
    return;
  for (Operation &op : function.front()) {
    if (!takesRowsOfExperts(op))
      continue;
    auto tokens = cast<RankedTensorType>(op.getOperand(0).getType()),
         type = cast<RankedTensorType>(op.getResult(0).getType());
    if (tokens.getNumElements() * mesh.product(groups->second.axes) < type.getNumElements())
      op.setAttr(DtcDialect::kAxesAttrName,
                 Builder(op.getContext())
                     .getStrArrayAttr({kExpertGroupAxisName, kGroupBatchAxisName, "", ""}));
    Layout layout = Layout::replicated(type.getRank());
    auto split = [&](size_t dim, StringRef name) {
      auto it = logicalAxes.find(name);
      if (it == logicalAxes.end())
        return;
      ArrayRef<unsigned> axes = it->second.axes;
      layout.dims[dim] = AxisList(axes.take_front(usefulAxes(mesh, type.getDimSize(dim), axes)));
    };
    split(0, "experts");
    split(1, "expert_batch");
    dist::setSharding(op.getResult(0), toAttr(op.getContext(), mesh, layout));
  }
}

LogicalResult Propagation::seedValue(Value value, ArrayAttr axisNames, const Twine &what,
                                     Location loc) {
  for (auto [index, attr] : llvm::enumerate(axisNames)) {
    auto it = logicalAxes.find(cast<StringAttr>(attr).getValue());
    if (it == logicalAxes.end())
      continue;
    const LogicalAxis &logical = it->second;
    int64_t size = cast<RankedTensorType>(value.getType()).getDimSize(index);
    std::string dimension =
        (what + ": dimension " + Twine(index) + " ('" + it->first() + "')").str();
    AxisList axes = logical.axes;
    size_t useful = usefulAxes(mesh, size, axes);
    // Copies of a part are fine, such as of key-value heads for several query heads; a dimension
    // that is to be split and would not be at all is not, nor is an axis of more devices than
    // there are elements left for it.
    ArrayRef<unsigned> splitting = ArrayRef<unsigned>(axes).take_front(useful);
    bool tooMany = mesh.product(axes) > 1 && mesh.product(splitting) == 1;
    for (size_t i = 0; i < useful; ++i)
      tooMany |= mesh.axes[axes[i]].size > mesh.localSize(size, splitting.take_front(i));
    // Replicated samples would be computed twice.
    bool isBatch = logical.isBatch || it->first() == kBatchAxisName;
    tooMany |= isBatch && mesh.product(ArrayRef<unsigned>(axes).drop_front(useful)) > 1;
    if (logical.mustSplit && tooMany) {
      auto diagnostic = emitError(loc) << dimension << " has size " << size << ", which "
                                       << mesh.str(axes) << " would split in " << mesh.product(axes)
                                       << " shards, some of them empty; ";
      if (!isBatch)
        return diagnostic << "change the size or the mesh";
      diagnostic << "take a batch of at least " << mesh.product(axes);
      for (unsigned axis : axes)
        if (mesh.axes[axis].size > 1)
          diagnostic << (axis == axes.back() ? " or " : ", ")
                     << (mesh.isTemporal(axis)
                             ? "fewer microbatches than "
                             : "fewer devices than \"" + mesh.axes[axis].name + "\"=")
                     << mesh.axes[axis].size;
      return diagnostic;
    }
    axes.truncate(useful);
    if (logical.mustSplit && mesh.leavesEmptyShards(size, axes) &&
        warned.insert({it->first().str(), size}).second)
      emitWarning(loc) << dimension << " of size " << size << " has " << mesh.product(axes)
                       << " shards over " << mesh.str(axes) << ", some of them empty; a size of "
                       << llvm::alignTo(size, mesh.product(axes)) << " costs as much";
    if (logical.priority > 0) {
      requests[logical.priority].push_back({value, unsigned(index), axes, dimension});
      continue;
    }
    Layout &layout = layoutOf(value);
    for (unsigned axis : axes) {
      if (!layout.isShardedOver(axis)) {
        layout.dims[index].push_back(axis);
        continue;
      }
      if (logical.asked)
        return emitError(loc) << what << ": axis \"" << mesh.axes[axis].name
                              << "\" would split two dimensions of it, '" << it->first()
                              << "' and an earlier one; map them to different axes";
      break;
    }
    remarkPadding(value, index, dimension);
  }
  return success();
}

LogicalResult Propagation::seedArguments() {
  for (BlockArgument arg : function.getArguments()) {
    unsigned index = arg.getArgNumber();
    std::string what = "argument " + std::to_string(index);
    for (StringRef key : {"dtc.param", "dtc.state_of", "dtc.input"})
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
  return success();
}

LogicalResult Propagation::seedOps() {
  for (Operation &op : function.front()) {
    if (auto constrain = dyn_cast<dist::ConstrainOp>(op)) {
      for (auto sharding : {constrain.getSharding(), dist::getSharding(constrain.getResult())})
        if (sharding && failed(fix(constrain.getResult(), sharding, "dist.constrain", op.getLoc())))
          return failure();
      // One value that is constrained to two shardings at once contradicts itself.
      for (Operation *other : constrain.getInput().getUsers())
        if (auto twin = dyn_cast<dist::ConstrainOp>(other);
            twin && twin != constrain && twin->isBeforeInBlock(constrain) &&
            twin.getSharding() != constrain.getSharding()) {
          auto diagnostic = constrain.emitError()
                            << "a value is constrained to "
                            << getLayout(mesh, constrain.getSharding()).str(mesh)
                            << ", and to another sharding elsewhere; constrain it once, and what "
                               "must lie differently after that";
          diagnostic.attachNote(twin.getLoc())
              << "here it is constrained to " << getLayout(mesh, twin.getSharding()).str(mesh);
          return diagnostic;
        }
      continue;
    }
    if (auto names = op.getAttrOfType<ArrayAttr>("dtc.axes"))
      for (Value value : op.getResults())
        if (failed(seedValue(value, names, op.getName().getStringRef(), op.getLoc())))
          return failure();
  }
  return success();
}

/// A function's results are where its return operands are; an explicit sharding there fixes them.
LogicalResult Propagation::checkResultShardings() {
  auto *terminator = function.front().getTerminator();
  for (unsigned index = 0; index < terminator->getNumOperands(); ++index) {
    auto sharding =
        function.getResultAttrOfType<dist::ShardingAttr>(index, dist::kShardingAttrName);
    if (!sharding)
      continue;
    Layout layout = getLayout(mesh, sharding);
    if (!layout.partial.empty())
      return emitError(function.getLoc()) << "result " << index << ": the sharding " << sharding
                                          << " is partial; only complete ones can be asked for";
    if (auto temporalAxis = mesh.temporalAxis();
        temporalAxis && layout.isShardedOver(*temporalAxis))
      return emitError(function.getLoc())
             << "result " << index << ": the sharding " << sharding
             << " splits it over the temporal axis \"" << mesh.axes[*temporalAxis].name
             << "\"; a result is there once for all microbatches";
    if (auto updates = function.getResultAttrOfType<IntegerAttr>(index, "dtc.updates")) {
      BlockArgument state = function.getArgument(updates.getInt());
      auto asked = dist::getSharding(state);
      if (asked && getLayout(mesh, asked) != layout)
        return emitError(function.getLoc())
               << "result " << index << ": is asked to be " << layout.str(mesh)
               << ", but it is the new value of argument " << state.getArgNumber()
               << ", which is asked to be " << getLayout(mesh, asked).str(mesh)
               << "; remove one of the two";
    }
  }
  return success();
}

LogicalResult Propagation::seed() {
  if (failed(seedArguments()))
    return failure();
  placeRowsOfGroups(function, mesh, logicalAxes);
  constrainExplicitResults();
  if (failed(seedOps()))
    return failure();
  return checkResultShardings();
}
