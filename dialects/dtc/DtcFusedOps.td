//===- DtcFusedOps.td - Ops with fused kernels -------------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_DTCFUSEDOPS_TD
#define DTC_DIALECTS_DTC_DTCFUSEDOPS_TD

include "dialects/dtc/DtcOpBase.td"

/// Of an op whose result depends on where in a sequence an element lies: the parts of `dtc.zigzag`
/// where the elements are in its order, and of a shard the size of the whole dimension and the axes
/// that split it.
defvar Dtc_SequenceOrder = (ins OptionalAttr<I64Attr>:$zigzag, OptionalAttr<I64Attr>:$sequence,
                                OptionalAttr<StrArrayAttr>:$sequence_axes);

def Dtc_RotaryOp : Dtc_Op<"rotary", [
    Dtc_Kernel<>, Dtc_InferType, Dtc_Sharded<>, Dtc_Differentiable]> {
  let summary = "Rotary position embedding";
  let description = [{
    `x F[b,s,h,d] -> F[b,s,h,d]`, d even. Rotates each pair of elements (i, i + d/2) by the angle
    position * theta^(-2i/d), where the position is the index on s, counted from positions[n] in
    sample n where there are `positions i32[b]`, or positions[n,i] at index i of sample n where
    there are `positions i32[b,s]`; `inverse` rotates by the negative angle.

    With `frequencies` instead of `theta`, n of them, it rotates the pairs (i, i + n) by position *
    frequencies[i], and the elements from 2n on stay as they are. What is rotated is multiplied by
    `factor`, 1 if it is absent.

    With `zigzag` n, x is in the order of `dtc.zigzag` with n parts, and the index on s is that in the
    order of the sequence. A shard of s has the size of the whole dimension in `sequence` and the
    axes that split it in `sequence_axes`: the index on s is that in the whole.

    Source: Su et al., "RoFormer" (arXiv:2104.09864), section 3.4.2, with the pairs of Hugging
    Face's rotate_half; `factor`: Peng et al., "YaRN" (arXiv:2309.00071), section 3.4.

    ```mlir
    %y = dtc.rotary %x {inverse = false, theta = 1.0e4} : tensor<2x128x12x64xf32>
    %z = dtc.rotary %x {frequencies = array<f64: 1.0, 0.01>, inverse = false}
        : tensor<2x128x12x64xf32>
    ```

    Constraints:

    - [rotary-c1] The operand has rank 4, and its last dimension has an even size.
    - [rotary-c2] `theta` is finite and greater than 0.
    - [rotary-c3] `positions`, if there are any, have the type i32[b] or i32[b,s], b and s as in the
      operand.
    - [rotary-c4] There is either `theta` or `frequencies`.
    - [rotary-c5] There is at least one of the `frequencies`, and no more than pairs of elements.
    - [rotary-c6] The `frequencies` are finite and not negative.
    - [rotary-c7] `factor` is finite and greater than 0.
    - [rotary-c8] `zigzag` is at least 1, and twice that divides the size of the sequence.
    - [rotary-c9] `sequence` is at least 1, and is there exactly where `sequence_axes` are.
  }];
  let arguments = !con((ins Dtc_FloatTensor:$operand, Optional<Dtc_IndexTensor>:$positions,
                            OptionalAttr<Dtc_F64Attr>:$theta,
                            OptionalAttr<DenseF64ArrayAttr>:$frequencies,
                            OptionalAttr<Dtc_F64Attr>:$factor, BoolAttr:$inverse),
                       Dtc_SequenceOrder);
  let results = (outs Dtc_FloatTensor:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "double":$theta, "bool":$inverse)>];
  let hasVerifier = 1;
  let assemblyFormat = [{
    $operand (`from` $positions^ `:` type($positions))? attr-dict `:` type($operand)
  }];
}

/// The dropout of attention, and where a shard of it lies (see Dtc_DropoutOp).
defvar Dtc_AttentionDropout = (ins DefaultValuedAttr<Dtc_F64Attr, "0.0">:$dropout,
                                   DefaultValuedAttr<I64Attr, "0">:$number,
                                   OptionalAttr<DenseI64ArrayAttr>:$shape,
                                   OptionalAttr<StrArrayAttr>:$sharding);

/// The keys before a query that it sees, the bound of its scores, and which keys there are.
defvar Dtc_AttentionScores = (ins OptionalAttr<I64Attr>:$window,
                                  OptionalAttr<Dtc_F64Attr>:$softcap,
                                  OptionalAttr<I64Attr>:$key_shift);

def Dtc_AttentionOp : Dtc_Op<"attention", [
    Dtc_InferType, Dtc_Sharded<["getFlops"]>, Dtc_Kernel<["getKernelAttributes"]>,
    Dtc_Differentiable, Dtc_MatrixProducts, AttrSizedOperandSegments]> {
  let summary = "Scaled dot-product attention";
  let description = [{
    `q F[b,s,h,d], k F[b,t,g,d], v F[b,t,g,d] -> out F[b,s,h,d], lse W[b,h,s]`, g divides h. Query
    head i attends to key-value head i / (h/g): out = softmax(scale q k^T) v. Causal: query i sees
    the keys j <= i + (t - s). The lse is the log of the sum of exponentials of the scaled scores;
    the gradient needs it, it has none itself.

    With a `window` of w keys, which needs causal, query i sees of these only the last w: j > i + (t
    - s) - w. With a `softcap` c, the scaled scores x become c tanh(x / c) before the softmax.

    With `segments i32[b,t]`, a query sees of these only the keys of its own segment: of the run of
    equal numbers around its own key, which is i + (t - s) for query i. The segments of a row are
    documents that are packed into it, and its padding, which is a run as well.

    With `zigzag` n, the queries are in the order of `dtc.zigzag` with n parts: where "query i" above
    is one in the order of the sequence, it is another one of q. A shard of s has the size of the
    whole dimension in `sequence` and the axes that split it in `sequence_axes`: i is then an index
    in the whole, and s above is the whole size.

    With a `key_shift`, keys lie as queries do: t is s, in the same order, and is split with it. A
    shard has the keys of the device whose number along `sequence_axes` is `key_shift` less, and so
    sees a part of the keys only; in a model it is 0, and `dtc-expand-ring-attention` makes of the
    shard one op for each shard of keys, with `dtc.merge_attention` between. `segments` are always
    those of the whole sequence, in its order.

    With `dropout`, the probability that an element of the softmax is dropped, and a `key`, as in
    `dtc.dropout`, the softmax is multiplied by the mask of the random op `number` over [b,h,s,t].

    With `sinks F[h]`, the softmax of each query of head i has one score more, sinks[i], which is
    neither scaled nor capped and has no value: what a query gives its keys adds up to less than 1.
    The lse has the sink in it. `dtc-expand-attention-sinks` makes other ops of it: no kernel has
    sinks.

    Source: Vaswani et al., "Attention Is All You Need" (arXiv:1706.03762), section 3.2.1; grouped
    heads: Ainslie et al., "GQA" (arXiv:2305.13245), section 2.2; without the scores in memory: Dao
    et al., "FlashAttention" (arXiv:2205.14135), section 3.1; windows: Beltagy et al., "Longformer"
    (arXiv:2004.05150), section 3.1; soft caps: Gemma Team, "Gemma 2" (arXiv:2408.00118), section 2;
    segments: Krell et al., "Efficient Sequence Packing" (arXiv:2107.02027), section 3.2; sinks:
    Xiao et al., "Efficient Streaming Language Models with Attention Sinks" (arXiv:2309.17453),
    section 3.3, there without a parameter.

    ```mlir
    %out, %lse = dtc.attention %q, %k, %v {causal = true, scale = 0.125}
        : (tensor<2x8x4x64xf32>, tensor<2x8x2x64xf32>, tensor<2x8x2x64xf32>)
        -> (tensor<2x8x4x64xf32>, tensor<2x4x8xf32>)
    ```

    Constraints:

    - [attention-c1] `q` has rank 4.
    - [attention-c2] `k` has rank 4, the element type of `q`, and its sizes b and d.
    - [attention-c3] The number of heads of `k` divides that of `q`.
    - [attention-c4] `v` has the type of `k`.
    - [attention-c5] If it is causal, there are no more queries than keys.
    - [attention-c6] `scale` is finite.
    - [attention-c7] `dropout` is at least 0 and less than 1.
    - [attention-c8] There is a `key` exactly where `dropout` is greater than 0.
    - [attention-c9] `key` has the type i32[2].
    - [attention-c10] `window` is at least 1.
    - [attention-c11] Where there is a `window`, `causal` is true.
    - [attention-c12] `softcap` is finite and greater than 0.
    - [attention-c13] `segments` have the type i32[b,t], b and t as in `k`; with `key_shift` t is
      the size of the sequence.
    - [attention-c14] Where there are `segments`, there are no more queries than keys.
    - [attention-c15] `zigzag` is at least 1, and twice that divides the queries of the sequence.
    - [attention-c16] `sequence` is at least 1, and is there exactly where `sequence_axes` are.
    - [attention-c17] With `zigzag` or `key_shift` there is no `dropout`: its mask is over queries
      and keys in order.
    - [attention-c18] With `key_shift`, which is at least 0, there are as many keys as queries.
    - [attention-c19] `sinks` have the type F[h], h and the element type as in `q`.
  }];
  let arguments = !con((ins Dtc_FloatTensor:$q, Dtc_FloatTensor:$k, Dtc_FloatTensor:$v,
                            Optional<Dtc_IndexTensor>:$segments, Optional<Dtc_IndexTensor>:$key,
                            Optional<Dtc_FloatTensor>:$sinks, BoolAttr:$causal,
                            Dtc_F64Attr:$scale),
                       Dtc_AttentionScores, Dtc_SequenceOrder, Dtc_AttentionDropout);
  let extraClassDeclaration = Dtc_LowPrecision<>.declaration # [{
    /// The FLOPs of attention to all keys, as if nothing were masked.
    double getUnmaskedFlops();
  }];
  let results = (outs Dtc_FloatTensor:$out, Dtc_WideTensor:$lse);
  let builders = [OpBuilder<(ins "::mlir::Value":$q, "::mlir::Value":$k, "::mlir::Value":$v,
                                 "bool":$causal, "double":$scale)>];
  let assemblyFormat = [{
    $q `,` $k `,` $v (`segments` $segments^)? (`key` $key^)? (`sinks` $sinks^)? attr-dict `:`
    functional-type(operands, results)
  }];
}

def Dtc_AttentionGradOp : Dtc_Op<"attention_grad", [
    Dtc_InferType, Dtc_Sharded<["getFlops"]>, Dtc_Kernel<["getKernelAttributes"]>,
    Dtc_MatrixProducts, AttrSizedOperandSegments]> {
  let summary = "The gradient of attention";
  let description = [{
    `q, k, v, out, lse, dout -> dq, dk, dv`, types as those of `attention`. With p = exp(scale q
    k^T - lse), recomputed: dv = p^T dout, ds = p (dout v^T - sum(dout out)), dq = scale ds k,
    dk = scale ds^T q. With dropout, p is masked and scaled in dv, and so is dout v^T in ds. With a
    softcap c, scale q k^T is capped in p, and ds has the factor 1 - (capped / c)^2.

    Source: Dao et al., "FlashAttention" (arXiv:2205.14135), appendix B.2.

    Constraints:

    - [attention_grad-c1] `q` has rank 4.
    - [attention_grad-c2] `k` has rank 4, the element type of `q`, and its sizes b and d.
    - [attention_grad-c3] The number of heads of `k` divides that of `q`.
    - [attention_grad-c4] `v` has the type of `k`.
    - [attention_grad-c5] If it is causal, there are no more queries than keys.
    - [attention_grad-c6] `scale` is finite.
    - [attention_grad-c7] `dropout` is at least 0 and less than 1.
    - [attention_grad-c8] There is a `key` exactly where `dropout` is greater than 0.
    - [attention_grad-c9] `key` has the type i32[2].
    - [attention_grad-c10] `out` has the type of `q`.
    - [attention_grad-c11] `lse` has the type W[b,h,s], W the wide type of the elements of `q`.
    - [attention_grad-c12] `dout` has the type of `q`.
    - [attention_grad-c13] `window` is at least 1.
    - [attention_grad-c14] Where there is a `window`, `causal` is true.
    - [attention_grad-c15] `softcap` is finite and greater than 0.
    - [attention_grad-c16] `segments` have the type i32[b,t], b and t as in `k`; with `key_shift` t
      is the size of the sequence.
    - [attention_grad-c17] Where there are `segments`, there are no more queries than keys.
    - [attention_grad-c18] `zigzag` is at least 1, and twice that divides the queries of the
      sequence.
    - [attention_grad-c19] `sequence` is at least 1, and is there exactly where `sequence_axes` are.
    - [attention_grad-c20] With `zigzag` or `key_shift` there is no `dropout`.
    - [attention_grad-c21] With `key_shift`, which is at least 0, there are as many keys as queries.
  }];
  let arguments = !con((ins Dtc_FloatTensor:$q, Dtc_FloatTensor:$k, Dtc_FloatTensor:$v,
                            Dtc_FloatTensor:$out, Dtc_WideTensor:$lse, Dtc_FloatTensor:$dout,
                            Optional<Dtc_IndexTensor>:$segments, Optional<Dtc_IndexTensor>:$key,
                            BoolAttr:$causal, Dtc_F64Attr:$scale),
                       Dtc_AttentionScores, Dtc_SequenceOrder, Dtc_AttentionDropout);
  let extraClassDeclaration = Dtc_LowPrecision<"operand == 4">.declaration;
  let results = (outs Dtc_FloatTensor:$dq, Dtc_FloatTensor:$dk, Dtc_FloatTensor:$dv);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $out `,` $lse `,` $dout (`segments` $segments^)? (`key` $key^)?
    attr-dict `:` functional-type(operands, results)
  }];
}

def Dtc_MergeAttentionOp : Dtc_Op<"merge_attention", [
    Dtc_InferType, Dtc_Sharded<>, Dtc_Kernel<>]> {
  let summary = "Attention to two sets of keys, from that to each";
  let description = [{
    `out W[b,s,h,d], lse W[b,h,s], part F[b,s,h,d], part_lse W[b,h,s] -> merged W[b,s,h,d],
    merged_lse W[b,h,s]`. Of attention to some keys and to other keys, that to all of them:
    merged_lse = log(exp(lse) + exp(part_lse)), merged = exp(lse - merged_lse) out + exp(part_lse -
    merged_lse) part. Where one has seen no key, its lse is -inf, and the other is the result.

    Source: Liu et al., "Ring Attention with Blockwise Transformers" (arXiv:2310.01889), section 3.

    ```mlir
    %o, %l = dtc.merge_attention %out, %lse, %part, %part_lse
        : (tensor<2x8x4x64xf32>, tensor<2x4x8xf32>, tensor<2x8x4x64xbf16>, tensor<2x4x8xf32>)
        -> (tensor<2x8x4x64xf32>, tensor<2x4x8xf32>)
    ```

    Constraints:

    - [merge_attention-c1] `part` has rank 4.
    - [merge_attention-c2] `out` has the shape of `part` and the wide type of its elements.
    - [merge_attention-c3] `lse` and `part_lse` have the type W[b,h,s].
  }];
  let arguments = (ins Dtc_WideTensor:$out, Dtc_WideTensor:$lse, Dtc_FloatTensor:$part,
                       Dtc_WideTensor:$part_lse);
  let results = (outs Dtc_WideTensor:$merged, Dtc_WideTensor:$merged_lse);
  let assemblyFormat = [{
    $out `,` $lse `,` $part `,` $part_lse attr-dict `:` functional-type(operands, results)
  }];
}

def Dtc_CrossEntropyOp : Dtc_Op<"cross_entropy", [
    Dtc_InferType, Dtc_Sharded<["decompose"]>, Dtc_Kernel<>, Dtc_Differentiable]> {
  let summary = "-log softmax(logits)[label]";
  let description = [{
    `logits F[...,v], labels i32[...] -> loss W[...], lse W[...]`. lse = log(sum(exp(logits))) over
    v, loss = lse - (1 - label_smoothing) logits[label] - label_smoothing mean(logits), where a
    label outside [0, v) has a logit of 0. Both results have gradients: that of lse serves a z-loss.

    Source of label smoothing: Szegedy et al., "Rethinking the Inception Architecture"
    (arXiv:1512.00567), section 7.

    ```mlir
    %loss, %lse = dtc.cross_entropy %logits, %labels
        : (tensor<16x128x256xf32>, tensor<16x128xi32>) -> (tensor<16x128xf32>, tensor<16x128xf32>)
    ```

    Constraints:

    - [cross_entropy-c1] `label_smoothing` is at least 0 and less than 1.
    - [cross_entropy-c2] The shape of the logits without the last dimension is that of the labels.
  }];
  let arguments = (ins Dtc_FloatTensor:$logits, Dtc_IndexTensor:$labels,
                       DefaultValuedAttr<Dtc_F64Attr, "0.0">:$label_smoothing);
  let extraClassDeclaration = Dtc_LowPrecision<>.declaration;
  let results = (outs Dtc_WideTensor:$loss, Dtc_WideTensor:$lse);
  let assemblyFormat = "$logits `,` $labels attr-dict `:` functional-type(operands, results)";
}

def Dtc_CrossEntropyGradOp : Dtc_Op<"cross_entropy_grad", [
    Dtc_Kernel<>, Dtc_InferType, Dtc_Sharded<>]> {
  let summary = "The gradient of cross_entropy by its loss";
  let description = [{
    `logits F[...,v], labels i32[...], lse W[...], dloss W[...] -> dlogits F[...,v]`. dlogits =
    (exp(logits - lse) - (1 - label_smoothing) onehot(label) - label_smoothing / classes) dloss.
    `classes` is the whole number of classes, v if it is absent. Needs no other element of the row
    than its own, so v can be sharded.

    Constraints:

    - [cross_entropy_grad-c1] `label_smoothing` is at least 0 and less than 1.
    - [cross_entropy_grad-c2] The shape of the logits without the last dimension is that of the
      labels.
    - [cross_entropy_grad-c3] `lse` and `dloss` have the shape of the labels and the wide type of
      the elements of the logits.
  }];
  let arguments = (ins Dtc_FloatTensor:$logits, Dtc_IndexTensor:$labels, Dtc_WideTensor:$lse,
                       Dtc_WideTensor:$dloss,
                       DefaultValuedAttr<Dtc_F64Attr, "0.0">:$label_smoothing,
                       OptionalAttr<I64Attr>:$classes);
  let extraClassDeclaration = Dtc_LowPrecision<"operand == 2 || operand == 3">.declaration;
  let results = (outs Dtc_FloatTensor:$dlogits);
  let assemblyFormat =
      "$logits `,` $labels `,` $lse `,` $dloss attr-dict `:` functional-type(operands, results)";
}

#endif // DTC_DIALECTS_DTC_DTCFUSEDOPS_TD
