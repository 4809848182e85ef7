//===- CudnnReference.h - Attention in double precision ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_CUDNNREFERENCE_H
#define DTC_TEST_STANDIN_CUDA_CUDNNREFERENCE_H

#include <cstdint>
#include <vector>

namespace dtc::standin {

struct AttentionProblem {
  int64_t batch = 2, heads = 4, keyHeads = 4, queries = 16, keys = 16, size = 8;
  bool isCausal = true;
  int64_t window = 0; // how many keys a query sees; 0: all
  bool isBottomRight = true;
  double scale = 0.25;

  int64_t queryElements() const { return batch * queries * heads * size; }
  int64_t keyElements() const { return batch * keys * keyHeads * size; }
  int64_t rows() const { return batch * heads * queries; }
  /// Of the last query that has the position of the last key, or of the first that has the first.
  bool sees(int64_t query, int64_t key) const {
    int64_t position = query + (isBottomRight ? keys - queries : 0);
    return (!isCausal || key <= position) && (window == 0 || key > position - window);
  }
};

/// Tensors [batch, position, head, size]; the logarithms of the sums of exponentials [batch, head,
/// query].
struct AttentionValues {
  std::vector<double> q, k, v, out, logSums, dOut, dQ, dK, dV;
};

/// Sets `out` and `logSums` from `q`, `k` and `v`.
void attend(const AttentionProblem &problem, AttentionValues &values);
/// Sets `dQ`, `dK` and `dV` from the others.
void attendBackward(const AttentionProblem &problem, AttentionValues &values);

} // namespace dtc::standin

#endif // DTC_TEST_STANDIN_CUDA_CUDNNREFERENCE_H
