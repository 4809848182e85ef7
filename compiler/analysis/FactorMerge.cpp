//===- FactorMerge.cpp - Axes of an op's factors from its tensors ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/FactorMerge.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"

#include <limits>
#include <numeric>

using namespace mlir;
using namespace dtc;

static bool isPrefix(ArrayRef<unsigned> prefix, ArrayRef<unsigned> list) {
  return prefix.size() <= list.size() && list.take_front(prefix.size()) == prefix;
}

FactorAxes dtc::mergeFactorAxes(const LinkedMesh &mesh, const ShardingRule &rule,
                                ArrayRef<FactorTensor> tensors) {
  struct FactorAxesChoice {
    AxisList axes;
    double bytes;
  };
  SmallVector<SmallVector<FactorAxesChoice, 2>> candidates(rule.factors.size());
  for (const FactorTensor &tensor : tensors) {
    FactorAxes own(rule.factors.size());
    for (auto [factors, axes] : llvm::zip_equal(*tensor.factors, tensor.layout->dims))
      factorsFromDim(mesh, rule, factors, axes, own);
    for (auto [factor, axes] : llvm::enumerate(own)) {
      if (axes.empty() || rule.factors[factor].whole)
        continue;
      auto *same = llvm::find_if(candidates[factor],
                                 [&](const FactorAxesChoice &c) { return c.axes == axes; });
      if (same == candidates[factor].end())
        candidates[factor].push_back({axes, tensor.bytes});
      else
        same->bytes += tensor.bytes;
    }
  }

  // A list supports every longer list that begins with it.
  FactorAxes chosen(rule.factors.size());
  SmallVector<double> support(rule.factors.size(), 0.0);
  for (auto [factor, options] : llvm::enumerate(candidates))
    for (const FactorAxesChoice &option : options) {
      double total = 0;
      for (const FactorAxesChoice &other : options)
        if (isPrefix(other.axes, option.axes))
          total += other.bytes;
      bool better = total > support[factor] ||
                    (total == support[factor] && option.axes.size() > chosen[factor].size());
      if (better) {
        chosen[factor] = option.axes;
        support[factor] = total;
      }
    }

  SmallVector<unsigned> order(rule.factors.size());
  std::iota(order.begin(), order.end(), 0u);
  llvm::stable_sort(order, [&](unsigned a, unsigned b) { return support[a] > support[b]; });
  llvm::SmallBitVector used(mesh.axes.size());
  for (unsigned factor : order) {
    AxisList &axes = chosen[factor];
    auto *end = llvm::find_if(axes, [&](unsigned axis) { return used.test(axis); });
    axes.erase(end, axes.end());
    for (unsigned axis : axes)
      used.set(axis);
  }
  return chosen;
}

namespace {
/// For each factor the different lists of axes that tensors have for it and that begin with what is
/// decided, in the order of the tensors.
using Requests = SmallVector<SmallVector<AxisList, 2>>;
} // namespace

static Requests collectRequests(const LinkedMesh &mesh, const ShardingRule &rule,
                                ArrayRef<FactorTensor> tensors, const FactorAxes &committed) {
  llvm::SmallBitVector taken(mesh.axes.size());
  for (const AxisList &axes : committed)
    for (unsigned axis : axes)
      taken.set(axis);
  Requests requests(rule.factors.size());
  for (const FactorTensor &tensor : tensors) {
    FactorAxes own(rule.factors.size());
    for (auto [factors, axes] : llvm::zip_equal(*tensor.factors, tensor.layout->dims))
      factorsFromDim(mesh, rule, factors, axes, own);
    for (auto [factor, axes] : llvm::enumerate(own)) {
      if (rule.factors[factor].whole || !isPrefix(committed[factor], axes))
        continue;
      auto *end = std::find_if(axes.begin() + committed[factor].size(), axes.end(),
                               [&](unsigned axis) { return taken.test(axis); });
      axes.erase(end, axes.end());
      if (axes.size() > committed[factor].size() && !llvm::is_contained(requests[factor], axes))
        requests[factor].push_back(axes);
    }
  }
  return requests;
}

FactorAgreement dtc::agreeOnFactorAxes(const LinkedMesh &mesh, const ShardingRule &rule,
                                       ArrayRef<FactorTensor> tensors,
                                       const FactorAxes &committed) {
  FactorAgreement result{committed};
  Requests requests = collectRequests(mesh, rule, tensors, committed);
  for (auto [axes, lists] : llvm::zip_equal(result.axes, requests))
    while (true) {
      std::optional<unsigned> next;
      bool contradiction = false;
      for (const AxisList &list : lists) {
        if (list.size() <= axes.size() || !isPrefix(axes, list))
          continue;
        contradiction |= next && *next != list[axes.size()];
        next = list[axes.size()];
      }
      result.conflict |= contradiction;
      if (!next || contradiction)
        break;
      axes.push_back(*next);
    }
  // An axis that two factors request is given to neither.
  SmallVector<unsigned> wanted(mesh.axes.size(), 0);
  for (const AxisList &axes : result.axes)
    for (unsigned axis : axes)
      ++wanted[axis];
  for (auto [axes, before] : llvm::zip_equal(result.axes, committed)) {
    auto *end = std::find_if(axes.begin() + before.size(), axes.end(),
                             [&](unsigned axis) { return wanted[axis] > 1; });
    result.conflict |= end != axes.end();
    axes.erase(end, axes.end());
  }
  return result;
}

std::optional<Layout> dtc::producedLayout(const LinkedMesh &mesh, const ShardingRule &rule,
                                          const TensorFactors &result, const FactorAxes &axes) {
  std::optional<Layout> layout = layoutFromFactors(mesh, rule, result, axes);
  if (!layout)
    return std::nullopt;
  llvm::SmallBitVector present(rule.factors.size());
  for (const auto &dim : result)
    for (unsigned factor : dim)
      present.set(factor);
  for (auto [factor, list] : llvm::enumerate(axes)) {
    std::optional<ReductionKind> reduction = rule.factors[factor].reduction;
    if (list.empty() || present.test(factor) || !reduction)
      continue;
    if (!layout->partial.empty() && layout->partialKind != *reduction)
      return std::nullopt; // partly a sum and partly a maximum
    layout->partialKind = *reduction;
    layout->partial.append(list);
  }
  llvm::sort(layout->partial);
  return layout;
}

double dtc::factorAxesSeconds(const LinkedMesh &mesh, ReshardCache &planner,
                              const ShardingRule &rule, ArrayRef<FactorTensor> tensors,
                              const FactorAxes &axes, double flops) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  double moving = 0, localBytes = 0, shards = 1;
  for (const AxisList &list : axes)
    shards *= mesh.product(list);
  for (const FactorTensor &tensor : tensors) {
    SmallVector<int64_t> shape;
    for (const auto &dim : *tensor.factors) {
      shape.push_back(1);
      for (unsigned factor : dim)
        shape.back() *= rule.factors[factor].size;
    }
    auto used = tensor.isResult ? producedLayout(mesh, rule, *tensor.factors, axes)
                                : layoutFromFactors(mesh, rule, *tensor.factors, axes);
    if (!used)
      return infinite;
    const Layout &from = tensor.isResult ? *used : *tensor.layout;
    Layout to = tensor.isResult ? *tensor.layout : *used;
    for (size_t dim = 0; tensor.isResult && dim < to.dims.size(); ++dim) {
      bool open = tensor.closed.empty() || !tensor.closed[dim];
      bool unused =
          llvm::none_of(ArrayRef<unsigned>(used->dims[dim])
                            .drop_front(std::min(to.dims[dim].size(), used->dims[dim].size())),
                        [&](unsigned axis) { return to.isShardedOver(axis); });
      if (open && unused && isPrefix(to.dims[dim], used->dims[dim]))
        to.dims[dim] = used->dims[dim];
    }
    // Sums over microbatches are completed once, however the op is split.
    Layout source = from;
    llvm::erase_if(source.partial, [&](unsigned axis) { return mesh.isTemporal(axis); });
    const auto &plan = planner.plan(tensor.elementBytes, shape, source, to);
    if (!plan)
      return infinite;
    moving += plan->seconds;
    double bytes = tensor.elementBytes;
    for (int64_t size : used->localShape(mesh, shape))
      bytes *= size;
    localBytes += bytes;
  }
  return moving + std::max(flops / shards / mesh.deviceFlops, localBytes / mesh.deviceBandwidth);
}

ConflictResolution dtc::resolveFactorAxes(const LinkedMesh &mesh, ReshardCache &planner,
                                          const ShardingRule &rule, ArrayRef<FactorTensor> tensors,
                                          const FactorAxes &committed, double flops) {
  // For each factor: the axes that tensors want, from the longest list to nothing beyond those
  // decided.
  Requests options = collectRequests(mesh, rule, tensors, committed);
  size_t combinations = 1;
  for (auto [lists, before] : llvm::zip_equal(options, committed)) {
    for (size_t i = 0; i < lists.size(); ++i) {
      AxisList shorter = lists[i];
      while (shorter.size() > before.size() + 1) {
        shorter.pop_back();
        if (!llvm::is_contained(lists, shorter))
          lists.push_back(shorter);
      }
    }
    lists.push_back(before);
    combinations *= std::min(lists.size(), kMaxCombinations + 1);
    combinations = std::min(combinations, kMaxCombinations + 1);
  }
  ConflictResolution best;
  constexpr double infinite = std::numeric_limits<double>::infinity();
  if (combinations > kMaxCombinations) {
    // Earlier decisions are kept.
    best.axes = mergeFactorAxes(mesh, rule, tensors);
    bool extends = true;
    for (auto [before, after] : llvm::zip_equal(committed, best.axes))
      extends &= isPrefix(before, after);
    if (!extends)
      best.axes = agreeOnFactorAxes(mesh, rule, tensors, committed).axes;
    best.seconds = factorAxesSeconds(mesh, planner, rule, tensors, best.axes, flops);
    best.runnerUp = committed;
    best.runnerUpSeconds = infinite;
    return best;
  }
  best.axes = best.runnerUp = committed;
  best.seconds = best.runnerUpSeconds = infinite;
  int64_t bestSplit = 0;
  FactorAxes current(committed);
  SmallVector<size_t> digits(options.size(), 0);
  for (size_t n = 0; n < combinations; ++n) {
    llvm::SmallBitVector used(mesh.axes.size());
    bool valid = true;
    int64_t split = 1;
    for (auto [factor, digit] : llvm::enumerate(digits)) {
      current[factor] = options[factor][digit];
      split *= mesh.product(current[factor]);
      for (unsigned axis : current[factor]) {
        valid &= !used.test(axis);
        used.set(axis);
      }
    }
    double seconds =
        valid ? factorAxesSeconds(mesh, planner, rule, tensors, current, flops) : infinite;
    if (seconds < best.seconds || (seconds == best.seconds && valid && split > bestSplit)) {
      best.runnerUp = best.axes;
      best.runnerUpSeconds = best.seconds;
      best.axes = current;
      best.seconds = seconds;
      bestSplit = split;
    } else if (seconds < best.runnerUpSeconds) {
      best.runnerUp = current;
      best.runnerUpSeconds = seconds;
    }
    for (size_t factor = digits.size(); factor-- > 0;) {
      if (++digits[factor] < options[factor].size())
        break;
      digits[factor] = 0;
    }
  }
  return best;
}

void dtc::dropInexpressible(const LinkedMesh &mesh, const ShardingRule &rule,
                            ArrayRef<FactorTensor> tensors, FactorAxes &axes) {
  // Giving one up can do that to another tensor, hence the loop.
  for (bool changed = true; changed;) {
    changed = false;
    for (const FactorTensor &tensor : tensors)
      for (const auto &dim : *tensor.factors) {
        bool majorSplit = true;
        for (unsigned factor : dim) {
          int64_t size = rule.factors[factor].size;
          // The longest beginning that can stay.
          size_t keep = axes[factor].size();
          if (!majorSplit)
            keep = 0;
          while (dim.size() > 1 && keep > 0 &&
                 size % mesh.product(ArrayRef<unsigned>(axes[factor]).take_front(keep)) != 0)
            --keep;
          changed |= keep < axes[factor].size();
          axes[factor].truncate(keep);
          majorSplit &= mesh.product(axes[factor]) == size;
        }
      }
  }
}

bool dtc::extendLayout(const LinkedMesh &mesh, const ShardingRule &rule,
                       const TensorFactors &tensor, const FactorAxes &axes, Layout &layout,
                       ArrayRef<bool> closed) {
  bool changed = false;
  for (auto [index, dim, factors] : llvm::enumerate(layout.dims, tensor)) {
    if (!closed.empty() && closed[index])
      continue;
    AxisList wanted;
    for (unsigned factor : factors) {
      wanted.append(axes[factor]);
      if (mesh.product(axes[factor]) != rule.factors[factor].size)
        break; // a minor factor can be split only under completely split major ones
    }
    if (!isPrefix(dim, wanted))
      continue;
    for (unsigned axis : ArrayRef<unsigned>(wanted).drop_front(dim.size())) {
      if (layout.isShardedOver(axis))
        break;
      dim.push_back(axis);
      changed = true;
    }
  }
  return changed;
}
