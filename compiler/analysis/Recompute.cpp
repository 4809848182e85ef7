//===- Recompute.cpp - Choice of the saved activations --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// At a price of a byte, which choice is the cheapest is a problem of project selection (Picard
// 1976, "Maximal Closure of a Graph and Applications to Combinatorial Problems"): to the side of
// the source belong the ops that are recomputed and the values that the backward pass needs. As
// only capacities of edges to the sink fall with the price (if everything is divided by it), the
// cuts of rising prices are nested (Gallo, Grigoriadis, Tarjan 1989, "A Fast Parametric Maximum
// Flow Algorithm and Applications").
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Recompute.h"

#include "compiler/analysis/RecomputeSearch.h"

#include <algorithm>
#include <cmath>
#include <utility>

using namespace dtc;

static bool mayRecompute(const RecomputeOp &op) { return op.allowed && std::isfinite(op.seconds); }

RecomputeChoice dtc::evaluateRecompute(const RecomputeProblem &problem,
                                       std::vector<bool> recompute) {
  std::vector<bool> needed;
  needed.reserve(problem.values.size());
  for (const RecomputeValue &value : problem.values)
    needed.push_back(value.usedBackward);
  RecomputeChoice choice;
  for (int op = int(problem.ops.size()) - 1; op >= 0; --op) {
    const RecomputeOp &recomputed = problem.ops[op];
    recompute[op] = recompute[op] && mayRecompute(recomputed) &&
                    std::any_of(recomputed.results.begin(), recomputed.results.end(),
                                [&](int value) { return needed[value]; });
    if (!recompute[op])
      continue;
    choice.seconds += recomputed.seconds;
    for (int value : recomputed.operands)
      needed[value] = true;
  }
  for (size_t i = 0; i < problem.values.size(); ++i) {
    const RecomputeValue &value = problem.values[i];
    if (needed[i] && (value.producer < 0 || !recompute[value.producer]))
      choice.keptBytes += value.bytes;
  }
  choice.recompute = std::move(recompute);
  return choice;
}

//===----------------------------------------------------------------------===//
// The cheapest choices at a price
//===----------------------------------------------------------------------===//

RecomputeInput::RecomputeInput(RecomputeProblem original) : problem(std::move(original)) {
  for (RecomputeOp &op : problem.ops) {
    std::sort(op.operands.begin(), op.operands.end());
    op.operands.erase(std::unique(op.operands.begin(), op.operands.end()), op.operands.end());
  }
  double seconds = 0;
  for (const RecomputeOp &op : problem.ops)
    if (mayRecompute(op))
      seconds += op.seconds;
  // All seconds together are between 2^43 and 2^44 ticks: costs at a price stay below
  // MinimumCut::kInfinite, and rounding does not matter.
  int exponent = 0;
  std::frexp(seconds, &exponent);
  for (const RecomputeOp &op : problem.ops) {
    ticks.push_back(mayRecompute(op) ? std::llround(std::ldexp(op.seconds, 44 - exponent)) : -1);
    totalTicks += std::max<int64_t>(ticks.back(), 0);
  }
  for (const RecomputeValue &value : problem.values)
    totalBytes += value.bytes;
}

RecomputeCut::RecomputeCut(const RecomputeInput &input, RecomputePrice price, int numOps)
    : opNodes(numOps, -1) {
  using Capacity = MinimumCut::Capacity;
  const RecomputeProblem &problem = input.problem;
  for (int op = 0; op < numOps; ++op)
    if (input.ticks[op] >= 0) {
      opNodes[op] = graph.addNode();
      graph.addEdge(opNodes[op], MinimumCut::kSink, Capacity(price.tick) * input.ticks[op]);
    }
  std::vector<int> valueNodes(problem.values.size(), -1);
  for (size_t i = 0; i < problem.values.size(); ++i) {
    const RecomputeValue &value = problem.values[i];
    if (value.producer >= numOps)
      continue;
    int producer = value.producer < 0 ? -1 : opNodes[value.producer];
    if (producer < 0 && value.bytes == 0)
      continue;
    valueNodes[i] = graph.addNode();
    graph.addEdge(valueNodes[i], producer < 0 ? MinimumCut::kSink : producer,
                  Capacity(price.byte) * value.bytes);
    if (value.usedBackward)
      graph.addEdge(MinimumCut::kSource, valueNodes[i], MinimumCut::kInfinite);
  }
  for (int op = 0; op < numOps; ++op)
    if (opNodes[op] >= 0)
      for (int value : problem.ops[op].operands)
        if (valueNodes[value] >= 0)
          graph.addEdge(opNodes[op], valueNodes[value], MinimumCut::kInfinite);
  cost = graph.maximize();
}

std::vector<bool> RecomputeCut::getChoice(const std::vector<bool> &side) const {
  std::vector<bool> choice;
  choice.reserve(opNodes.size());
  for (int node : opNodes)
    choice.push_back(node >= 0 && side[node]);
  return choice;
}

static std::vector<bool> findKeepLeast(const RecomputeInput &input) {
  // A byte costs more than all time.
  RecomputeCut cut(input, {1, input.totalTicks + 1});
  return cut.getChoice(cut.graph.smallestSourceSide());
}

RecomputeChoice dtc::keepLeast(const RecomputeProblem &problem) {
  return evaluateRecompute(problem, findKeepLeast(RecomputeInput(problem)));
}

//===----------------------------------------------------------------------===//
// The choice for a number of bytes
//===----------------------------------------------------------------------===//

namespace {
/// Two choices, one that keeps more than allowed, and one that recomputes more and keeps less; and
/// the price at which they cost the same.
struct Bracket {
  std::vector<bool> exceeding, fitting;
  RecomputePrice price;
};
} // namespace

/// Brings the choices of `bracket`, the smallest and the largest of `cut`, together: ops are added
/// to the one that exceeds, each with those that a cheapest choice must have with it, as long as it
/// exceeds. With ops that would end that, the one with the fewest ticks fits.
static void narrow(Bracket &bracket, const RecomputeInput &input, const RecomputeCut &cut,
                   int64_t keepBytes) {
  const MinimumCut &graph = cut.graph;
  std::vector<bool> side = graph.smallestSourceSide();
  std::vector<bool> large = graph.largestSourceSide();
  std::vector<int> nodeOps(side.size(), -1);
  for (size_t op = 0; op < cut.opNodes.size(); ++op)
    if (cut.opNodes[op] >= 0)
      nodeOps[cut.opNodes[op]] = int(op);

  RecomputeSelection selection(input, bracket.exceeding);
  std::vector<bool> ends(side.size()); // by node: with it a choice does not exceed any more
  int64_t fewestTicks = -1;
  for (int node : cut.opNodes) {
    if (node < 0 || side[node] || !large[node])
      continue;
    size_t mark = selection.getMark();
    std::vector<bool> extended = side;
    bool isNew = graph.extendSourceSide(node, extended, [&](int reached) {
      if (nodeOps[reached] >= 0 && !ends[reached] && !selection.isComputed(nodeOps[reached]))
        selection.toggle(nodeOps[reached]);
      return !ends[reached];
    });
    if (isNew && selection.getBytes() > keepBytes) {
      side = std::move(extended);
      continue;
    }
    ends[node] = true;
    if (isNew && (fewestTicks < 0 || selection.getTicks() < fewestTicks)) {
      fewestTicks = selection.getTicks();
      bracket.fitting = selection.getChoice();
    }
    selection.rollback(mark);
  }
  bracket.exceeding = selection.getChoice();
}

/// Finds the prices where the choice changes, from that where the first and the last choice cost
/// the same: each cut is at the price where two known choices do, and takes the place of one of
/// them.
static void findPrice(Bracket &bracket, const RecomputeInput &input, int64_t keepBytes) {
  constexpr int kMaxCuts = 64; // some ten are usual
  for (int i = 0; i < kMaxCuts; ++i) {
    RecomputeSelection exceeding(input, bracket.exceeding), fitting(input, bracket.fitting);
    bracket.price = {exceeding.getBytes() - fitting.getBytes(),
                     fitting.getTicks() - exceeding.getTicks()};
    RecomputeCut cut(input, bracket.price);
    std::vector<bool> small = cut.getChoice(cut.graph.smallestSourceSide());
    std::vector<bool> large = cut.getChoice(cut.graph.largestSourceSide());
    if (RecomputeSelection(input, small).getBytes() <= keepBytes) {
      bracket.fitting = std::move(small);
    } else if (RecomputeSelection(input, large).getBytes() > keepBytes) {
      bracket.exceeding = std::move(large);
    } else {
      bracket.exceeding = std::move(small);
      bracket.fitting = std::move(large);
      narrow(bracket, input, cut, keepBytes);
      return;
    }
  }
}

RecomputeChoice dtc::chooseRecompute(const RecomputeProblem &problem, int64_t keepBytes,
                                     int maxExactOps) {
  RecomputeChoice none = evaluateRecompute(problem, std::vector<bool>(problem.ops.size()));
  if (none.keptBytes <= keepBytes)
    return none;
  RecomputeInput input(problem);
  Bracket bracket;
  bracket.fitting = findKeepLeast(input);
  RecomputeChoice least = evaluateRecompute(problem, bracket.fitting);
  if (least.keptBytes >= keepBytes)
    return least;
  // Values that cost nothing are recomputed first: a tick costs more than all bytes.
  RecomputeCut free(input, {input.totalBytes + 1, 1});
  bracket.exceeding = free.getChoice(free.graph.smallestSourceSide());
  RecomputeChoice fast = evaluateRecompute(problem, bracket.exceeding);
  if (fast.keptBytes <= keepBytes)
    return fast;

  findPrice(bracket, input, keepBytes);
  std::vector<bool> choice =
      refineRecompute(input, bracket.fitting, bracket.exceeding, keepBytes, bracket.price);
  if (std::count_if(input.ticks.begin(), input.ticks.end(),
                    [](int64_t ticks) { return ticks >= 0; }) <= maxExactOps)
    choice = searchRecompute(input, choice, keepBytes, bracket.price);
  return evaluateRecompute(problem, std::move(choice));
}

RecomputeChoice dtc::chooseRecompute(const RecomputeProblem &problem, int64_t keepBytes) {
  return chooseRecompute(problem, keepBytes, kMaxExactRecomputeOps);
}
