//===- DtcWindowOps.td - Convolutions and poolings ------------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_DTCWINDOWOPS_TD
#define DTC_DIALECTS_DTC_DTCWINDOWOPS_TD

include "dialects/dtc/DtcOpBase.td"

def Dtc_ConvOp : Dtc_Op<"conv", [
    Dtc_InferType, Dtc_Sharded<["getFlops"]>, Dtc_Kernel<>, Dtc_Differentiable,
    Dtc_MatrixProducts]> {
  let summary = "A convolution";
  let description = [{
    `x F[n,c,s...], w F[o,c,k...] -> F[n,o,t...]`, or of groups of channels
    `x F[n,g,c,s...], w F[g,o,c,k...] -> F[n,g,o,t...]`, for 1 to 3 spatial dimensions s. Result
    [n,o,t...] is the sum over c and k of w[o,c,k...] x[n,c,p...], where the place p along a
    dimension is t * stride - padding + k * dilation, and x is 0 at the places outside of it. Along
    a dimension of s elements there are
    t = floor((s + 2 padding - (k - 1) dilation - 1) / stride) + 1 of them.

    A depthwise convolution has as many groups as channels, with c = 1. Groups and channels are
    dimensions of their own, so that each may be split.

    Source: torch.nn.functional.conv2d, which has groups and channels in one dimension; "a guide to
    convolution arithmetic for deep learning" (Dumoulin and Visin, arXiv:1603.07285), sections 2
    and 5.1.

    ```mlir
    %y = dtc.conv %x, %w strides [2, 2] padding [1, 1] dilations [1, 1]
        : (tensor<8x3x32x32xf32>, tensor<16x3x3x3xf32>) -> tensor<8x16x16x16xf32>
    ```

    Constraints:

    - [conv-c1] `strides`, `padding` and `dilations` have an entry for each of 1 to 3 spatial
      dimensions. Strides and dilations are at least 1, paddings at least 0, and all are less than
      2^31.
    - [conv-c2] `x` has two dimensions before the spatial ones, or three with groups.
    - [conv-c3] `w` has the rank and the element type of `x`, and its groups and channels. Its
      spatial dimensions are at least 1 and less than 2^31.
    - [conv-c4] A window fits into each spatial dimension of `x` with its padding.
  }];
  let arguments = (ins Dtc_FloatTensor:$x, Dtc_FloatTensor:$w, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilations);
  let extraClassDeclaration = Dtc_LowPrecision<>.declaration;
  let results = (outs Dtc_FloatTensor:$result);
  let assemblyFormat = [{
    $x `,` $w `strides` $strides `padding` $padding `dilations` $dilations attr-dict
    `:` functional-type(operands, results)
  }];
}

def Dtc_ConvInputGradOp : Dtc_Op<"conv_input_grad", [
    Dtc_Sharded<["getFlops"]>, Dtc_Kernel<>, Dtc_Differentiable, Dtc_MatrixProducts]> {
  let summary = "The gradient of conv by its input";
  let description = [{
    `dy F[n,o,t...], w F[o,c,k...] -> F[n,c,s...]`, or with groups as in `conv`: the gradient of
    sum(dy conv(x, w)) by x, which has the type of the result. It is what PyTorch calls a transposed
    convolution of dy.

    ```mlir
    %dx = dtc.conv_input_grad %dy, %w strides [2, 2] padding [1, 1] dilations [1, 1]
        : (tensor<8x16x16x16xf32>, tensor<16x3x3x3xf32>) -> tensor<8x3x32x32xf32>
    ```

    Constraints:

    - [conv_input_grad-c1] `strides`, `padding` and `dilations` are as in [conv-c1].
    - [conv_input_grad-c2] The result has two dimensions before the spatial ones, or three with
      groups.
    - [conv_input_grad-c3] `w` has the rank and the element type of the result, and its groups and
      channels. Its spatial dimensions are at least 1 and less than 2^31.
    - [conv_input_grad-c4] A window fits into each spatial dimension of the result with its padding.
    - [conv_input_grad-c5] `dy` has the type of `conv` of the result and `w`.
  }];
  let arguments = (ins Dtc_FloatTensor:$dy, Dtc_FloatTensor:$w, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilations);
  let extraClassDeclaration = Dtc_LowPrecision<>.declaration;
  let results = (outs Dtc_FloatTensor:$result);
  let assemblyFormat = [{
    $dy `,` $w `strides` $strides `padding` $padding `dilations` $dilations attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Dtc_ConvWeightGradOp : Dtc_Op<"conv_weight_grad", [
    Dtc_Sharded<["getFlops"]>, Dtc_Kernel<>, Dtc_Differentiable, Dtc_MatrixProducts]> {
  let summary = "The gradient of conv by its weight";
  let description = [{
    `x F[n,c,s...], dy F[n,o,t...] -> W[o,c,k...]`, or with groups as in `conv`: the gradient of
    sum(dy conv(x, w)) by w, which has the shape of the result.

    ```mlir
    %dw = dtc.conv_weight_grad %x, %dy strides [2, 2] padding [1, 1] dilations [1, 1]
        : (tensor<8x3x32x32xf32>, tensor<8x16x16x16xf32>) -> tensor<16x3x3x3xf32>
    ```

    Constraints:

    - [conv_weight_grad-c1] `strides`, `padding` and `dilations` are as in [conv-c1].
    - [conv_weight_grad-c2] `x` has two dimensions before the spatial ones, or three with groups.
    - [conv_weight_grad-c3] The result has the rank of `x`, the wide type of its elements, and its
      groups and channels. Its spatial dimensions are at least 1 and less than 2^31.
    - [conv_weight_grad-c4] A window fits into each spatial dimension of `x` with its padding.
    - [conv_weight_grad-c5] `dy` has the type of `conv` of `x` and a weight of the result's shape.
  }];
  let arguments = (ins Dtc_FloatTensor:$x, Dtc_FloatTensor:$dy, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilations);
  let extraClassDeclaration = !strconcat(Dtc_LowPrecision<>.declaration, [{
    bool widenResults() { return true; }
  }]);
  let results = (outs Dtc_WideTensor:$result);
  let assemblyFormat = [{
    $x `,` $dy `strides` $strides `padding` $padding `dilations` $dilations attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Dtc_MaxPoolOp : Dtc_Op<"max_pool", [
    Dtc_InferType, Dtc_Sharded<["getFlops"]>, Dtc_Kernel<>, Dtc_Differentiable]> {
  let summary = "The largest element of each window";
  let description = [{
    `x F[...,s...] -> F[...,t...]`: the largest element of each window of the last dimensions, of
    which there are 1 to 3. Where elements lie, and how many windows there are, is as in `conv`.
    Padding is in no maximum; a window of padding alone has -infinity. A NaN is larger than all
    numbers.

    Source: torch.nn.functional.max_pool2d, with `ceil_mode=False`.

    ```mlir
    %y = dtc.max_pool %x window [3, 3] strides [2, 2] padding [1, 1] dilations [1, 1]
        : (tensor<8x16x32x32xf32>) -> tensor<8x16x16x16xf32>
    ```

    Constraints:

    - [max_pool-c1] `window`, `strides`, `padding` and `dilations` have an entry for each of 1 to 3
      spatial dimensions. Paddings are at least 0, the others at least 1, and all are less than
      2^31.
    - [max_pool-c2] `x` has the spatial dimensions.
    - [max_pool-c3] A window fits into each spatial dimension of `x` with its padding.
  }];
  let arguments = (ins Dtc_FloatTensor:$x, DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilations);
  let results = (outs Dtc_FloatTensor:$result);
  let assemblyFormat = [{
    $x `window` $window `strides` $strides `padding` $padding `dilations` $dilations attr-dict
    `:` functional-type(operands, results)
  }];
}

def Dtc_MaxPoolGradOp : Dtc_Op<"max_pool_grad", [Dtc_Sharded<["getFlops"]>, Dtc_Kernel<>]> {
  let summary = "The gradient of max_pool";
  let description = [{
    `x F[...,s...], dy F[...,t...] -> F[...,s...]`. An element has the sum of dy over the windows
    whose largest element it is; of equal ones the first in the order of memory is that.

    ```mlir
    %dx = dtc.max_pool_grad %x, %dy window [3, 3] strides [2, 2] padding [1, 1] dilations [1, 1]
        : (tensor<8x16x32x32xf32>, tensor<8x16x16x16xf32>) -> tensor<8x16x32x32xf32>
    ```

    Constraints:

    - [max_pool_grad-c1] `window`, `strides`, `padding` and `dilations` are as in [max_pool-c1].
    - [max_pool_grad-c2] `x` has the spatial dimensions.
    - [max_pool_grad-c3] A window fits into each spatial dimension of `x` with its padding.
    - [max_pool_grad-c4] `dy` has the type of `max_pool` of `x`, and the result that of `x`.
  }];
  let arguments = (ins Dtc_FloatTensor:$x, Dtc_FloatTensor:$dy, DenseI64ArrayAttr:$window,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$padding,
                       DenseI64ArrayAttr:$dilations);
  let results = (outs Dtc_FloatTensor:$result);
  let assemblyFormat = [{
    $x `,` $dy `window` $window `strides` $strides `padding` $padding `dilations` $dilations
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // DTC_DIALECTS_DTC_DTCWINDOWOPS_TD
