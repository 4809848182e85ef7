//===- ReshardBuilder.cpp - Construction of reshard steps -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/ReshardBuilder.h"

#include "simulator/cluster/CollectiveTime.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace dtc;

std::optional<PermuteAxes> dtc::getPermute(const LinkedMesh &mesh, ArrayRef<int64_t> shape,
                                           const Layout &from, const Layout &to) {
  if (from.partial != to.partial)
    return std::nullopt;
  PermuteAxes result;
  AxisList taken, left; // axes that split a dimension only after, only before
  for (auto [dim, old] : llvm::enumerate(from.dims)) {
    const AxisList &next = to.dims[dim];
    if (old == next)
      continue;
    if (mesh.product(old) != mesh.product(next) || !mesh.divides(shape[dim], old))
      return std::nullopt;
    auto stays = [&](unsigned axis) {
      auto *before = llvm::find(old, axis), *after = llvm::find(next, axis);
      return before != old.end() && after != next.end() &&
             mesh.product(ArrayRef(before, old.end())) == mesh.product(ArrayRef(after, next.end()));
    };
    for (unsigned axis : old)
      if (!stays(axis)) {
        result.axes.push_back(axis);
        if (!to.isShardedOver(axis))
          left.push_back(axis);
      }
    for (unsigned axis : next)
      if (!stays(axis)) {
        result.sourceAxes.push_back(axis);
        if (!from.isShardedOver(axis))
          taken.push_back(axis);
      }
  }
  result.axes.append(taken);
  result.sourceAxes.append(left);
  if (llvm::any_of(result.axes, [&](unsigned axis) {
        return mesh.isTemporal(axis) || from.isPartialOver(axis);
      }))
    return std::nullopt;
  return result;
}

double ReshardBuilder::bytes() const {
  double result = double(problem.elementBytes);
  for (size_t dim = 0; dim < now.dims.size(); ++dim)
    result *= double(size(dim));
  return result;
}

double ReshardBuilder::bytesWith(size_t dim, int64_t size) const {
  double result = double(problem.elementBytes * size);
  for (size_t other = 0; other < now.dims.size(); ++other)
    if (other != dim)
      result *= double(this->size(other));
  return result;
}

void ReshardBuilder::add(ReshardStep step, double localBytes) {
  GroupShape group = mesh.groupOver(step.axes);
  plan.bytes += dtc::sentBytes(*step.collective, localBytes, group.members);
  plan.seconds += dtc::collectiveTime(*step.collective, localBytes, group).seconds;
  plan.steps.push_back(std::move(step));
}

void ReshardBuilder::slice(size_t dim, unsigned axis) {
  plan.seconds += kSliceSeconds;
  bool inRankOrder = mesh.divides(size(dim), {axis});
  now.dims[dim].push_back(axis);
  if (!plan.steps.empty()) {
    ReshardStep &last = plan.steps.back();
    if (!last.collective && last.dim == int64_t(dim) && inRankOrder) {
      last.axes.push_back(axis);
      last.splitSize = size(dim);
      return;
    }
  }
  ReshardStep step{std::nullopt, {axis}, int64_t(dim)};
  step.splitSize = size(dim);
  plan.steps.push_back(std::move(step));
}

void ReshardBuilder::allReduce(const AxisList &axes) {
  add({CollectiveKind::AllReduce, axes}, bytes());
  llvm::erase_if(now.partial, [&](unsigned axis) { return llvm::is_contained(axes, axis); });
}

void ReshardBuilder::reduceScatter(size_t dim, unsigned axis) {
  ReshardStep step{CollectiveKind::ReduceScatter, {axis}, int64_t(dim)};
  llvm::erase(now.partial, axis);
  now.dims[dim].push_back(axis);
  step.splitSize = size(dim);
  double padded = bytesWith(dim, step.splitSize * mesh.axes[axis].size);
  add(std::move(step), padded);
}

void ReshardBuilder::allGather(size_t dim) {
  double before = bytes();
  ReshardStep step{CollectiveKind::AllGather, {now.dims[dim].pop_back_val()}, int64_t(dim)};
  step.gatheredSize = size(dim);
  add(std::move(step), before);
}

void ReshardBuilder::allToAll(size_t dim, size_t splitDim, size_t count) {
  ReshardStep step{CollectiveKind::AllToAll, AxisList(ArrayRef(now.dims[dim]).take_back(count)),
                   int64_t(dim), int64_t(splitDim)};
  now.dims[splitDim].append(step.axes);
  step.splitSize = size(splitDim);
  double padded = bytesWith(splitDim, step.splitSize * mesh.product(step.axes));
  now.dims[dim].truncate(now.dims[dim].size() - count);
  step.gatheredSize = size(dim);
  add(std::move(step), padded);
}

void ReshardBuilder::permute(const Layout &next, const PermuteAxes &axes) {
  ReshardStep step{CollectiveKind::Permute, axes.axes};
  step.sourceAxes = axes.sourceAxes;
  add(std::move(step), bytes());
  now.dims = next.dims;
}

bool ReshardBuilder::complete() {
  AxisList rest;
  for (unsigned axis : now.partial)
    if (!problem.to.isPartialOver(axis)) {
      if (mesh.isTemporal(axis))
        return false;
      rest.push_back(axis);
    }
  if (now.partial.size() - rest.size() != problem.to.partial.size())
    return false; // the target is partial over what is complete
  if (!rest.empty())
    allReduce(rest);
  if (now == problem.to)
    return true;
  auto permuteAxes = getPermute(mesh, problem.shape, now, problem.to);
  if (!permuteAxes)
    return gatherThenSlice();
  ReshardBuilder other = *this;
  permute(problem.to, *permuteAxes);
  if (other.gatherThenSlice() && other.plan.seconds < plan.seconds) {
    now = other.now;
    plan = std::move(other.plan);
  }
  return true;
}

/// A temporal axis keeps its place, and so the number of shards that the axes before it make: only
/// a permute changes these. When everything else has been gathered, all other axes of the target
/// are unused, so if not even then the permute is possible, it never is.
bool ReshardBuilder::gatherThenSlice() {
  const Layout &to = problem.to;
  Layout permuted = now;
  for (size_t dim = 0; dim < now.dims.size(); ++dim) {
    auto temporal = [&](unsigned axis) { return mesh.isTemporal(axis); };
    auto common = std::mismatch(now.dims[dim].begin(), now.dims[dim].end(), to.dims[dim].begin(),
                                to.dims[dim].end());
    size_t keep = common.first - now.dims[dim].begin();
    if (std::any_of(common.first, now.dims[dim].end(), temporal)) {
      auto isTarget = [&](unsigned axis) { return axis != now.dims[dim].back(); };
      while (!temporal(now.dims[dim].back()))
        allGather(dim);
      // The axes of the target up to the same temporal axis.
      AxisList prefix(ArrayRef(to.dims[dim]).take_while(isTarget));
      if (prefix.size() == to.dims[dim].size())
        return false;
      prefix.push_back(now.dims[dim].back());
      permuted.dims[dim] = prefix;
      continue;
    }
    while (now.dims[dim].size() > keep)
      allGather(dim);
    permuted.dims[dim] = now.dims[dim];
  }
  permuted.partial = now.partial;
  if (permuted != now) {
    auto axes = getPermute(mesh, problem.shape, now, permuted);
    if (!axes)
      return false;
    permute(permuted, *axes);
  }
  for (size_t dim = 0; dim < now.dims.size(); ++dim)
    while (now.dims[dim].size() < to.dims[dim].size())
      slice(dim, to.dims[dim][now.dims[dim].size()]);
  return true;
}
