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

    Source: the vocabulary-parallel embedding of Shoeybi et al., "Megatron-LM" (arXiv:1909.08053),
    section 3.

    ```mlir
    %e = dtc.embedding %table, %ids
        : (tensor<256x64xf32>, tensor<16x128xi32>) -> tensor<16x128x64xf32>
    ```

    Constraints:

    - [embedding-c1] `table` has rank 2.
  }];
  let arguments = (ins Dtc_FloatTensor:$table, Dtc_IndexTensor:$ids);
  let results = (outs Dtc_FloatTensor:$result);
  let assemblyFormat = "$table `,` $ids attr-dict `:` functional-type(operands, results)";
}

def Dtc_EmbeddingGradOp : Dtc_Op<"embedding_grad", [Dtc_Sharded<>, Dtc_Kernel<>]> {
  let summary = "The gradient of embedding by its table";
  let description = [{
    `ids i32[...], dy F[...,d] -> W[v,d]`. Row i is the sum of the rows of dy whose index is i;
    indices outside [0, v) are skipped.

    Constraints:

    - [embedding_grad-c1] `dy` has the dimensions of `ids` and one more.
    - [embedding_grad-c2] The result has rank 2, the last size of `dy`, and the wide type of its
      elements.
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

#endif // DTC_DIALECTS_DTC_DTCINDEXOPS_TD
