//===- CudnnReference.cpp - Attention in double precision ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/CudnnReference.h"

#include <cmath>

namespace dtc::standin {

namespace {

/// Calls body(first elements of the query's row, and of the key's row, for each query and each key
/// that it sees) with the row among all of the scores.
template <typename Body> void forEachPair(const AttentionProblem &p, Body body) {
  int64_t group = p.heads / p.keyHeads;
  for (int64_t b = 0; b < p.batch; ++b)
    for (int64_t h = 0; h < p.heads; ++h)
      for (int64_t i = 0; i < p.queries; ++i)
        for (int64_t j = 0; j < p.keys; ++j)
          if (p.sees(i, j))
            body((b * p.heads + h) * p.queries + i, ((b * p.queries + i) * p.heads + h) * p.size,
                 ((b * p.keys + j) * p.keyHeads + h / group) * p.size);
}

double dot(const AttentionProblem &p, const std::vector<double> &x, int64_t xRow,
           const std::vector<double> &y, int64_t yRow) {
  double sum = 0;
  for (int64_t i = 0; i < p.size; ++i)
    sum += x[xRow + i] * y[yRow + i];
  return sum;
}

void addScaled(const AttentionProblem &p, std::vector<double> &to, int64_t toRow, double factor,
               const std::vector<double> &from, int64_t fromRow) {
  for (int64_t i = 0; i < p.size; ++i)
    to[toRow + i] += factor * from[fromRow + i];
}

double score(const AttentionProblem &p, const AttentionValues &x, int64_t query, int64_t key) {
  return p.scale * dot(p, x.q, query, x.k, key);
}

} // namespace

void attend(const AttentionProblem &p, AttentionValues &x) {
  x.logSums.assign(p.rows(), 0);
  x.out.assign(p.queryElements(), 0);
  // Scores are small enough for exponentials without their largest.
  forEachPair(p, [&](int64_t row, int64_t query, int64_t key) {
    x.logSums[row] += std::exp(score(p, x, query, key));
  });
  for (double &sum : x.logSums)
    sum = std::log(sum);
  forEachPair(p, [&](int64_t row, int64_t query, int64_t key) {
    addScaled(p, x.out, query, std::exp(score(p, x, query, key) - x.logSums[row]), x.v, key);
  });
}

void attendBackward(const AttentionProblem &p, AttentionValues &x) {
  x.dQ.assign(p.queryElements(), 0);
  x.dK.assign(p.keyElements(), 0);
  x.dV.assign(p.keyElements(), 0);
  forEachPair(p, [&](int64_t row, int64_t query, int64_t key) {
    double share = std::exp(score(p, x, query, key) - x.logSums[row]);
    addScaled(p, x.dV, key, share, x.dOut, query);
    double slope =
        p.scale * share * (dot(p, x.dOut, query, x.v, key) - dot(p, x.dOut, query, x.out, query));
    addScaled(p, x.dQ, query, slope, x.k, key);
    addScaled(p, x.dK, key, slope, x.q, query);
  });
}

} // namespace dtc::standin
