//===- MinimumCut.cpp - Minimum cuts of a graph ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/MinimumCut.h"

#include <algorithm>

using namespace dtc;

int FlowNetwork::addNode() {
  first.push_back(-1);
  return int(first.size()) - 1;
}

void FlowNetwork::addEdge(int from, int to, Capacity capacity) {
  edges.push_back({to, first[from], capacity});
  first[from] = int(edges.size()) - 1;
  edges.push_back({from, first[to], 0});
  first[to] = int(edges.size()) - 1;
}

void FlowNetwork::measureDistances() {
  distances.assign(first.size(), -1);
  distances[kSink] = 0;
  std::vector<int> queue = {kSink};
  for (size_t i = 0; i < queue.size(); ++i) // queue grows
    for (int edge = first[queue[i]]; edge >= 0; edge = edges[edge].next) {
      int to = edges[edge].to;
      if (distances[to] >= 0 || edges[edge ^ 1].rest == 0)
        continue;
      distances[to] = distances[queue[i]] + 1;
      queue.push_back(to);
    }
}

FlowNetwork::Capacity FlowNetwork::blockPaths() {
  Capacity flow = 0;
  std::vector<int> untried = first, path;
  int node = kSource;
  while (true) {
    if (node == kSink) {
      Capacity least = edges[path[0]].rest;
      for (int edge : path)
        least = std::min(least, edges[edge].rest);
      flow += least;
      for (int edge : path) {
        edges[edge].rest -= least;
        edges[edge ^ 1].rest += least;
      }
      // Go on from where the path is blocked now.
      auto blocked =
          std::find_if(path.begin(), path.end(), [&](int edge) { return edges[edge].rest == 0; });
      node = from(*blocked);
      path.erase(blocked, path.end());
      continue;
    }
    int &edge = untried[node];
    while (edge >= 0 && (edges[edge].rest == 0 || distances[edges[edge].to] != distances[node] - 1))
      edge = edges[edge].next;
    if (edge >= 0) {
      path.push_back(edge);
      node = edges[edge].to;
    } else if (path.empty()) {
      return flow;
    } else {
      node = from(path.back());
      untried[node] = edges[path.back()].next;
      path.pop_back();
    }
  }
}

FlowNetwork::Capacity FlowNetwork::maximize() {
  Capacity flow = 0;
  for (measureDistances(); distances[kSource] >= 0; measureDistances())
    flow += blockPaths();
  return flow;
}

std::vector<bool> FlowNetwork::smallestSourceSide() const {
  std::vector<bool> side(first.size());
  extendSourceSide(kSource, side, [](int) { return true; });
  return side;
}

std::vector<bool> FlowNetwork::largestSourceSide() const {
  std::vector<bool> side(first.size());
  for (size_t node = 0; node < side.size(); ++node)
    side[node] = distances[node] < 0;
  return side;
}
