//===- DtcSliceOps.td - Slices of tensors ---------------------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_DTCSLICEOPS_TD
#define DTC_DIALECTS_DTC_DTCSLICEOPS_TD

include "dialects/dtc/DtcOpBase.td"

def Dtc_SliceOp : Dtc_Op<"slice", [
    Dtc_InferType, Dtc_Sharded<["buildLocal"]>, Dtc_Kernel<["getKernelAttributes"]>,
    Dtc_Differentiable, Dtc_MovesElements, Dtc_CarriesSums]> {
  let summary = "A block of a tensor";
  let description = [{
    `X -> X`. The block of shape `sizes` that starts at `offsets`. A dimension that is kept in full
    can be sharded.

    ```mlir
    %s = dtc.slice %x offsets [0, 2] sizes [4, 6] : (tensor<4x8xf32>) -> tensor<4x6xf32>
    ```

    Constraints:

    - [slice-c1] `offsets` and `sizes` have one entry each for each dimension of the operand.
    - [slice-c2] In each dimension the block has at least one element and lies inside the operand.
  }];
  let arguments = (ins Dtc_StoredTensor:$operand, DenseI64ArrayAttr:$offsets,
                       DenseI64ArrayAttr:$sizes);
  let results = (outs Dtc_StoredTensor:$result);
  let assemblyFormat =
      "$operand `offsets` $offsets `sizes` $sizes attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def Dtc_PadOp : Dtc_Op<"pad", [
    Dtc_InferType, Dtc_Sharded<>, Dtc_Kernel<["getKernelAttributes"]>, Dtc_Differentiable,
    Dtc_CarriesSums]> {
  let summary = "Surrounds a tensor with a value";
  let description = [{
    `X -> X`. Dimension i grows by low[i] at its begin and high[i] at its end; the new elements are `value`.
    A dimension that does not grow can be sharded. Linear if the value is 0.

    ```mlir
    %p = dtc.pad %x low [0, 1] high [0, 1] value 0.0 : (tensor<4x8xf32>) -> tensor<4x10xf32>
    ```

    Constraints:

    - [pad-c1] `low` and `high` have one entry each for each dimension of the operand.
    - [pad-c2] The entries of `low` and `high` are at least 0 and at most 2^60.
  }];
  let arguments = (ins Dtc_AnyTensor:$operand, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       Dtc_F64Attr:$value);
  let results = (outs Dtc_AnyTensor:$result);
  let assemblyFormat = [{
    $operand `low` $low `high` $high `value` $value attr-dict `:` functional-type(operands, results)
  }];
  let hasFolder = 1;
}

def Dtc_ConcatOp : Dtc_Op<"concat", [
    Dtc_InferType, Dtc_Sharded<>, Dtc_Kernel<>, Dtc_Differentiable, Dtc_CarriesSums]> {
  let summary = "Joins tensors along a dimension";
  let description = [{
    `X... -> X`. The operands one after another along `dim`; the other dimensions are equal.

    ```mlir
    %c = dtc.concat %a, %b dim 1 : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<4x10xf32>
    ```

    Constraints:

    - [concat-c1] There is at least one operand.
    - [concat-c2] `dim` is a dimension of the first operand.
    - [concat-c3] The operands have the element type and, but for dimension `dim`, the shape of the
      first one.
    - [concat-c4] The sizes of dimension `dim` add up to at most 2^63 - 1.
  }];
  let arguments = (ins Variadic<Dtc_StoredTensor>:$inputs, I64Attr:$dim);
  let results = (outs Dtc_StoredTensor:$result);
  let assemblyFormat = "$inputs `dim` $dim attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

#endif // DTC_DIALECTS_DTC_DTCSLICEOPS_TD
