//===- DtcContractionOps.td - Einsums and reductions ----------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_DTCCONTRACTIONOPS_TD
#define DTC_DIALECTS_DTC_DTCCONTRACTIONOPS_TD

include "dialects/dtc/DtcOpBase.td"

def Dtc_EinsumOp : Dtc_Op<"einsum", [
    Dtc_InferType, Dtc_Sharded<["getFlops"]>, Dtc_Kernel<>, Dtc_Differentiable,
    Dtc_MatrixProducts]> {
  let summary = "A contraction of two tensors";
  let description = [{
    `lhs F, rhs F -> result F`, or W(F) with `wide`. Each dimension is named by a letter from a to z, at
    most once in a term and in at least two of the three terms. result[...] = sum over the letters
    that are not in the result of lhs[...] rhs[...]. Both gradients are einsums with the terms
    exchanged. Either term may be empty, for a scalar.

    Source: numpy.einsum, restricted to two operands without diagonals and without sums of one
    operand alone.

    ```mlir
    %h = dtc.einsum "bsd,df->bsf" %x, %w
        : (tensor<16x128x64xf32>, tensor<64x256xf32>) -> tensor<16x128x256xf32>
    ```

    Constraints:

    - [einsum-c1] The equation has the form "lhs,rhs->result".
    - [einsum-c2] The letters of the equation are those from a to z.
    - [einsum-c3] Each letter occurs at most once in a term.
    - [einsum-c4] Each letter of the equation occurs in at least two of its terms.
    - [einsum-c5] Both operands have the same element type.
    - [einsum-c6] Each operand has as many dimensions as its term has letters.
    - [einsum-c7] A letter that is in both operands names dimensions of the same size.
  }];
  let arguments = (ins Dtc_FloatTensor:$lhs, Dtc_FloatTensor:$rhs, StrAttr:$equation,
                       UnitAttr:$wide);
  let extraClassDeclaration = !strconcat(Dtc_LowPrecision<>.declaration, [{
    bool widenResults() {
      setWide(true);
      return true;
    }
  }]);
  let results = (outs Dtc_FloatTensor:$result);
  let assemblyFormat = "$equation $lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}

def Dtc_GroupedProductOp : Dtc_Op<"grouped_product", [
    Dtc_InferType, Dtc_Sharded<["getFlops"]>, Dtc_Kernel<["getKernelAttributes"]>,
    Dtc_Differentiable, Dtc_MatrixProducts]> {
  let summary = "Matrix products of groups of rows, some of which are empty";
  let description = [{
    `lhs F[x,b,c,k], rhs F, rows i32[x,b,c] -> F`, or W(F) with `wide`: an einsum of lhs and rhs,
    whose rows with a negative index are zeros. In each group [x,b] these come after the others, so
    that a kernel can leave them out. Forms, with any letters:

    - `xbck,xkn->xbcn` or `xbck,xnk->xbcn`: each group of rows times the matrix of its x.
    - `xbck,xbcn->xkn` or `xbck,xbcn->xnk`: for each x the sum of the products of its rows.

    Both gradients are grouped products. `occupancy` is the share of rows with an index that
    estimates of time count with.

    Source: the grouped products of mixtures of experts (Gale et al., "MegaBlocks",
    arXiv:2211.15841, section 3), whose groups have as many rows as routing gives them.

    ```mlir
    %h = dtc.grouped_product "xbcd,xfd->xbcf" %tokens, %w rows %rows
        : (tensor<8x16x32x64xf32>, tensor<8x96x64xf32>, tensor<8x16x32xi32>)
        -> tensor<8x16x32x96xf32>
    ```

    Constraints:

    - [grouped_product-c1] The equation has one of the four forms.
    - [grouped_product-c2] Both operands have the same element type.
    - [grouped_product-c3] Each operand has as many dimensions as its term has letters, and a letter
      names dimensions of the same size.
    - [grouped_product-c4] `rows` has the first three dimensions of `lhs`.
    - [grouped_product-c5] `occupancy` is larger than 0 and at most 1.
  }];
  let arguments = (ins Dtc_FloatTensor:$lhs, Dtc_FloatTensor:$rhs, Dtc_IndexTensor:$rows,
                       StrAttr:$equation, UnitAttr:$wide,
                       DefaultValuedAttr<F64Attr, "1.0">:$occupancy);
  let extraClassDeclaration = !strconcat(Dtc_LowPrecision<>.declaration, [{
    bool widenResults() {
      setWide(true);
      return true;
    }
  }]);
  let results = (outs Dtc_FloatTensor:$result);
  let assemblyFormat =
      "$equation $lhs `,` $rhs `rows` $rows attr-dict `:` functional-type(operands, results)";
}

def Dtc_ReduceOp : Dtc_Op<"reduce", [
    Dtc_InferType, Dtc_Sharded<>, Dtc_Kernel<>, Dtc_Differentiable]> {
  let summary = "The sum, maximum or minimum over dimensions";
  let description = [{
    `F -> W(F)`. The dimensions `dims` are removed; they increase, and text may have them in any
    order. Where several elements are the maximum or the minimum they share the gradient evenly.

    ```mlir
    %r = dtc.reduce sum %x dims [0, 1] : (tensor<16x128x64xf32>) -> tensor<64xf32>
    ```

    Constraints:

    - [reduce-c1] The entries of `dims` are dimensions of the operand, each larger than the one
      before.
  }];
  let arguments = (ins Dtc_FloatTensor:$operand, Dtc_ReduceKindAttr:$kind, DenseI64ArrayAttr:$dims);
  let extraClassDeclaration = [{
    bool widenResults() { return true; }
  }];
  let results = (outs Dtc_WideTensor:$result);
  let assemblyFormat =
      "`` $kind $operand `dims` custom<DimSet>($dims) attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

#endif // DTC_DIALECTS_DTC_DTCCONTRACTIONOPS_TD
