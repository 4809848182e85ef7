//===- DtcFusedOps.td - Where a fused kernel matters ----------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_DTCFUSEDOPS_TD
#define DTC_DIALECTS_DTC_DTCFUSEDOPS_TD

include "dialects/dtc/DtcOpBase.td"

def Dtc_RotaryOp : Dtc_InPlaceOp<"rotary", "{0, 0}", [
    SameOperandsAndResultType, Dtc_Sharded<>, Dtc_Differentiable]> {
  let summary = "Rotary position embedding";
  let description = [{
    `x F[b,s,h,d] -> F[b,s,h,d]`, d even. Rotates each pair of elements (i, i + d/2) by the angle
    position * theta^(-2i/d), where the position is the index on s; `inverse` rotates by the
    negative angle.

    Source: Su et al., "RoFormer" (arXiv:2104.09864), section 3.4.2, with the pairs of Hugging
    Face's rotate_half.

    ```mlir
    %y = dtc.rotary %x {inverse = false, theta = 1.0e4} : tensor<2x128x12x64xf32>
    ```
  }];
  let arguments = (ins Dtc_FloatTensor:$operand, Dtc_F64Attr:$theta, BoolAttr:$inverse);
  let results = (outs Dtc_FloatTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Dtc_AttentionOp : Dtc_Op<"attention", [
    Dtc_InferType, Dtc_Sharded<["getFlops"]>, Dtc_Kernel<>, Dtc_Differentiable]> {
  let summary = "Scaled dot-product attention";
  let description = [{
    `q F[b,s,h,d], k F[b,t,g,d], v F[b,t,g,d] -> out F[b,s,h,d], lse F[b,h,s]`, g divides h. Query
    head i attends to key-value head i / (h/g): out = softmax(scale q k^T) v. Causal: query i sees
    the keys j <= i + (t - s). The lse is the log of the sum of exponentials of the scaled scores;
    the gradient needs it, it has none itself.

    Source: Vaswani et al., "Attention Is All You Need" (arXiv:1706.03762), section 3.2.1; grouped
    heads: Ainslie et al., "GQA" (arXiv:2305.13245), section 2.2; without the scores in memory: Dao
    et al., "FlashAttention" (arXiv:2205.14135), section 3.1.

    ```mlir
    %out, %lse = dtc.attention %q, %k, %v {causal = true, scale = 0.125}
        : (tensor<2x8x4x64xf32>, tensor<2x8x2x64xf32>, tensor<2x8x2x64xf32>)
        -> (tensor<2x8x4x64xf32>, tensor<2x4x8xf32>)
    ```
  }];
  let arguments = (ins Dtc_FloatTensor:$q, Dtc_FloatTensor:$k, Dtc_FloatTensor:$v, BoolAttr:$causal,
                       Dtc_F64Attr:$scale);
  let results = (outs Dtc_FloatTensor:$out, Dtc_FloatTensor:$lse);
  let assemblyFormat = "$q `,` $k `,` $v attr-dict `:` functional-type(operands, results)";
}

def Dtc_AttentionGradOp : Dtc_Op<"attention_grad", [
    Dtc_InferType, Dtc_Sharded<["getFlops"]>, Dtc_Kernel<>]> {
  let summary = "The gradient of attention";
  let description = [{
    `q, k, v, out, lse, dout -> dq, dk, dv`, shapes as those of `attention`. With p = exp(scale q
    k^T - lse), computed again: dv = p^T dout, ds = p (dout v^T - sum(dout out)), dq = scale ds k,
    dk = scale ds^T q.

    Source: Dao et al., "FlashAttention" (arXiv:2205.14135), appendix B.2.
  }];
  let arguments = (ins Dtc_FloatTensor:$q, Dtc_FloatTensor:$k, Dtc_FloatTensor:$v,
                       Dtc_FloatTensor:$out, Dtc_FloatTensor:$lse, Dtc_FloatTensor:$dout,
                       BoolAttr:$causal, Dtc_F64Attr:$scale);
  let results = (outs Dtc_FloatTensor:$dq, Dtc_FloatTensor:$dk, Dtc_FloatTensor:$dv);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $out `,` $lse `,` $dout attr-dict `:` functional-type(operands, results)
  }];
}

def Dtc_CrossEntropyOp : Dtc_Op<"cross_entropy", [
    Dtc_InferType, Dtc_Sharded<["decompose"]>, Dtc_Kernel<>, Dtc_Differentiable]> {
  let summary = "-log softmax(logits)[label]";
  let description = [{
    `logits F[...,v], labels i32[...] -> loss F[...], lse F[...]`. lse = log(sum(exp(logits))) over
    v, loss = lse - logits[label], where a label outside [0, v) counts 0 for the second term. Both
    results have gradients: that of lse serves a z-loss.

    ```mlir
    %loss, %lse = dtc.cross_entropy %logits, %labels
        : (tensor<16x128x256xf32>, tensor<16x128xi32>) -> (tensor<16x128xf32>, tensor<16x128xf32>)
    ```
  }];
  let arguments = (ins Dtc_FloatTensor:$logits, Dtc_IndexTensor:$labels);
  let results = (outs Dtc_FloatTensor:$loss, Dtc_FloatTensor:$lse);
  let assemblyFormat = "$logits `,` $labels attr-dict `:` functional-type(operands, results)";
}

def Dtc_CrossEntropyGradOp : Dtc_InPlaceOp<"cross_entropy_grad", "{0, 0}", [
    Dtc_InferType, Dtc_Sharded<>]> {
  let summary = "The gradient of cross_entropy by its loss";
  let description = [{
    `logits F[...,v], labels i32[...], lse F[...], dloss F[...] -> dlogits F[...,v]`. dlogits =
    (exp(logits - lse) - onehot(label)) dloss. Needs no other element of the row than its own, so v
    can be sharded.
  }];
  let arguments = (ins Dtc_FloatTensor:$logits, Dtc_IndexTensor:$labels, Dtc_FloatTensor:$lse,
                       Dtc_FloatTensor:$dloss);
  let results = (outs Dtc_FloatTensor:$dlogits);
  let assemblyFormat =
      "$logits `,` $labels `,` $lse `,` $dloss attr-dict `:` functional-type(operands, results)";
}

#endif // DTC_DIALECTS_DTC_DTCFUSEDOPS_TD
