//===- SplitMeshAxes.cpp - Split mesh axes into sub-axes ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/ZeroSplit.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/sharding/LogicalAxes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AttrTypeSubElements.h"

#include <map>
#include <numeric>
#include <set>

namespace dtc {
#define GEN_PASS_DEF_SPLITMESHAXESPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

/// For each mesh axis the products at which it is to be cut: 2 for tp=4 where two key-value heads
/// are mapped to it.
using Cuts = std::map<unsigned, std::set<int64_t>>;

struct SplitMeshAxesPass : dtc::impl::SplitMeshAxesPassBase<SplitMeshAxesPass> {
  using Base::Base;
  void runOnOperation() override;

private:
  /// Notes where the axes of a value's dimensions would have to be cut.
  void collect(Type type, ArrayAttr names, const LinkedMesh &mesh, const LogicalAxisMap &map,
               Cuts &cuts);
  /// Notes where an axis that ZeRO splits over would have to be cut for shards of even sizes.
  void collectForZero(const LinkedMesh &mesh, const LogicalAxisMap &map, Cuts &cuts);
  SmallVector<int64_t> partSizes(int64_t size, const std::set<int64_t> &cuts);
  void replace(dist::MeshOp meshOp, const LinkedMesh &mesh, const Cuts &cuts);
};

} // namespace

void SplitMeshAxesPass::collect(Type type, ArrayAttr names, const LinkedMesh &mesh,
                                const LogicalAxisMap &map, Cuts &cuts) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!names || !tensor || int64_t(names.size()) != tensor.getRank())
    return;
  for (auto [index, name] : llvm::enumerate(names.getAsRange<StringAttr>())) {
    auto it = map.find(name.getValue());
    if (it == map.end() || it->second.isBatch || llvm::is_contained(whole, name.getValue()))
      continue;
    int64_t left = tensor.getDimSize(index);
    for (unsigned axis : it->second.axes) {
      int64_t size = mesh.axes[axis].size, common = std::gcd(left, size);
      // Only where there are fewer elements than devices: otherwise padding leaves less undone.
      if (common < size && common > 1 && left < size && !mesh.isTemporal(axis))
        cuts[axis].insert(common);
      if (left % size != 0)
        break;
      left /= size;
    }
  }
}

/// How a parameter will lie without ZeRO, as far as its own sharding or the names of its dimensions
/// say.
static Layout layoutOfParameter(func::FuncOp function, BlockArgument arg, const LinkedMesh &mesh,
                                const LogicalAxisMap &map) {
  auto type = cast<RankedTensorType>(arg.getType());
  if (auto sharding = dist::getSharding(arg))
    if (sharding.getMesh().getValue() == mesh.name)
      return getLayout(mesh, sharding);
  Layout layout = Layout::replicated(type.getRank());
  auto names = function.getArgAttrOfType<ArrayAttr>(arg.getArgNumber(), "dtc.axes");
  if (!names || int64_t(names.size()) != type.getRank())
    return layout;
  for (auto [dim, name] : llvm::enumerate(names.getAsRange<StringAttr>()))
    if (auto it = map.find(name.getValue()); it != map.end())
      for (unsigned axis : it->second.axes)
        if (!layout.isShardedOver(axis))
          layout.dims[dim].push_back(axis);
  return layout;
}

void SplitMeshAxesPass::collectForZero(const LinkedMesh &mesh, const LogicalAxisMap &map,
                                       Cuts &cuts) {
  AxisList axes;
  for (const std::string &name : zeroAxes)
    for (unsigned axis : mesh.findAll(name))
      if (!llvm::is_contained(axes, axis) && !mesh.isTemporal(axis) && !mesh.axes[axis].pipeline)
        axes.push_back(axis);
  SmallVector<ZeroTensor> tensors; // layers are alike, so few are different
  for (auto function : getOperation().getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    for (BlockArgument arg : function.getArguments()) {
      auto type = dyn_cast<RankedTensorType>(arg.getType());
      if (!type || !function.getArgAttr(arg.getArgNumber(), "dtc.param"))
        continue;
      Layout layout = layoutOfParameter(function, arg, mesh, map);
      auto *same = llvm::find_if(tensors, [&](const ZeroTensor &other) {
        return ArrayRef(other.shape) == type.getShape() && other.layout == layout;
      });
      if (same == tensors.end())
        tensors.push_back({SmallVector<int64_t>(type.getShape()), layout, 1});
      else
        same->weight += 1;
    }
  }
  if (std::optional<ZeroCut> cut = findZeroCut(mesh, tensors, axes))
    cuts[cut->axis].insert(cut->first);
}

/// 8 cut at 2 and 4 is 2, 2, 2. A cut that does not divide the next one is left out.
SmallVector<int64_t> SplitMeshAxesPass::partSizes(int64_t size, const std::set<int64_t> &cuts) {
  SmallVector<int64_t> parts;
  int64_t before = 1;
  for (int64_t cut : cuts) {
    if (cut % before != 0)
      continue;
    parts.push_back(cut / before);
    before = cut;
  }
  parts.push_back(size / before);
  return parts;
}

void SplitMeshAxesPass::replace(dist::MeshOp meshOp, const LinkedMesh &mesh, const Cuts &cuts) {
  Builder b(&getContext());
  SmallVector<Attribute> axes;
  llvm::StringMap<SmallVector<Attribute>> partsOf; // names
  for (auto [index, attr] : llvm::enumerate(meshOp.getAxes().getAsRange<dist::AxisAttr>())) {
    auto it = cuts.find(index);
    if (it == cuts.end()) {
      axes.push_back(attr);
      continue;
    }
    StringRef name = attr.getName().getValue();
    for (auto [number, size] : llvm::enumerate(partSizes(attr.getSize(), it->second))) {
      StringAttr part = b.getStringAttr(name + "." + Twine(number));
      partsOf[name].push_back(part);
      StringAttr whole = attr.getSubAxisOf() ? attr.getSubAxisOf() : attr.getName();
      axes.push_back(dist::AxisAttr::get(&getContext(), part, size, attr.getTemporal(),
                                         attr.getPipeline(), whole, attr.getBandwidth(),
                                         attr.getLatency()));
    }
  }
  meshOp.setAxesAttr(b.getArrayAttr(axes));

  auto expand = [&](ArrayAttr names) {
    SmallVector<Attribute> list;
    for (auto name : names.getAsRange<StringAttr>()) {
      auto it = partsOf.find(name.getValue());
      if (it == partsOf.end())
        list.push_back(name);
      else
        llvm::append_range(list, it->second);
    }
    return b.getArrayAttr(list);
  };
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](dist::ShardingAttr attr) -> Attribute {
    if (attr.getMesh().getValue() != mesh.name)
      return attr;
    SmallVector<Attribute> dims;
    for (auto dim : attr.getDims().getAsRange<ArrayAttr>())
      dims.push_back(expand(dim));
    return dist::ShardingAttr::get(&getContext(), attr.getMesh(), b.getArrayAttr(dims),
                                   attr.getPartialKind(), expand(attr.getPartialAxes()),
                                   attr.getOpen(), attr.getPriorities());
  });
  replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true);
}

void SplitMeshAxesPass::runOnOperation() {
  FailureOr<dist::MeshOp> meshOp = findMesh(getOperation());
  if (failed(meshOp))
    return signalPassFailure();
  LinkedMesh mesh = getMesh(*meshOp);
  LogicalAxisMap map;
  Location loc = meshOp->getLoc();
  if (failed(parseLogicalAxes(loc, mesh, shard, /*asked=*/true, map)) ||
      failed(completeBatch(getOperation(), loc, mesh, {}, map)) ||
      failed(parseLogicalAxes(loc, mesh, defaultShard, /*asked=*/false, map)))
    return signalPassFailure();
  Cuts cuts;
  for (auto function : getOperation().getOps<func::FuncOp>()) {
    for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
      collect(type, function.getArgAttrOfType<ArrayAttr>(index, "dtc.axes"), mesh, map, cuts);
    function.walk([&](Operation *op) {
      if (op->getNumResults() == 1)
        collect(op->getResult(0).getType(), op->getAttrOfType<ArrayAttr>("dtc.axes"), mesh, map,
                cuts);
    });
  }
  collectForZero(mesh, map, cuts);
  if (!cuts.empty())
    replace(*meshOp, mesh, cuts);
}
