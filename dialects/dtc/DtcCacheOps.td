//===- DtcCacheOps.td - Ops of the key-value cache ---------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_DTCCACHEOPS_TD
#define DTC_DIALECTS_DTC_DTCCACHEOPS_TD

include "dialects/dtc/DtcOpBase.td"

def Dtc_CacheUpdateOp : Dtc_Op<"cache_update", [
    Dtc_Kernel<>, Dtc_InferType, Dtc_Sharded<>]> {
  let summary = "Writes rows of each sample at a position of its own";
  let description = [{
    `cache F[b,t,...], rows F[b,s,...], positions i32[b] -> F[b,t,...]`. The cache with row i of
    sample n at positions[n] + i; rows that would lie outside [0, t) are dropped.

    ```mlir
    %c = dtc.cache_update %cache, %k, %positions
        : (tensor<4x256x8x64xf32>, tensor<4x1x8x64xf32>, tensor<4xi32>) -> tensor<4x256x8x64xf32>
    ```

    Constraints:

    - [cache_update-c1] `cache` has at least 2 dimensions.
    - [cache_update-c2] `rows` has the element type and, but for dimension 1, the shape of `cache`.
    - [cache_update-c3] `positions` has the type i32[b], b as in `cache`.
  }];
  let arguments = (ins Dtc_FloatTensor:$cache, Dtc_FloatTensor:$rows, Dtc_IndexTensor:$positions);
  let extraClassDeclaration = Dtc_LowPrecision<>.declaration;
  let results = (outs Dtc_FloatTensor:$result);
  let assemblyFormat =
      "$cache `,` $rows `,` $positions attr-dict `:` functional-type(operands, results)";
}

def Dtc_CachedAttentionOp : Dtc_Op<"cached_attention", [
    Dtc_InferType, Dtc_Sharded<["getFlops"]>, Dtc_Kernel<>]> {
  let summary = "Attention over the keys and values of a cache";
  let description = [{
    `q F[b,s,h,d], k F[b,t,g,d], v F[b,t,g,d], positions i32[b] -> F[b,s,h,d]`, g divides h. As
    `dtc.attention`, but query i of sample n, which is the token at positions[n] + i, sees the keys
    j <= positions[n] + i, with a `window` of w keys the last w of them. With `sinks F[h]`, the
    softmax of each query of head i has one score more, sinks[i], as in `dtc.attention`.

    Source: the cache of keys and values of Shazeer, "Fast Transformer Decoding"
    (arXiv:1911.02150), section 2.4.

    ```mlir
    %out = dtc.cached_attention %q, %k, %v, %positions {scale = 0.125}
        : (tensor<4x1x8x64xf32>, tensor<4x256x8x64xf32>, tensor<4x256x8x64xf32>, tensor<4xi32>)
        -> tensor<4x1x8x64xf32>
    ```

    Constraints:

    - [cached_attention-c1] `q` has rank 4.
    - [cached_attention-c2] `k` has rank 4, the element type of `q`, and its sizes b and d.
    - [cached_attention-c3] The number of heads of `k` divides that of `q`.
    - [cached_attention-c4] `v` has the type of `k`.
    - [cached_attention-c5] `positions` has the type i32[b], b as in `q`.
    - [cached_attention-c6] `scale` is finite.
    - [cached_attention-c7] `window` is at least 1.
    - [cached_attention-c8] `softcap` is finite and greater than 0.
    - [cached_attention-c9] `sinks` have the type F[h], h and the element type as in `q`.
  }];
  let arguments = (ins Dtc_FloatTensor:$q, Dtc_FloatTensor:$k, Dtc_FloatTensor:$v,
                       Dtc_IndexTensor:$positions, Optional<Dtc_FloatTensor>:$sinks,
                       Dtc_F64Attr:$scale,
                       OptionalAttr<I64Attr>:$window, OptionalAttr<Dtc_F64Attr>:$softcap);
  let extraClassDeclaration = Dtc_LowPrecision<>.declaration;
  let results = (outs Dtc_FloatTensor:$out);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $positions (`sinks` $sinks^)? attr-dict `:`
    functional-type(operands, results)
  }];
}

def Dtc_SelectRowOp : Dtc_Op<"select_row", [Dtc_InferType, Dtc_Sharded<>, Dtc_Kernel<>]> {
  let summary = "One row of each sample by index";
  let description = [{
    `x X[b,s,...], rows i32[b] -> X[b,1,...]`. Row rows[n] of sample n, zeros where it is outside
    [0, s).

    ```mlir
    %y = dtc.select_row %x, %rows : (tensor<4x256x64xf32>, tensor<4xi32>) -> tensor<4x1x64xf32>
    ```

    Constraints:

    - [select_row-c1] `x` has at least 2 dimensions.
    - [select_row-c2] `rows` has the type i32[b], b as in `x`.
  }];
  let arguments = (ins Dtc_AnyTensor:$x, Dtc_IndexTensor:$rows);
  let results = (outs Dtc_AnyTensor:$result);
  let assemblyFormat = "$x `,` $rows attr-dict `:` functional-type(operands, results)";
}

#endif // DTC_DIALECTS_DTC_DTCCACHEOPS_TD
