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
