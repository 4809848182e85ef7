//===- IndexingCalls.cpp - Calls of kernels with indices ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/IndexingCalls.h"

#include "calls/SignatureChecker.h"

#include <string>

namespace dtc {

/// The call of a lookup of `ids` in `table`; an error if the table's dimensions before the last two
/// are not those of `ids` before its last one. `what` names the table in it.
static EmbeddingCall lookupCall(SignatureChecker &check, const std::string &what,
                                const TensorType &table, const TensorType &ids) {
  size_t samples = table.shape.size() - 2;
  EmbeddingCall call{table.dtype, table.shape[samples], table.shape[samples + 1],
                     ids.numElements()};
  bool matches = samples == 0 || ids.shape.size() > samples;
  for (size_t dim = 0; matches && dim < samples; ++dim) {
    call.samples *= table.shape[dim];
    matches = table.shape[dim] == ids.shape[ids.shape.size() - 1 - samples + dim];
  }
  if (!matches)
    check.fail(what + " is " + table.str() + ", expected its dimensions before the last two in " +
               ids.str() + " before the last one");
  else if (samples > 0)
    call.perSample = ids.shape.back();
  return call;
}

Expected<EmbeddingCall> checkEmbedding(const KernelSignature &signature) {
  SignatureChecker check(signature, 2, 1);
  const TensorType &table = check.floatInput(0, 2);
  const TensorType &ids = check.indexInput(1);
  EmbeddingCall call;
  if (!check.failed()) {
    check.expectOutput(0, append(withElements(ids, table.dtype), table.shape.back()));
    call = lookupCall(check, "input 0", table, ids);
  }
  if (MaybeError error = check.finish())
    return *error;
  return call;
}

Expected<EmbeddingCall> checkEmbeddingGrad(const KernelSignature &signature) {
  SignatureChecker check(signature, 2, 1);
  const TensorType &ids = check.indexInput(0);
  const TensorType &dy = check.floatInput(1, 1);
  const TensorType &out = check.output(0);
  DType wide = wideType(dy.dtype);
  if (out.dtype != wide || out.rank() < 2)
    check.fail("output 0 is " + out.str() + ", expected at least 2 dimensions of " + name(wide));
  EmbeddingCall call;
  if (!check.failed()) {
    check.expectInput(1, append(withElements(ids, dy.dtype), out.shape.back()));
    call = lookupCall(check, "output 0", out, ids);
    call.dtype = dy.dtype;
  }
  if (MaybeError error = check.finish())
    return *error;
  return call;
}

Expected<TopKCall> checkTopK(const KernelSignature &signature) {
  SignatureChecker check(signature, 1, 1);
  const TensorType &x = check.floatInput(0, 1);
  check.expectOutput(0, withElements(x, DType::Bool));
  int64_t k = check.intAttribute("k");
  if (!check.failed() && (k < 1 || k > x.shape.back()))
    check.failAttribute("k", std::to_string(k),
                        "at least 1 and at most " + std::to_string(x.shape.back()));
  if (MaybeError error = check.finish())
    return *error;
  return TopKCall{x.dtype, numRows(x), x.shape.back(), k};
}

Expected<NonzeroCall> checkNonzero(const KernelSignature &signature) {
  SignatureChecker check(signature, 1, 1);
  const TensorType &x = check.input(0);
  const TensorType &out = check.output(0);
  if (!check.failed() && x.rank() < 1)
    check.fail("input 0 is " + x.str() + ", expected at least 1 dimensions");
  if (!check.failed() && out.rank() < 1)
    check.fail("output 0 is " + out.str() + ", expected at least 1 dimensions");
  if (!check.failed()) {
    check.expectInput(0, withElements(x, DType::Bool));
    check.expectOutput(0, append(withElements(dropLast(x), DType::I32), out.shape.back()));
  }
  if (!check.failed() && out.shape.back() > x.shape.back())
    check.fail("output 0 is " + out.str() + ", expected rows of at most " +
               std::to_string(x.shape.back()));
  if (MaybeError error = check.finish())
    return *error;
  return NonzeroCall{numRows(x), x.shape.back(), out.shape.back()};
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
