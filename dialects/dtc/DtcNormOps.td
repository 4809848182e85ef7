//===- DtcNormOps.td - Softmax and norms over the last dimension -*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// All work on rows: n, the last dimension, must be whole, the others are parallel. Each but a causal
// softmax decomposes into elementwise ops, broadcasts and reductions, whose n may be sharded.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_DTCNORMOPS_TD
#define DTC_DIALECTS_DTC_DTCNORMOPS_TD

include "dialects/dtc/DtcOpBase.td"

def Dtc_SoftmaxOp : Dtc_Op<"softmax", [
    Dtc_Kernel<>, SameOperandsAndResultType, Dtc_Sharded<["decompose"]>, Dtc_Differentiable]> {
  let summary = "exp(x) / sum(exp(x)) over the last dimension";
  let description = [{
    `F[...,n] -> F[...,n]`. With z = scale x: exp(z - max) / sum(exp(z - max)) over n.

    Causal: `F[...,m,n]`, m <= n, are matrices whose row i sees the columns j <= i + (n - m) alone;
    the other elements of x count as -infinity, whatever they are, and the result is 0 there. Both
    dimensions must be whole then.

    Source: scale and mask as in Megatron-LM's scaled_upper_triang_masked_softmax.

    ```mlir
    %y = dtc.softmax %x : tensor<16x128x256xf32>
    %p = dtc.softmax %scores {causal = true, scale = 0.125} : tensor<2x4x128x128xf32>
    ```

    Constraints:

    - [softmax-c1] The operand has at least one dimension.
    - [softmax-c2] If it is causal, the operand has at least 2 dimensions.
    - [softmax-c3] If it is causal, the operand has no more rows (m) than columns (n).
    - [softmax-c4] `scale` is finite.
  }];
  let arguments = (ins Dtc_FloatTensor:$operand,
                       DefaultValuedAttr<BoolAttr, "false">:$causal,
                       DefaultValuedAttr<Dtc_F64Attr, "1.0">:$scale);
  let extraClassDeclaration = !strconcat(Dtc_LowPrecision<>.declaration, [{
    ::mlir::DictionaryAttr getKernelAttributes();
  }]);
  let results = (outs Dtc_FloatTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Dtc_SoftmaxGradOp : Dtc_Op<"softmax_grad", [
    Dtc_Kernel<>, SameOperandsAndResultType, Dtc_Sharded<["decompose"]>]> {
  let summary = "The gradient of softmax";
  let description = [{
    `y F[...,n], dy F[...,n] -> dx F[...,n]`. dx = scale y (dy - sum(y dy)); y is the result of
    softmax. Where that is 0 because of a mask, so is dx.

    Constraints:

    - [softmax_grad-c1] The operands have at least one dimension.
    - [softmax_grad-c2] `scale` is finite.
  }];
  let arguments = (ins Dtc_FloatTensor:$y, Dtc_FloatTensor:$dy,
                       DefaultValuedAttr<Dtc_F64Attr, "1.0">:$scale);
  let extraClassDeclaration = !strconcat(Dtc_LowPrecision<>.declaration, [{
    ::mlir::DictionaryAttr getKernelAttributes();
  }]);
  let results = (outs Dtc_FloatTensor:$result);
  let assemblyFormat = "$y `,` $dy attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Dtc_LayerNormOp : Dtc_Op<"layer_norm", [
    Dtc_InferType, Dtc_Sharded<["decompose"]>, Dtc_Kernel<>, Dtc_Differentiable]> {
  let summary = "Normalizes rows to mean 0 and variance 1";
  let description = [{
    `x F[...,n], gamma F[n], beta F[n] -> y F[...,n], mean W[...], rstd W[...]`. mean = sum(x) / n,
    rstd = 1 / sqrt(sum((x - mean)^2) / n + eps), y = (x - mean) rstd gamma + beta. The mean and
    rstd are what the gradient needs; they have no gradient themselves.

    Source: Ba, Kiros and Hinton, "Layer Normalization" (arXiv:1607.06450), section 3.

    ```mlir
    %y, %mean, %rstd = dtc.layer_norm %x, %gamma, %beta {eps = 1.0e-5}
        : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
        -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
    ```

    Constraints:

    - [layer_norm-c1] `x` has at least one dimension.
    - [layer_norm-c2] `gamma` and `beta` have the type F[n], n and F as in `x`.
    - [layer_norm-c3] `eps` is finite and not negative.
  }];
  let arguments = (ins Dtc_FloatTensor:$x, Dtc_FloatTensor:$gamma, Dtc_FloatTensor:$beta,
                       Dtc_F64Attr:$eps);
  let extraClassDeclaration = Dtc_LowPrecision<>.declaration;
  let results = (outs Dtc_FloatTensor:$y, Dtc_WideTensor:$mean, Dtc_WideTensor:$rstd);
  let assemblyFormat = "$x `,` $gamma `,` $beta attr-dict `:` functional-type(operands, results)";
}

def Dtc_LayerNormGradOp : Dtc_Op<"layer_norm_grad", [
    Dtc_InferType, Dtc_Sharded<["decompose"]>, Dtc_Kernel<>]> {
  let summary = "The gradient of layer_norm";
  let description = [{
    `x F[...,n], gamma F[n], mean W[...], rstd W[...], dy F[...,n] -> dx F[...,n], dgamma W[n],
    dbeta W[n]`. With h = (x - mean) rstd and g = dy gamma: dx = rstd (g - sum(g) / n - h sum(g h) /
    n); dgamma = sum of dy h and dbeta = sum of dy over the leading dimensions.

    Constraints:

    - [layer_norm_grad-c1] `x` has at least one dimension.
    - [layer_norm_grad-c2] `gamma` has the type F[n], n and F as in `x`.
    - [layer_norm_grad-c3] `mean` and `rstd` have the type W[...], the shape of `x` without its last
      dimension.
    - [layer_norm_grad-c4] `dy` has the type of `x`.
  }];
  let arguments = (ins Dtc_FloatTensor:$x, Dtc_FloatTensor:$gamma, Dtc_WideTensor:$mean,
                       Dtc_WideTensor:$rstd, Dtc_FloatTensor:$dy);
  let extraClassDeclaration = Dtc_LowPrecision<"operand == 2 || operand == 3">.declaration;
  let results = (outs Dtc_FloatTensor:$dx, Dtc_WideTensor:$dgamma, Dtc_WideTensor:$dbeta);
  let assemblyFormat = [{
    $x `,` $gamma `,` $mean `,` $rstd `,` $dy attr-dict `:` functional-type(operands, results)
  }];
}

def Dtc_RmsNormOp : Dtc_Op<"rms_norm", [
    Dtc_InferType, Dtc_Sharded<["decompose"]>, Dtc_Kernel<>, Dtc_Differentiable]> {
  let summary = "Normalizes rows to mean square 1";
  let description = [{
    `x F[...,n], gamma F[n] -> y F[...,n], rstd W[...]`. rstd = 1 / sqrt(sum(x^2) / n + eps), y = x
    rstd gamma. The rstd is what the gradient needs; it has no gradient itself.

    Source: Zhang and Sennrich, "Root Mean Square Layer Normalization" (arXiv:1910.07467), section
    3.

    ```mlir
    %y, %rstd = dtc.rms_norm %x, %gamma {eps = 1.0e-6}
        : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
    ```

    Constraints:

    - [rms_norm-c1] `x` has at least one dimension.
    - [rms_norm-c2] `gamma` has the type F[n], n and F as in `x`.
    - [rms_norm-c3] `eps` is finite and not negative.
  }];
  let arguments = (ins Dtc_FloatTensor:$x, Dtc_FloatTensor:$gamma, Dtc_F64Attr:$eps);
  let extraClassDeclaration = Dtc_LowPrecision<>.declaration;
  let results = (outs Dtc_FloatTensor:$y, Dtc_WideTensor:$rstd);
  let assemblyFormat = "$x `,` $gamma attr-dict `:` functional-type(operands, results)";
}

def Dtc_RmsNormGradOp : Dtc_Op<"rms_norm_grad", [
    Dtc_InferType, Dtc_Sharded<["decompose"]>, Dtc_Kernel<>]> {
  let summary = "The gradient of rms_norm";
  let description = [{
    `x F[...,n], gamma F[n], rstd W[...], dy F[...,n] -> dx F[...,n], dgamma W[n]`. With h = x rstd
    and g = dy gamma: dx = rstd (g - h sum(g h) / n); dgamma = sum of dy h over the leading
    dimensions.

    Constraints:

    - [rms_norm_grad-c1] `x` has at least one dimension.
    - [rms_norm_grad-c2] `gamma` has the type F[n], n and F as in `x`.
    - [rms_norm_grad-c3] `rstd` has the type W[...], the shape of `x` without its last dimension.
    - [rms_norm_grad-c4] `dy` has the type of `x`.
  }];
  let arguments = (ins Dtc_FloatTensor:$x, Dtc_FloatTensor:$gamma, Dtc_WideTensor:$rstd,
                       Dtc_FloatTensor:$dy);
  let extraClassDeclaration = Dtc_LowPrecision<"operand == 2">.declaration;
  let results = (outs Dtc_FloatTensor:$dx, Dtc_WideTensor:$dgamma);
  let assemblyFormat =
      "$x `,` $gamma `,` $rstd `,` $dy attr-dict `:` functional-type(operands, results)";
}

#endif // DTC_DIALECTS_DTC_DTCNORMOPS_TD
