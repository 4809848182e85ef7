//===- MinimumCut.h - Minimum cuts of a graph -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A maximum flow and the minimum cuts that it shows, by Dinic's algorithm (1970, "Algorithm for
// Solution of a Problem of Maximum Flow in Networks with Power Estimation"): O(V^2 E) at worst, few
// phases of O(E) each where paths from source to sink are short. Integers alone, so the cuts are
// exact.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_ANALYSIS_MINIMUMCUT_H
#define DTC_COMPILER_ANALYSIS_MINIMUMCUT_H

#include <vector>

namespace dtc {

class FlowNetwork {
public:
  /// Wide enough for sums of products of two int64_t.
  __extension__ using Capacity = __int128;
  /// That of an edge which no cut may cut; all finite ones together must be below it.
  static constexpr Capacity kInfinite = Capacity(1) << 120;
  static constexpr int kSource = 0, kSink = 1;

  int addNode();
  void addEdge(int from, int to, Capacity capacity);

  /// Finds a maximum flow and returns it: the capacity of a minimum cut. Called once, before those
  /// below.
  Capacity maximize();

  /// By node, whether it is on the side of the source: of all minimum cuts the one with the fewest
  /// such nodes, and the one with the most. All others are between.
  std::vector<bool> smallestSourceSide() const;
  std::vector<bool> largestSourceSide() const;

  /// Calls visit(node) for all nodes that must come to the side of the source, for it to stay a
  /// minimum cut, if `node` does: all that the rest of the capacities reaches. `side` has what is
  /// there already; the new ones are added. False, with some of them added, where visit is false.
  template <typename Visit>
  bool extendSourceSide(int node, std::vector<bool> &side, Visit visit) const {
    if (side[node])
      return true;
    std::vector<int> stack = {node};
    side[node] = true;
    while (!stack.empty()) {
      int from = stack.back();
      stack.pop_back();
      if (!visit(from))
        return false;
      for (int edge = first[from]; edge >= 0; edge = edges[edge].next)
        if (edges[edge].rest > 0 && !side[edges[edge].to]) {
          side[edges[edge].to] = true;
          stack.push_back(edges[edge].to);
        }
    }
    return true;
  }

private:
  struct Edge {
    int to, next;  // next: of those from the same node; -1: none
    Capacity rest; // of its capacity
  };

  /// Finds for each node how many edges it is from the sink, -1 where the rest does not reach it.
  void measureDistances();
  Capacity blockPaths();
  int from(int edge) const { return edges[edge ^ 1].to; }

  std::vector<Edge> edges;           // each is followed by its reverse
  std::vector<int> first = {-1, -1}; // by node
  std::vector<int> distances;
};

} // namespace dtc

#endif // DTC_COMPILER_ANALYSIS_MINIMUMCUT_H
