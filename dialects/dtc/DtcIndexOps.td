//===- DtcIndexOps.td - Lookups by index ----------------------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_DTCINDEXOPS_TD
#define DTC_DIALECTS_DTC_DTCINDEXOPS_TD

include "dialects/dtc/DtcOpBase.td"

def Dtc_EmbeddingOp : Dtc_Op<"embedding", [
    Dtc_InferType, Dtc_Sharded<>, Dtc_Kernel<>, Dtc_Differentiable]> {
  let summary = "Rows of a table by index";
  let description = [{
    `table F[v,d], ids i32[...] -> F[...,d]`. An index outside [0, v) gives zeros, so that the
    shards of a table sum up to the whole: a shard counts the indices from its first row.

    There may be a table for each sample: `table F[B...,v,d], ids i32[...,B...,n] -> F[...,B...,n,d]`.
    The rows of sample B are looked up in the table of sample B.

    Source: the vocabulary-parallel embedding of Shoeybi et al., "Megatron-LM" (arXiv:1909.08053),
    section 3.

    ```mlir
    %e = dtc.embedding %table, %ids
        : (tensor<256x64xf32>, tensor<16x128xi32>) -> tensor<16x128x64xf32>
    // The tokens of each of 8 experts, of 16 samples.
    %t = dtc.embedding %x, %rows
        : (tensor<16x128x64xf32>, tensor<8x16x32xi32>) -> tensor<8x16x32x64xf32>
    ```

    Constraints:

    - [embedding-c1] `table` has at least rank 2.
    - [embedding-c2] If `table` has more dimensions than the last two, they are those of `ids` before
      its last one.
  }];
  let arguments = (ins Dtc_FloatTensor:$table, Dtc_IndexTensor:$ids);
  let results = (outs Dtc_FloatTensor:$result);
  let assemblyFormat = "$table `,` $ids attr-dict `:` functional-type(operands, results)";
}

def Dtc_EmbeddingGradOp : Dtc_Op<"embedding_grad", [
    Dtc_Sharded<>, Dtc_Kernel<>, Dtc_Differentiable]> {
  let summary = "The gradient of embedding by its table: sums of rows by index";
  let description = [{
    `ids i32[...], dy F[...,d] -> W[v,d]`. Row i is the sum of the rows of dy whose index is i;
    indices outside [0, v) are skipped. With a table for each sample:
    `ids i32[...,B...,n], dy F[...,B...,n,d] -> W[B...,v,d]`.

    ```mlir
    // What 8 experts give for their tokens, added up for each token.
    %y = dtc.embedding_grad %rows, %out
        : (tensor<8x16x32xi32>, tensor<8x16x32x64xf32>) -> tensor<16x128x64xf32>
    ```

    Constraints:

    - [embedding_grad-c1] `dy` has the dimensions of `ids` and one more.
    - [embedding_grad-c2] The result has at least rank 2, the last size of `dy`, and the wide type of
      its elements.
    - [embedding_grad-c3] If the result has more dimensions than the last two, they are those of
      `ids` before its last one.
  }];
  let arguments = (ins Dtc_IndexTensor:$ids, Dtc_FloatTensor:$dy);
  let extraClassDeclaration = [{
    bool widenResults() { return true; }
  }];
  let results = (outs Dtc_WideTensor:$result);
  let assemblyFormat = "$ids `,` $dy attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Dtc_PickOp : Dtc_Op<"pick", [
    Dtc_InferType, Dtc_Sharded<>, Dtc_Kernel<>, Dtc_Differentiable]> {
  let summary = "One element of each row by index";
  let description = [{
    `x F[...,v], ids i32[...] -> F[...]`. x[..., id], or 0 where the index is outside [0, v).

    ```mlir
    %p = dtc.pick %x, %ids : (tensor<16x128x256xf32>, tensor<16x128xi32>) -> tensor<16x128xf32>
    ```

    Constraints:

    - [pick-c1] `x` has the dimensions of `ids` and one more.
  }];
  let arguments = (ins Dtc_FloatTensor:$x, Dtc_IndexTensor:$ids);
  let results = (outs Dtc_FloatTensor:$result);
  let assemblyFormat = "$x `,` $ids attr-dict `:` functional-type(operands, results)";
}

def Dtc_PickGradOp : Dtc_Op<"pick_grad", [Dtc_Sharded<>, Dtc_Kernel<>]> {
  let summary = "The gradient of pick by its first operand";
  let description = [{
    `ids i32[...], dy F[...] -> F[...,v]`. dy at the index, 0 elsewhere; a row whose index is
    outside [0, v) is 0.

    Constraints:

    - [pick_grad-c1] `dy` has the shape of `ids`.
    - [pick_grad-c2] The result has the element type and the dimensions of `dy`, and one dimension
      more.
  }];
  let arguments = (ins Dtc_IndexTensor:$ids, Dtc_FloatTensor:$dy);
  let results = (outs Dtc_FloatTensor:$result);
  let assemblyFormat = "$ids `,` $dy attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Dtc_TopKOp : Dtc_Op<"top_k", [Dtc_Sharded<>, Dtc_Kernel<>,
    TypesMatchWith<"the result is i1 of the operand's shape", "operand", "result",
                   "::dtc::getMaskType($_self)">]> {
  let summary = "Which elements are the largest of their row";
  let description = [{
    `F[...,n] -> i1[...,n]`. True for the k largest elements of each row. Of equal elements, the one
    with the smaller index is taken first; a NaN is larger than all numbers.

    ```mlir
    %m = dtc.top_k %scores {k = 2} : tensor<16x128x8xf32>
    ```

    Constraints:

    - [top_k-c1] The operand has at least rank 1.
    - [top_k-c2] `k` is at least 1 and at most the size of a row.
  }];
  let arguments = (ins Dtc_FloatTensor:$operand, I64Attr:$k);
  let results = (outs Dtc_MaskTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand)";
  let hasVerifier = 1;
}

def Dtc_NonzeroOp : Dtc_Op<"nonzero", [Dtc_Sharded<>, Dtc_Kernel<>]> {
  let summary = "The places of the true elements of each row";
  let description = [{
    `i1[...,n] -> i32[...,c]`. The indices of the first c true elements of each row, in order; -1
    after the last of them.

    Source: jax.numpy.nonzero with `size` and `fill_value=-1`, of each row.

    ```mlir
    %rows = dtc.nonzero %mask : tensor<8x16x128xi1> -> tensor<8x16x32xi32>
    ```

    Constraints:

    - [nonzero-c1] The result has the dimensions of the operand but the last, which is at least 1 and
      at most that of the operand.
  }];
  let arguments = (ins Dtc_MaskTensor:$operand);
  let results = (outs Dtc_IndexTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

#endif // DTC_DIALECTS_DTC_DTCINDEXOPS_TD
