//===- DtcShapeOps.td - Constants and changes of shape --------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_DTCSHAPEOPS_TD
#define DTC_DIALECTS_DTC_DTCSHAPEOPS_TD

include "dialects/dtc/DtcOpBase.td"

def Dtc_ConstantOp : Dtc_Op<"constant", [
    ConstantLike, AllTypesMatch<["value", "result"]>, Dtc_Sharded<["buildLocal"]>,
    Dtc_Kernel<["getKernelName", "getKernelAttributes"]>]> {
  let summary = "A tensor known when the model is compiled";
  let description = [{
    `-> X[s]`. The kernel is `fill` if all elements are equal, `constant` otherwise. The dimensions
    can be sharded if all elements are equal.

    ```mlir
    %c = dtc.constant dense<1.0> : tensor<4xf32>
    ```
  }];
  let arguments = (ins Dtc_ElementsAttr:$value);
  let results = (outs Dtc_AnyTensor:$result);
  // All elements are `splat`, rounded to the type.
  let builders = [OpBuilder<(ins "::mlir::RankedTensorType":$type, "double":$splat)>];
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}

def Dtc_BroadcastOp : Dtc_Op<"broadcast", [
    Dtc_Sharded<>, Dtc_Kernel<>, Dtc_Differentiable, Dtc_IsView]> {
  let summary = "Repeats a tensor along new dimensions";
  let description = [{
    `X -> X`. Operand dimension i is result dimension dims[i], of the same size; along the other
    result dimensions the operand is repeated. `dims` increase.

    ```mlir
    %b = dtc.broadcast %x dims [2] : (tensor<64xf32>) -> tensor<16x128x64xf32>
    ```

    Constraints:

    - [broadcast-c1] The result has the element type of the operand.
    - [broadcast-c2] `dims` has one entry for each dimension of the operand.
    - [broadcast-c3] The entries of `dims` are dimensions of the result, each larger than the one
      before.
    - [broadcast-c4] Dimension i of the operand has the size of dimension dims[i] of the result.
  }];
  let arguments = (ins Dtc_AnyTensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Dtc_AnyTensor:$result);
  let assemblyFormat = "$operand `dims` $dims attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Dtc_ReshapeOp : Dtc_Op<"reshape", [
    Dtc_Sharded<>, Dtc_Differentiable, Dtc_IsView, Dtc_MovesElements,
    Dtc_SameElements, Dtc_CarriesSums]> {
  let summary = "The same elements in another shape";
  let description = [{
    `X[s] -> X[t]`. As many elements, in the same row-major order. Has no kernel: a buffer is what
    it was.

    ```mlir
    %y = dtc.reshape %x : (tensor<16x768xf32>) -> tensor<16x12x64xf32>
    ```

    Constraints:

    - [reshape-c1] The result has the element type of the operand.
    - [reshape-c2] The result has as many elements as the operand.
  }];
  let arguments = (ins Dtc_StoredTensor:$operand);
  let results = (outs Dtc_StoredTensor:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "::llvm::ArrayRef<int64_t>":$shape)>];
  let assemblyFormat = "$operand attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Dtc_TransposeOp : Dtc_Op<"transpose", [
    Dtc_InferType, Dtc_Sharded<>, Dtc_Kernel<>, Dtc_Differentiable, Dtc_MovesElements,
    Dtc_CarriesSums]> {
  let summary = "Permutes dimensions";
  let description = [{
    `X -> X`. Result dimension i is operand dimension permutation[i].

    ```mlir
    %t = dtc.transpose %x permutation [0, 2, 1] : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
    ```

    Constraints:

    - [transpose-c1] `permutation` has each dimension of the operand once.
  }];
  let arguments = (ins Dtc_AnyTensor:$operand, DenseI64ArrayAttr:$permutation);
  let results = (outs Dtc_AnyTensor:$result);
  let assemblyFormat =
      "$operand `permutation` $permutation attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def Dtc_ZigzagOp : Dtc_Op<"zigzag", [
    Dtc_InferType, Dtc_Sharded<>, Dtc_Kernel<>, Dtc_Differentiable, Dtc_MovesElements,
    Dtc_CarriesSums]> {
  let summary = "Puts a dimension into zigzag order";
  let description = [{
    `X -> X`. The dimension `dim` is 2 `parts` chunks of equal size. Of the equal `parts` of the
    result, part i is chunk i and then chunk 2 parts - 1 - i: in causal attention all parts see as
    many keys. `inverse` puts such chunks back into their order.

    Source: the order of the 2 CP chunks in Grattafiori et al., "The Llama 3 Herd of Models"
    (arXiv:2407.21783), section 3.3.2.

    ```mlir
    %y = dtc.zigzag %x {dim = 1, inverse = false, parts = 2} : tensor<4x16xi32>
    ```

    Constraints:

    - [zigzag-c1] `dim` is a dimension of the operand.
    - [zigzag-c2] `parts` is at least 1, and twice that divides the size of the dimension.
  }];
  let arguments = (ins Dtc_AnyTensor:$operand, I64Attr:$dim, I64Attr:$parts, BoolAttr:$inverse);
  let results = (outs Dtc_AnyTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand)";
  let hasFolder = 1;
}

#endif // DTC_DIALECTS_DTC_DTCSHAPEOPS_TD
