//===- RowCalls.h - Calls of kernels that work on rows --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Softmax, cross entropy and norms over the last dimension, whose elements are a row, and random
// masks. Each function checks a call against its row of docs/kernels.md and gives the backend its
// parameters.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_ROWCALLS_H
#define DTC_CALLS_ROWCALLS_H

#include "calls/KernelSignature.h"
#include "calls/RandomMask.h"
#include "support/Error.h"

namespace dtc {

/// `rows` rows of `width` elements.
struct RowShape {
  DType dtype = DType::F32;
  int64_t rows = 0, width = 0;
};

/// `softmax` and `softmax_grad`. If it is `causal`, row i of each matrix of `matrixRows` x `width`
/// sees the columns j <= i + width - matrixRows alone.
struct SoftmaxCall {
  RowShape shape;
  double scale = 1;
  bool causal = false;
  int64_t matrixRows = 1;
};
Expected<SoftmaxCall> checkSoftmax(const KernelSignature &signature);
Expected<SoftmaxCall> checkSoftmaxGrad(const KernelSignature &signature);

/// `cross_entropy` and its gradient; `classes` is of the gradient alone.
struct CrossEntropyCall {
  RowShape shape;
  double labelSmoothing = 0;
  int64_t classes = 0;
};
Expected<CrossEntropyCall> checkCrossEntropy(const KernelSignature &signature);
Expected<CrossEntropyCall> checkCrossEntropyGrad(const KernelSignature &signature);

/// `layer_norm` and `rms_norm`.
struct NormCall {
  RowShape shape;
  double eps = 0;
};
Expected<NormCall> checkLayerNorm(const KernelSignature &signature);
Expected<NormCall> checkRmsNorm(const KernelSignature &signature);
Expected<RowShape> checkLayerNormGrad(const KernelSignature &signature);
Expected<RowShape> checkRmsNormGrad(const KernelSignature &signature);

/// `dropout`.
struct DropoutCall {
  TensorType type;
  RandomMask mask;
};
Expected<DropoutCall> checkDropout(const KernelSignature &signature);

} // namespace dtc

#endif // DTC_CALLS_ROWCALLS_H
