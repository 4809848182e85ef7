//===- Layout.cpp - Shardings as plain data -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Layout.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace dtc;

std::optional<unsigned> LinkedMesh::find(StringRef axis) const {
  for (auto [index, known] : llvm::enumerate(axes))
    if (known.name == axis)
      return index;
  return std::nullopt;
}

/// Whether `name` is that of a part of `axis`, which may be a part itself: "ep.1.0" of "ep.1".
static bool isPartOf(StringRef name, StringRef axis) {
  return name.consume_front(axis) && name.starts_with(".");
}

AxisList LinkedMesh::findAll(StringRef axis) const {
  if (std::optional<unsigned> found = find(axis))
    return {*found};
  AxisList parts;
  for (auto [index, known] : llvm::enumerate(axes))
    if (!axis.empty() &&
        (known.subAxisOf == axis || (!known.subAxisOf.empty() && isPartOf(known.name, axis))))
      parts.push_back(index);
  return parts;
}

int64_t LinkedMesh::product(ArrayRef<unsigned> list) const {
  int64_t result = 1;
  for (unsigned axis : list)
    result *= axes[axis].size;
  return result;
}

int64_t LinkedMesh::localSize(int64_t size, ArrayRef<unsigned> list) const {
  int64_t shards = product(list);
  return (size + shards - 1) / shards;
}

bool LinkedMesh::divides(int64_t size, ArrayRef<unsigned> list) const {
  return size % product(list) == 0;
}

bool LinkedMesh::splitsInRankOrder(int64_t size, ArrayRef<unsigned> list) const {
  return list.empty() || divides(localSize(size, list.front()), list.drop_front());
}

std::optional<unsigned> LinkedMesh::pipelineAxis() const {
  const auto *it = llvm::find_if(axes, [](const LinkedAxis &axis) { return axis.pipeline; });
  return it == axes.end() ? std::nullopt : std::optional<unsigned>(it - axes.begin());
}

std::optional<unsigned> LinkedMesh::temporalAxis() const {
  for (auto [index, axis] : llvm::enumerate(axes))
    if (axis.temporal)
      return index;
  return std::nullopt;
}

GroupShape LinkedMesh::groupOver(llvm::ArrayRef<unsigned> list) const {
  llvm::SmallVector<GroupAxis, 8> group;
  for (unsigned axis : list)
    group.push_back({axes[axis].size, {axes[axis].bandwidth, axes[axis].latency}});
  return GroupShape::ofTorus(group);
}

std::string LinkedMesh::str(ArrayRef<unsigned> list) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "{";
  llvm::interleaveComma(list, os, [&](unsigned axis) { os << '"' << axes[axis].name << '"'; });
  os << "}";
  return text;
}

bool Layout::isShardedOver(unsigned axis) const {
  return llvm::any_of(dims, [&](const AxisList &dim) { return llvm::is_contained(dim, axis); });
}

SmallVector<int64_t> Layout::localShape(const LinkedMesh &mesh, ArrayRef<int64_t> shape) const {
  SmallVector<int64_t> local;
  for (auto [size, dim] : llvm::zip_equal(shape, dims))
    local.push_back(mesh.localSize(size, dim));
  return local;
}

bool Layout::divides(const LinkedMesh &mesh, ArrayRef<int64_t> shape) const {
  return llvm::all_of(llvm::zip_equal(shape, dims), [&](const auto &entry) {
    return mesh.divides(std::get<0>(entry), std::get<1>(entry));
  });
}

std::string Layout::str(const LinkedMesh &mesh) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "[";
  llvm::interleaveComma(dims, os, [&](const AxisList &dim) { os << mesh.str(dim); });
  os << "]";
  if (!partial.empty())
    os << " partial " << name(partialKind) << mesh.str(partial);
  return text;
}

std::optional<Layout> dtc::layoutFromFactors(const LinkedMesh &mesh, const ShardingRule &rule,
                                             const TensorFactors &tensor, const FactorAxes &axes) {
  Layout layout = Layout::replicated(tensor.size());
  for (auto [dim, factors] : llvm::zip_equal(layout.dims, tensor)) {
    bool majorSplitCompletely = true;
    for (unsigned factor : factors) {
      if (!axes[factor].empty() && !majorSplitCompletely)
        return std::nullopt;
      dim.append(axes[factor]);
      majorSplitCompletely &= mesh.product(axes[factor]) == rule.factors[factor].size;
    }
  }
  return layout;
}

unsigned dtc::factorsFromDim(const LinkedMesh &mesh, const ShardingRule &rule,
                             ArrayRef<unsigned> dimFactors, ArrayRef<unsigned> dimAxes,
                             FactorAxes &axes) {
  if (dimFactors.size() == 1) {
    // A dimension of one factor may be padded: any axes can split it.
    axes[dimFactors.front()].append(dimAxes.begin(), dimAxes.end());
    return dimAxes.size();
  }
  unsigned taken = 0;
  for (unsigned factor : dimFactors) {
    int64_t room = rule.factors[factor].size;
    while (taken < dimAxes.size() && room % mesh.axes[dimAxes[taken]].size == 0 &&
           (room > 1 || mesh.axes[dimAxes[taken]].size == 1)) {
      room /= mesh.axes[dimAxes[taken]].size;
      axes[factor].push_back(dimAxes[taken++]);
    }
    if (room != 1)
      break;
  }
  return taken;
}

bool LinkedMesh::leavesEmptyShards(int64_t size, ArrayRef<unsigned> list) const {
  // The last shard of the last has the fewest elements.
  int64_t room = size;
  for (unsigned axis : list) {
    room = llvm::divideCeil(room, axes[axis].size);
    size -= room * (axes[axis].size - 1);
  }
  return size <= 0;
}

int64_t dtc::elementBytes(Type tensor) {
  return std::max(8u, cast<RankedTensorType>(tensor).getElementTypeBitWidth()) / 8;
}

LinkedMesh dtc::getMesh(dist::MeshOp op) {
  LinkedMesh mesh;
  mesh.name = op.getSymName().str();
  for (auto axis : op.getAxes().getAsRange<dist::AxisAttr>()) {
    mesh.axes.push_back({axis.getName().str(), axis.getSize(), axis.getTemporal()});
    LinkedAxis &added = mesh.axes.back();
    if (axis.getBandwidth() && axis.getBandwidth().getValueAsDouble() > 0) {
      added.bandwidth = axis.getBandwidth().getValueAsDouble();
      added.hasKnownLink = true;
    }
    if (axis.getLatency() && axis.getLatency().getValueAsDouble() > 0)
      added.latency = axis.getLatency().getValueAsDouble();
    if (axis.getSubAxisOf())
      added.subAxisOf = axis.getSubAxisOf().str();
    added.pipeline = axis.getPipeline();
  }
  if (auto flops = op.getDeviceFlops())
    mesh.deviceFlops = flops->convertToDouble();
  if (auto bandwidth = op.getDeviceBandwidth())
    mesh.deviceBandwidth = bandwidth->convertToDouble();
  return mesh;
}

Layout dtc::getLayout(const LinkedMesh &mesh, dist::ShardingAttr attr) {
  auto list = [&](ArrayAttr axes) {
    AxisList result;
    for (StringAttr name : axes.getAsRange<StringAttr>())
      result.push_back(*mesh.find(name));
    return result;
  };
  Layout layout;
  for (auto dim : attr.getDims().getAsRange<ArrayAttr>())
    layout.dims.push_back(list(dim));
  layout.partial = list(attr.getPartialAxes());
  llvm::sort(layout.partial);
  layout.partialKind = attr.getPartialKind();
  return layout;
}

dist::ShardingAttr dtc::toAttr(MLIRContext *context, const LinkedMesh &mesh, const Layout &layout) {
  Builder b(context);
  auto list = [&](ArrayRef<unsigned> axes) -> Attribute {
    SmallVector<Attribute> names;
    for (unsigned axis : axes)
      names.push_back(b.getStringAttr(mesh.axes[axis].name));
    return b.getArrayAttr(names);
  };
  SmallVector<Attribute> dims;
  for (const AxisList &dim : layout.dims)
    dims.push_back(list(dim));
  return dist::ShardingAttr::get(context, FlatSymbolRefAttr::get(context, mesh.name),
                                 b.getArrayAttr(dims), layout.partialKind,
                                 cast<ArrayAttr>(list(layout.partial)));
}

FailureOr<dist::MeshOp> dtc::findMesh(Operation *module) {
  dist::MeshOp found;
  for (Operation &op : module->getRegion(0).front())
    if (auto mesh = dyn_cast<dist::MeshOp>(op)) {
      if (found)
        return mesh.emitOpError() << "is a second mesh beside @" << found.getSymName()
                                  << "; a program runs on one mesh";
      found = mesh;
    }
  if (!found)
    return module->emitOpError() << "has no dist.mesh; declare one, or give dtc-compile --mesh";
  return found;
}
