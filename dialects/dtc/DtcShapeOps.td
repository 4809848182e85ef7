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
  let arguments = (ins Dtc_AnyTensor:$operand);
  let results = (outs Dtc_AnyTensor:$result);
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

#endif // DTC_DIALECTS_DTC_DTCSHAPEOPS_TD
