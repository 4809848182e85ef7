//===- IndexingCalls.cpp - Calls of kernels with indices ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/IndexingCalls.h"

#include "calls/SignatureChecker.h"

namespace dtc {

Expected<EmbeddingCall> checkEmbedding(const KernelSignature &signature) {
  SignatureChecker check(signature, 2, 1);
  const TensorType &table = check.floatInputOfRank(0, 2);
  const TensorType &ids = check.indexInput(1);
  if (!check.failed())
    check.expectOutput(0, append(withElements(ids, table.dtype), table.shape[1]));
  if (MaybeError error = check.finish())
    return *error;
  return EmbeddingCall{table.dtype, table.shape[0], table.shape[1], ids.numElements()};
}

Expected<EmbeddingCall> checkEmbeddingGrad(const KernelSignature &signature) {
  SignatureChecker check(signature, 2, 1);
  const TensorType &ids = check.indexInput(0);
  const TensorType &dy = check.floatInput(1, 1);
  const TensorType &out = check.output(0);
  DType wide = wideType(dy.dtype);
  if (out.dtype != wide || out.rank() != 2)
    check.fail("output 0 is " + out.str() + ", expected 2 dimensions of " + name(wide));
  if (!check.failed())
    check.expectInput(1, append(withElements(ids, dy.dtype), out.shape[1]));
  if (MaybeError error = check.finish())
    return *error;
  return EmbeddingCall{dy.dtype, out.shape[0], out.shape[1], ids.numElements()};
}

Expected<PickCall> checkPick(const KernelSignature &signature) {
  SignatureChecker check(signature, 2, 1);
  const TensorType &x = check.floatInput(0, 1);
  check.expectInput(1, withElements(dropLast(x), DType::I32));
  check.expectOutput(0, dropLast(x));
  if (MaybeError error = check.finish())
    return *error;
  return PickCall{x.dtype, numRows(x), x.shape.back()};
}

Expected<PickCall> checkPickGrad(const KernelSignature &signature) {
  SignatureChecker check(signature, 2, 1);
  const TensorType &ids = check.indexInput(0);
  const TensorType &dy = check.floatInput(1);
  const TensorType &out = check.output(0);
  check.expectInput(1, withElements(ids, dy.dtype));
  if (out.rank() < 1)
    check.fail("output 0 is " + out.str() + ", expected at least 1 dimensions");
  if (!check.failed())
    check.expectOutput(0, append(dy, out.shape.back()));
  if (MaybeError error = check.finish())
    return *error;
  return PickCall{dy.dtype, ids.numElements(), out.shape.back()};
}

/// The bytes of a row of [samples, rows, ...].
static int64_t rowBytes(const TensorType &type) {
  int64_t bytes = static_cast<int64_t>(byteWidth(type.dtype));
  for (size_t dim = 2; dim < type.shape.size(); ++dim)
    bytes *= type.shape[dim];
  return bytes;
}

Expected<SampleRowsCall> checkCacheUpdate(const KernelSignature &signature) {
  SignatureChecker check(signature, 3, 1);
  const TensorType &cache = check.floatInput(0, 2);
  const TensorType &rows = check.floatInput(1, 2);
  if (!check.failed()) {
    TensorType expected = cache;
    expected.shape[1] = rows.shape[1];
    check.expectInput(1, expected);
    check.expectInput(2, TensorType{DType::I32, {cache.shape[0]}});
  }
  check.expectOutput(0, cache);
  if (MaybeError error = check.finish())
    return *error;
  return SampleRowsCall{cache.shape[0], cache.shape[1], rows.shape[1], rowBytes(cache)};
}

Expected<SampleRowsCall> checkSelectRow(const KernelSignature &signature) {
  SignatureChecker check(signature, 2, 1);
  const TensorType &x = check.input(0);
  if (!check.failed() && x.rank() < 2)
    check.fail("input 0 is " + x.str() + ", expected at least 2 dimensions");
  if (!check.failed()) {
    TensorType expected = x;
    expected.shape[1] = 1;
    check.expectInput(1, TensorType{DType::I32, {x.shape[0]}});
    check.expectOutput(0, expected);
  }
  if (MaybeError error = check.finish())
    return *error;
  return SampleRowsCall{x.shape[0], x.shape[1], 1, rowBytes(x)};
}

} // namespace dtc
