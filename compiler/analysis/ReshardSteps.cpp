//===- ReshardSteps.cpp - Steps of a reshard -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The search is A* (Hart, Nilsson and Raphael, "A Formal Basis for the Heuristic Determination of
// Minimum Cost Paths", 1968) over layouts; the edges are single steps (ReshardSearch.h).
//
// Termination: there are finitely many layouts. A layout is expanded at most once, because the
// lower bound is consistent (below), so the cost with which a layout leaves the queue is its least.
// The number of edges that are looked at is limited besides.
//
// Optimality, where that limit is not reached:
//  * The lower bound is 0 where slices alone may lead to the target, else the smallest latency of
//    an axis, and the bytes by which a shard has to grow at the largest bandwidth. No step makes a
//    shard grow by more bytes than it is counted to send: an all_gather sends all that it adds; an
//    all_to_all over k devices of a part of s elements, padded to k * p, adds at most k * p - s < k
//    times the rest of the shard, and sends (k - 1) * p times that. Slices shrink shards, and never
//    make a step unnecessary. So along every edge the bound falls by at most the edge's cost.
//  * The omitted steps cost nothing. Gathers (and likewise reduce_scatters) over several axes at
//    once send as many bytes, not faster, as axis by axis, with as much delay. Axes of size one
//    split nothing. A temporal axis keeps the number of shards before it once it splits
//    a dimension, so it is only sliced where the target has it.
//  * Each layout that is expanded also gives a plan: the steps to it, and then those of
//    ReshardBuilder::complete. Only layouts that are cheaper than the best of these are worth going
//    on with.
//
// Large meshes: the best of these plans is also the result if the limit is reached. Where there are
// more than four axes, a greedy search comes first; it is short, and finds most of the gain. A*
// then looks for cheaper plans, up to the limit.
//
// Ties between plans go to ReshardBuilder::complete, then to fewer steps, then to the smaller
// layout in an order of all layouts, so that the result is the same on every machine.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/ReshardSteps.h"

#include "compiler/analysis/ReshardSearch.h"

#include "llvm/ADT/STLExtras.h"

#include <cstring>
#include <limits>
#include <queue>
#include <unordered_map>

using namespace mlir;
using namespace dtc;

namespace {

/// Enough for every mesh of four axes and tensor of four dimensions.
constexpr size_t kMaxEdges = 200'000;
/// On larger meshes: some milliseconds.
constexpr size_t kMaxEdgesLargeMesh = 50'000, kMaxGreedyEdges = 5'000, kMaxGreedyTries = 500;
constexpr size_t kSmallMeshAxes = 4;

/// Costs that differ by less are equal but for rounding.
constexpr double kAlmostOne = 1 - 1e-12;

struct KeyHash {
  size_t operator()(const LayoutKey &key) const {
    uint64_t words[2];
    std::memcpy(words, key.data(), sizeof(words));
    uint64_t hash = (words[0] ^ (words[1] * 0x9e3779b97f4a7c15)) * 0xff51afd7ed558ccd;
    return size_t(hash ^ hash >> 32);
  }
};

class Search {
public:
  Search(const ReshardProblem &problem, ReshardGraph &graph) : problem(problem), graph(graph) {}

  /// AStar finds the cheapest plan, if the number of edges allows. Greedy goes on from where the
  /// plan as ReshardBuilder::complete would end it is cheapest, and so finds a good one soon.
  enum class Order { AStar, Greedy };
  /// Looks for something cheaper than `best`, which it replaces.
  void run(Order order, size_t maxEdges, ReshardSteps &best);

private:
  struct Node {
    LayoutKey key;
    double seconds;    ///< from the start, by the best path that is known
    double lowerBound; ///< to the target
    unsigned steps;
    unsigned parent;
    ReshardMove move; ///< the step from the parent
    bool expanded = false;
  };
  struct SearchNode {
    double bound;
    unsigned steps;
    LayoutKey key;
    unsigned node;
    bool operator>(const SearchNode &other) const {
      return std::tie(bound, steps, key) > std::tie(other.bound, other.steps, other.key);
    }
  };

  void relax(unsigned parent, const LayoutKey &key, double seconds, const ReshardMove &move);
  /// Keeps what the steps to `node`, and on by ReshardBuilder::complete, cost, if it is the least
  /// so far. Returns that cost.
  double tryToComplete(unsigned node);
  /// The steps from the start to `node`, and on by ReshardBuilder::complete.
  ReshardSteps planThrough(unsigned node) const;

  const ReshardProblem &problem;
  ReshardGraph &graph;
  std::vector<Node> nodes;
  std::unordered_map<LayoutKey, unsigned, KeyHash> known;
  std::priority_queue<SearchNode, std::vector<SearchNode>, std::greater<SearchNode>> queue;
  Order order = Order::AStar;
  double limit = 0; ///< seconds; layouts that are not below are dropped
  std::optional<unsigned> bestNode;
};

} // namespace

void Search::relax(unsigned parent, const LayoutKey &key, double seconds, const ReshardMove &move) {
  double total = nodes[parent].seconds + seconds;
  unsigned steps = nodes[parent].steps + 1;
  if (total >= limit)
    return;
  auto [entry, isNew] = known.try_emplace(key, nodes.size());
  unsigned index = entry->second;
  if (isNew) {
    nodes.push_back({key, total, -1, steps, parent, move});
  } else {
    Node &node = nodes[index];
    if (node.expanded || std::tie(node.seconds, node.steps, nodes[node.parent].key) <=
                             std::tie(total, steps, nodes[parent].key))
      return;
    node.seconds = total;
    node.steps = steps;
    node.parent = parent;
    node.move = move;
  }
  Node &node = nodes[index];
  if (node.lowerBound < 0)
    node.lowerBound = graph.lowerBound(key);
  if (total + node.lowerBound >= limit)
    return;
  double bound = order == Order::Greedy ? tryToComplete(index) : total + node.lowerBound;
  queue.push({bound, steps, key, index});
}

double Search::tryToComplete(unsigned node) {
  ReshardBuilder rest(problem, graph.decode(nodes[node].key));
  if (!rest.complete())
    return std::numeric_limits<double>::infinity();
  double seconds = nodes[node].seconds + rest.getPlan().seconds;
  if (seconds < limit) {
    bestNode = node;
    limit = seconds * kAlmostOne;
  }
  return seconds;
}

ReshardSteps Search::planThrough(unsigned node) const {
  SmallVector<unsigned> path;
  for (unsigned at = node; at != 0; at = nodes[at].parent)
    path.push_back(at);
  ReshardBuilder builder(problem, problem.from);
  for (unsigned at : llvm::reverse(path))
    graph.replay(nodes[nodes[at].parent].key, nodes[at].key, nodes[at].move, builder);
  [[maybe_unused]] bool completed = builder.complete();
  assert(completed && "only layouts that can be completed are chosen");
  return builder.getPlan();
}

void Search::run(Order order, size_t maxEdges, ReshardSteps &best) {
  this->order = order;
  LayoutKey start = graph.encode(problem.from);
  nodes.push_back({start, 0, graph.lowerBound(start), 0, 0, {}});
  known.try_emplace(start, 0);
  queue.push({nodes[0].lowerBound, 0, start, 0});
  limit = best.seconds * kAlmostOne;
  size_t edges = 0;
  struct Edge {
    LayoutKey next;
    double seconds;
    ReshardMove move;
  };
  std::vector<Edge> found; // the graph looks at one layout at a time
  while (!queue.empty() && edges < maxEdges) {
    unsigned index = queue.top().node;
    if (order == Order::AStar && queue.top().bound >= limit)
      break; // and so are all others
    queue.pop();
    const Node &node = nodes[index];
    if (node.expanded || node.seconds + node.lowerBound >= limit)
      continue;
    nodes[index].expanded = true;
    if (order == Order::AStar && index != 0)
      tryToComplete(index);
    found.clear();
    size_t maxTries = order == Order::AStar ? maxEdges - edges : kMaxGreedyTries;
    graph.forEachEdge(node.key, maxTries,
                      [&](const LayoutKey &next, double seconds, const ReshardMove &move) {
                        ++edges;
                        if (node.seconds + seconds < limit)
                          found.push_back({next, seconds, move});
                      });
    for (const auto &[next, seconds, move] : found)
      relax(index, next, seconds, move);
  }
  if (bestNode)
    best = planThrough(*bestNode);
}

static Layout withoutAxesOfSizeOne(const LinkedMesh &mesh, Layout layout) {
  auto splitsNothing = [&](unsigned axis) { return mesh.axes[axis].size == 1; };
  for (AxisList &dim : layout.dims)
    llvm::erase_if(dim, splitsNothing);
  llvm::erase_if(layout.partial, splitsNothing);
  return layout;
}

/// Makes one step of all_gathers, or reduce_scatters, that follow each other on one dimension where
/// the blocks of the devices lie in the order of their ranks: it costs as much, and starts once.
static void joinSteps(const ReshardProblem &problem, ReshardSteps &plan) {
  SmallVector<ReshardStep> joined;
  Layout now = problem.from;
  for (const ReshardStep &step : plan.steps) {
    ReshardStep *last = joined.empty() ? nullptr : &joined.back();
    bool same = last && last->collective == step.collective && last->dim == step.dim;
    AxisList &list = now.dims.empty() ? now.partial : now.dims[step.dim];
    if (!step.collective) {
      list.append(step.axes);
      joined.push_back(step);
      continue;
    }
    switch (*step.collective) {
    case CollectiveKind::AllGather:
      list.truncate(list.size() - step.axes.size());
      if (same) {
        AxisList axes = step.axes;
        axes.append(last->axes);
        if (problem.mesh.splitsInRankOrder(step.gatheredSize, axes)) {
          last->axes = axes;
          last->gatheredSize = step.gatheredSize;
          continue;
        }
      }
      break;
    case CollectiveKind::ReduceScatter:
      list.append(step.axes);
      if (same) {
        AxisList axes = last->axes;
        axes.append(step.axes);
        AxisList before(ArrayRef<unsigned>(list).drop_back(axes.size()));
        int64_t size = problem.mesh.localSize(problem.shape[step.dim], before);
        if (problem.mesh.splitsInRankOrder(size, axes)) {
          last->axes = axes;
          last->splitSize = step.splitSize;
          continue;
        }
      }
      break;
    case CollectiveKind::AllToAll:
      list.truncate(list.size() - step.axes.size());
      now.dims[step.splitDim].append(step.axes);
      break;
    case CollectiveKind::AllReduce:
      break;
    case CollectiveKind::Permute:
      return; // a layout that the step does not say; plans with one are short
    }
    joined.push_back(step);
  }
  plan.steps = joined;
}

std::optional<ReshardSteps> dtc::findReshardSteps(const LinkedMesh &mesh, int64_t elementBytes,
                                                  ArrayRef<int64_t> shape, const Layout &from,
                                                  const Layout &to) {
  if (from == to)
    return ReshardSteps();
  ReshardProblem problem{mesh, elementBytes, shape, withoutAxesOfSizeOne(mesh, from),
                         withoutAxesOfSizeOne(mesh, to)};
  assert(from.dims.size() == shape.size() && to.dims.size() == shape.size() &&
         "a layout has a list of axes for each dimension");
  if (problem.from == problem.to)
    return ReshardSteps();
  ReshardBuilder simple(problem, problem.from);
  if (!simple.complete())
    return std::nullopt;
  ReshardSteps best = simple.getPlan();
  ReshardGraph graph(problem);
  if (!graph.fits()) {
    joinSteps(problem, best);
    return best;
  }
  bool small = graph.getNumAxes() <= kSmallMeshAxes;
  if (!small)
    Search(problem, graph).run(Search::Order::Greedy, kMaxGreedyEdges, best);
  Search(problem, graph).run(Search::Order::AStar, small ? kMaxEdges : kMaxEdgesLargeMesh, best);
  joinSteps(problem, best);
  return best;
}

/// The properties of a mesh that a search uses. The speed of devices is none of them.
static std::vector<double> searchedProperties(const LinkedMesh &mesh) {
  std::vector<double> key;
  for (const LinkedAxis &axis : mesh.axes)
    key.insert(key.end(), {double(axis.size), double(axis.temporal), double(axis.pipeline),
                           axis.bandwidth, axis.latency});
  return key;
}

ReshardCache::ReshardCache(const LinkedMesh &mesh)
    : mesh(mesh), known([&]() -> Known & {
        // A search looks at some hundreds of meshes, each with some hundreds of reshards.
        thread_local std::map<std::vector<double>, Known> ofMeshes;
        return ofMeshes[searchedProperties(mesh)];
      }()) {}

const std::optional<ReshardSteps> &ReshardCache::plan(int64_t elementBytes, ArrayRef<int64_t> shape,
                                                      const Layout &from, const Layout &to) {
  std::vector<int64_t> key{elementBytes, int64_t(shape.size())};
  key.insert(key.end(), shape.begin(), shape.end());
  for (const Layout *layout : {&from, &to}) {
    for (const AxisList &list : layout->dims) {
      key.push_back(int64_t(list.size()));
      key.insert(key.end(), list.begin(), list.end());
    }
    key.push_back(int64_t(layout->partial.size()));
    key.insert(key.end(), layout->partial.begin(), layout->partial.end());
    key.push_back(layout->partial.empty() ? 0 : int64_t(layout->partialKind));
  }
  auto entry = known.find(key);
  if (entry == known.end())
    entry =
        known.emplace(std::move(key), findReshardSteps(mesh, elementBytes, shape, from, to)).first;
  return entry->second;
}
