//===- ReshardOptimum.cpp - The least cost of a reshard, exhaustively -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/compiler/analysis/ReshardReference.h"

#include <limits>
#include <set>

using namespace dtc;
using namespace dtc::testing;
using llvm::ArrayRef;

static constexpr double kNever = std::numeric_limits<double>::infinity();
static constexpr double kSlice = 1e-9;

namespace {

/// The cost of a single step between two layouts, from the difference between them.
class Edges {
public:
  explicit Edges(const ReshardCase &c) : c(c), mesh(c.mesh) {}

  double seconds(const Layout &u, const Layout &v) const;
  double gather(const Layout &u, ArrayRef<unsigned> axes) const {
    return time(axes, bytes(u) * (group(axes) - 1), 1);
  }
  double allReduce(const Layout &u, ArrayRef<unsigned> axes) const {
    double n = group(axes);
    return time(axes, 2 * bytes(u) * (n - 1) / n, 2);
  }

private:
  double group(ArrayRef<unsigned> axes) const { return double(mesh.product(axes)); }
  int64_t part(size_t dim, ArrayRef<unsigned> axes) const {
    int64_t size = c.shape[dim];
    for (unsigned axis : axes)
      size = (size + mesh.axes[axis].size - 1) / mesh.axes[axis].size;
    return size;
  }
  double bytes(const Layout &u) const {
    double result = double(c.elementBytes);
    for (size_t dim = 0; dim < c.shape.size(); ++dim)
      result *= double(part(dim, u.dims[dim]));
    return result;
  }
  /// `rings` is how often the devices of each axis pass something round; 0 for a single hop.
  double time(ArrayRef<unsigned> axes, double bytes, double rings) const {
    double slowest = 0, hop = 0, delay = 0;
    for (unsigned axis : axes)
      if (mesh.axes[axis].temporal)
        return kNever;
      else if (mesh.axes[axis].size > 1) {
        slowest = std::max(slowest, 1 / mesh.axes[axis].bandwidth);
        hop = std::max(hop, mesh.axes[axis].latency);
        delay += double(mesh.axes[axis].size - 1) * mesh.axes[axis].latency;
      }
    return bytes * slowest + (rings > 0 ? rings * delay : hop);
  }
  /// Whether `b` is `a` and more; `more` is what follows then.
  static bool extends(const AxisList &a, const AxisList &b, AxisList &more) {
    if (a.size() > b.size() || !std::equal(a.begin(), a.end(), b.begin()))
      return false;
    more.assign(b.begin() + a.size(), b.end());
    return true;
  }
  /// Whether devices, in the order of their ranks over `axes`, have the blocks of `dim` in order.
  bool inOrder(size_t dim, const AxisList &before, const AxisList &axes) const {
    AxisList list = before;
    for (size_t i = 0; i < axes.size(); ++i) {
      int64_t whole = part(dim, list);
      list.push_back(axes[i]);
      if (i > 0 && whole % mesh.axes[axes[i]].size != 0)
        return false;
    }
    return true;
  }
  /// Whether the layouts differ by spatial axes of size one at most.
  bool sameBlocks(Layout u, Layout v) const {
    for (Layout *layout : {&u, &v}) {
      auto splitsNothing = [&](unsigned axis) {
        return mesh.axes[axis].size == 1 && !mesh.axes[axis].temporal;
      };
      llvm::erase_if(layout->partial, splitsNothing);
      for (AxisList &dim : layout->dims)
        llvm::erase_if(dim, splitsNothing);
    }
    return u == v;
  }
  double scatter(const Layout &u, size_t dim, const AxisList &dimAfter, const AxisList &axes) const;
  double permute(const Layout &u, const Layout &v) const;

  const ReshardCase &c;
  const LinkedMesh &mesh;
};

} // namespace

/// A reduce_scatter or all_to_all that splits `dim`.
double Edges::scatter(const Layout &u, size_t dim, const AxisList &dimAfter,
                      const AxisList &axes) const {
  double padded = bytes(u) / double(part(dim, u.dims[dim])) * double(part(dim, dimAfter));
  return time(axes, padded * (group(axes) - 1), 1);
}

/// Each receiver asks who has its new shard. Devices that have copies of it share the receivers in
/// the order of the axes that are left over on both sides.
double Edges::permute(const Layout &u, const Layout &v) const {
  AxisList old, next;
  for (size_t dim = 0; dim < u.dims.size(); ++dim) {
    if (u.dims[dim] == v.dims[dim])
      continue;
    if (group(u.dims[dim]) != group(v.dims[dim]) || c.shape[dim] % mesh.product(u.dims[dim]))
      return kNever;
    old.append(u.dims[dim]);
    next.append(v.dims[dim]);
  }
  AxisList axes = old, sources = next;
  for (unsigned axis : next)
    if (!llvm::is_contained(old, axis))
      axes.push_back(axis);
  for (unsigned axis : old)
    if (!llvm::is_contained(next, axis))
      sources.push_back(axis);
  std::set<unsigned> differ;
  for (int64_t receiver = 0; receiver < mesh.product(sources); ++receiver) {
    std::vector<int64_t> own(mesh.axes.size()), sender(mesh.axes.size());
    for (auto [list, digits] : {std::pair(&sources, &own), std::pair(&axes, &sender)}) {
      int64_t rest = receiver;
      for (unsigned axis : llvm::reverse(*list)) {
        (*digits)[axis] = rest % mesh.axes[axis].size;
        rest /= mesh.axes[axis].size;
      }
    }
    for (unsigned axis : axes)
      if (own[axis] != sender[axis])
        differ.insert(axis);
  }
  std::vector<unsigned> moved(differ.begin(), differ.end());
  return moved.empty() ? 0 : time(moved, bytes(u), 0);
}

double Edges::seconds(const Layout &u, const Layout &v) const {
  if (sameBlocks(u, v))
    return 0;
  AxisList reduced, more, other;
  for (unsigned axis : u.partial)
    if (!v.isPartialOver(axis))
      reduced.push_back(axis);
  if (v.partial.size() + reduced.size() != u.partial.size())
    return kNever;
  std::vector<size_t> changed;
  for (size_t dim = 0; dim < u.dims.size(); ++dim)
    if (u.dims[dim] != v.dims[dim])
      changed.push_back(dim);
  if (!reduced.empty()) {
    if (changed.empty())
      return allReduce(u, reduced);
    size_t dim = changed.front();
    if (changed.size() != 1 || !extends(u.dims[dim], v.dims[dim], more) ||
        more.size() != reduced.size() || !inOrder(dim, u.dims[dim], more))
      return kNever;
    for (unsigned axis : more)
      if (!llvm::is_contained(reduced, axis))
        return kNever;
    return scatter(u, dim, v.dims[dim], more);
  }
  double least = kNever;
  if (changed.size() == 1) {
    size_t dim = changed.front();
    if (extends(u.dims[dim], v.dims[dim], more))
      least = kSlice * double(more.size());
    else if (extends(v.dims[dim], u.dims[dim], more) && inOrder(dim, v.dims[dim], more))
      least = gather(u, more);
  }
  if (changed.size() == 2)
    for (auto [dim, split] : {std::pair(changed[0], changed[1]), std::pair(changed[1], changed[0])})
      if (extends(v.dims[dim], u.dims[dim], more) && extends(u.dims[split], v.dims[split], other) &&
          more == other && inOrder(dim, v.dims[dim], more) && inOrder(split, u.dims[split], more))
        least = std::min(least, scatter(u, split, v.dims[split], more));
  return std::min(least, permute(u, v));
}

double dtc::testing::gatherThenSliceSeconds(const ReshardCase &c) {
  Edges edges(c);
  Layout now = c.from;
  double seconds = 0;
  AxisList reduced;
  for (unsigned axis : now.partial)
    if (!c.to.isPartialOver(axis))
      reduced.push_back(axis);
  if (!reduced.empty())
    seconds += edges.allReduce(now, reduced);
  for (AxisList &dim : now.dims)
    while (!dim.empty()) {
      AxisList last{dim.back()};
      seconds += edges.gather(now, last);
      dim.pop_back();
    }
  for (const AxisList &dim : c.to.dims)
    seconds += kSlice * double(dim.size());
  return seconds;
}

/// All layouts in which axes from `axis` on are placed in any way.
static void enumerate(const ReshardCase &c, unsigned axis, Layout layout,
                      std::vector<Layout> &result) {
  if (axis == c.mesh.axes.size()) {
    result.push_back(layout);
    return;
  }
  enumerate(c, axis + 1, layout, result);
  if (c.from.isPartialOver(axis)) {
    Layout next = layout;
    next.partial.push_back(axis);
    enumerate(c, axis + 1, next, result);
  }
  for (size_t dim = 0; dim < layout.dims.size(); ++dim)
    for (size_t position = 0; position <= layout.dims[dim].size(); ++position) {
      Layout next = layout;
      next.dims[dim].insert(next.dims[dim].begin() + position, axis);
      enumerate(c, axis + 1, next, result);
    }
}

double dtc::testing::leastSeconds(const ReshardCase &c) {
  std::vector<Layout> layouts;
  enumerate(c, 0, Layout::replicated(int64_t(c.shape.size())), layouts);
  std::vector<double> seconds(layouts.size(), kNever);
  std::vector<bool> done(layouts.size());
  for (size_t i = 0; i < layouts.size(); ++i)
    if (layouts[i] == c.from)
      seconds[i] = 0;
  Edges edges(c);
  while (true) {
    size_t at = layouts.size();
    for (size_t i = 0; i < layouts.size(); ++i)
      if (!done[i] && seconds[i] < kNever && (at == layouts.size() || seconds[i] < seconds[at]))
        at = i;
    if (at == layouts.size())
      return kNever;
    if (layouts[at] == c.to)
      return seconds[at];
    done[at] = true;
    for (size_t i = 0; i < layouts.size(); ++i)
      if (!done[i])
        seconds[i] = std::min(seconds[i], seconds[at] + edges.seconds(layouts[at], layouts[i]));
  }
}
