//===- DistScaledOps.td - Ops of products in 8 bits ---------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DIST_DISTSCALEDOPS_TD
#define DTC_DIALECTS_DIST_DISTSCALEDOPS_TD

include "dialects/dist/DistDialect.td"
include "dialects/dtc/DtcInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Dist_PlainTensor : StaticShapeTensorOf<[F32, F64, BF16, F16]>;
def Dist_Float8Tensor : StaticShapeTensorOf<[F8E4M3FN, F8E5M2]>;
def Dist_ScaleTensor : Type<0DTensorOf<[F32]>.predicate, "tensor<f32>", "::mlir::RankedTensorType">,
                       BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getF32Type())">;
def Dist_ProductTensor : StaticShapeTensorOf<[F32, BF16]>;

def Dist_LargestMagnitudeOp : Op<Dist_Dialect, "largest_magnitude", [
    Pure, DeclareOpInterfaceMethods<Dtc_KernelOpInterface>]> {
  let summary = "The largest absolute value of a tensor";
  let description = [{
    `F[s] -> f32[]`. The largest absolute value of the elements, rounded to f32; a NaN where an element is one.

    ```mlir
    %a = dist.largest_magnitude %x : tensor<4x8xbf16>
    ```
  }];
  let arguments = (ins Dist_PlainTensor:$input);
  let results = (outs Dist_ScaleTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}

def Dist_QuantizeF8Op : Op<Dist_Dialect, "quantize_f8", [
    Pure, DeclareOpInterfaceMethods<Dtc_KernelOpInterface>]> {
  let summary = "The elements of a tensor in 8 bits, with a scale for all of them";
  let description = [{
    `input F[s], largest f32[] -> Q[s], inverse f32[]`. With s the scale of `largest`, each element becomes the number
    of the type Q next to s x, ties to even, limited to the largest finite one; a NaN stays one. `inverse` is 1 / s. The
    scale is the largest power of two with which `largest` stays within the finite numbers of Q, from 2^-126 to 2^126,
    1 where `largest` is 0, and a NaN where it is infinite or a NaN.

    Source: Micikevicius et al., "FP8 Formats for Deep Learning" (arXiv:2209.05433), section 3, where a scale for each
    tensor is in higher precision; a power of two makes both multiplications exact.

    ```mlir
    %q, %s = dist.quantize_f8 %x by %a : tensor<4x8xbf16> -> tensor<4x8xf8E4M3FN>
    ```

    Constraints:

    - [quantize_f8-c1] The result has the shape of the operand.
  }];
  let arguments = (ins Dist_PlainTensor:$input, Dist_ScaleTensor:$largest);
  let results = (outs Dist_Float8Tensor:$result, Dist_ScaleTensor:$inverse);
  let assemblyFormat = "$input `by` $largest attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Dist_ScaledProductOp : Op<Dist_Dialect, "scaled_product", [
    Pure, DeclareOpInterfaceMethods<Dtc_KernelOpInterface>,
    DeclareOpInterfaceMethods<Dtc_ShardingRuleOpInterface, ["getShardingRule", "getFlops"]>, Dtc_MatrixProducts]> {
  let summary = "A contraction of two tensors in 8 bits";
  let description = [{
    `lhs Q, rhs Q, lhs_inverse f32[], rhs_inverse f32[] -> bf16 or f32`. The einsum of lhs and rhs (see `dtc.einsum`),
    summed in f32 and multiplied by both scalars. At most one operand is of `f8E5M2`: GPUs have no product of two.

    ```mlir
    %h = dist.scaled_product "bsd,df->bsf" %x, %w scales %s, %t
        : (tensor<2x16x64xf8E4M3FN>, tensor<64x256xf8E4M3FN>) -> tensor<2x16x256xbf16>
    ```

    Constraints:

    - [scaled_product-c1] The equation is one of an einsum.
    - [scaled_product-c2] Operands and result have the dimensions that the equation names, and a letter names dimensions
      of one size.
    - [scaled_product-c3] At most one operand is of `f8E5M2`.
  }];
  let arguments = (ins Dist_Float8Tensor:$lhs, Dist_Float8Tensor:$rhs, Dist_ScaleTensor:$lhs_inverse,
                       Dist_ScaleTensor:$rhs_inverse, StrAttr:$equation);
  let results = (outs Dist_ProductTensor:$result);
  let assemblyFormat = [{
    $equation $lhs `,` $rhs `scales` $lhs_inverse `,` $rhs_inverse attr-dict `:`
    `(` type($lhs) `,` type($rhs) `)` `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // DTC_DIALECTS_DIST_DISTSCALEDOPS_TD
