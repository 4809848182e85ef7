//===- ReduceCall.cpp - Calls of reduce -----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/ReduceCall.h"

#include "calls/SignatureChecker.h"

#include <algorithm>

namespace dtc {

Expected<ReduceCall> checkReduce(const KernelSignature &signature) {
  SignatureChecker check(signature, 1, 1);
  const TensorType &in = check.floatInput(0);
  auto kind = check.nameAttribute<ReductionKind>("kind");
  std::vector<int64_t> dims = check.dimsAttribute("dims", in.rank());
  TensorType expected{in.dtype, {}};
  std::vector<int64_t> strides = denseStrides(in.shape);
  std::vector<int64_t> keptStrides, reducedShape, reducedStrides;
  bool reducesInner = true; // a single element is a row of one
  for (size_t i = 0; i < in.shape.size(); ++i) {
    bool reduced = std::binary_search(dims.begin(), dims.end(), static_cast<int64_t>(i));
    (reduced ? reducedShape : expected.shape).push_back(in.shape[i]);
    (reduced ? reducedStrides : keptStrides).push_back(strides[i]);
    if (in.shape[i] != 1)
      reducesInner = reduced;
  }
  if (check.output(0).dtype == wideType(in.dtype))
    expected.dtype = wideType(in.dtype);
  check.expectOutput(0, expected);
  if (MaybeError error = check.finish())
    return *error;
  return ReduceCall{kind,
                    in.dtype,
                    expected.dtype,
                    LoopNest<1>(expected.shape, {keptStrides}),
                    LoopNest<1>(reducedShape, {reducedStrides}),
                    reducesInner};
}

} // namespace dtc
