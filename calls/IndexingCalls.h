//===- IndexingCalls.h - Calls of kernels with indices --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each function checks a call against its row of docs/kernels.md and gives the backend its
// parameters.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_INDEXINGCALLS_H
#define DTC_CALLS_INDEXINGCALLS_H

#include "calls/KernelSignature.h"
#include "support/Error.h"

namespace dtc {

/// `count` indices of rows of `samples` tables, each of `vocabulary` rows of `width` elements.
/// `perSample` indices in a row are of one sample, the next ones of the next sample, and after the
/// last sample the first one follows.
struct EmbeddingCall {
  DType dtype = DType::F32; // of the table and of the rows
  int64_t vocabulary = 0, width = 0, count = 0;
  int64_t samples = 1, perSample = 1;

  /// The rows of all tables.
  int64_t numRows() const { return samples * vocabulary; }
};
Expected<EmbeddingCall> checkEmbedding(const KernelSignature &signature);
Expected<EmbeddingCall> checkEmbeddingGrad(const KernelSignature &signature);

/// An index into each of `rows` rows of `width` elements.
struct PickCall {
  DType dtype = DType::F32;
  int64_t rows = 0, width = 0;
};
Expected<PickCall> checkPick(const KernelSignature &signature);
Expected<PickCall> checkPickGrad(const KernelSignature &signature);

/// The `k` largest of each of `rows` rows of `width` elements.
struct TopKCall {
  DType dtype = DType::F32;
  int64_t rows = 0, width = 0, k = 0;
};
Expected<TopKCall> checkTopK(const KernelSignature &signature);

/// The first `count` true elements of each of `rows` rows of `width` elements.
struct NonzeroCall {
  int64_t rows = 0, width = 0, count = 0;
};
Expected<NonzeroCall> checkNonzero(const KernelSignature &signature);

/// Rows of samples at places of each sample that are known when the kernel runs. `width` is the
/// bytes of a row.
struct SampleRowsCall {
  int64_t samples = 0, places = 0; // of the tensor that has the places
  int64_t rows = 1;                // of a sample that come or go
  int64_t width = 0;
};
Expected<SampleRowsCall> checkCacheUpdate(const KernelSignature &signature);
Expected<SampleRowsCall> checkSelectRow(const KernelSignature &signature);

} // namespace dtc

#endif // DTC_CALLS_INDEXINGCALLS_H
