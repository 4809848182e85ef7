//===- FactorMerge.cpp - The shardings of an op's tensors, reconciled -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/FactorMerge.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"

#include <numeric>

using namespace mlir;
using namespace dtc;

static bool isPrefix(ArrayRef<unsigned> prefix, ArrayRef<unsigned> list) {
  return prefix.size() <= list.size() && list.take_front(prefix.size()) == prefix;
}

FactorAxes dtc::mergeFactorAxes(const Mesh &mesh, const ShardingRule &rule,
                                ArrayRef<FactorTensor> tensors) {
  struct Candidate {
    AxisList axes;
    double weight;
  };
  SmallVector<SmallVector<Candidate, 2>> candidates(rule.factors.size());
  for (const FactorTensor &tensor : tensors) {
    FactorAxes own(rule.factors.size());
    for (auto [factors, axes] : llvm::zip_equal(*tensor.factors, tensor.layout->dims))
      factorsFromDim(mesh, rule, factors, axes, own);
    for (auto [factor, axes] : llvm::enumerate(own)) {
      if (axes.empty() || rule.factors[factor].whole)
        continue;
      auto *same =
          llvm::find_if(candidates[factor], [&](const Candidate &c) { return c.axes == axes; });
      if (same == candidates[factor].end())
        candidates[factor].push_back({axes, tensor.weight});
      else
        same->weight += tensor.weight;
    }
  }

  // A list supports every longer list that begins with it.
  FactorAxes chosen(rule.factors.size());
  SmallVector<double> support(rule.factors.size(), 0.0);
  for (auto [factor, options] : llvm::enumerate(candidates))
    for (const Candidate &option : options) {
      double total = 0;
      for (const Candidate &other : options)
        if (isPrefix(other.axes, option.axes))
          total += other.weight;
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

bool dtc::extendLayout(const Mesh &mesh, const ShardingRule &rule, const TensorFactors &tensor,
                       const FactorAxes &axes, Layout &layout) {
  bool changed = false;
  for (auto [dim, factors] : llvm::zip_equal(layout.dims, tensor)) {
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
