//===- DtcOptimizerOps.td - Parameter updates -----------------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each takes `p, g` and the state's parts, all W[s], scalars of W, and `apply: i1`; it gives the
// new p and the new parts. g' = g grad_scale. If `apply` is false the results are the operands.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_DTCOPTIMIZEROPS_TD
#define DTC_DIALECTS_DTC_DTCOPTIMIZEROPS_TD

include "dialects/dtc/DtcElementwiseOps.td"

class Dtc_OptimizerOp<string mnemonic>
    : Dtc_ElementwiseOp<mnemonic, "", [
        Dtc_InferType, DeclareOpInterfaceMethods<Dtc_OptimizerOpInterface>]> {
  let extraClassDeclaration = Dtc_WidePrecision;
}

/// Optimizers of the family of Adam: two moments, corrected by the number of the step.
class Dtc_AdamFamilyOp<string mnemonic> : Dtc_OptimizerOp<mnemonic> {
  let arguments = (ins Dtc_WideTensor:$p, Dtc_WideTensor:$g, Dtc_WideTensor:$m, Dtc_WideTensor:$v,
                       Dtc_WideTensor:$lr, Dtc_WideTensor:$step, Dtc_WideTensor:$grad_scale,
                       Dtc_MaskTensor:$apply, Dtc_F64Attr:$beta1, Dtc_F64Attr:$beta2,
                       Dtc_F64Attr:$eps, Dtc_F64Attr:$weight_decay);
  let results = (outs Dtc_WideTensor:$new_p, Dtc_WideTensor:$new_m, Dtc_WideTensor:$new_v);
  let assemblyFormat = [{
    $p `,` $g `,` $m `,` $v `,` $lr `,` $step `,` $grad_scale `,` $apply attr-dict
    `:` functional-type(operands, results)
  }];
}

def Dtc_AdamwOp : Dtc_AdamFamilyOp<"adamw"> {
  let summary = "A step of AdamW";
  let description = [{
    m = beta1 m + (1 - beta1) g', v = beta2 v + (1 - beta2) g'^2, p = p - lr weight_decay p - lr (m
    / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + eps). The first step is 1.

    Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization" (arXiv:1711.05101),
    algorithm 2, as PyTorch's AdamW.

    Constraints:

    - [adamw-c1] `g`, `m` and `v` have the type of `p`.
    - [adamw-c2] `lr`, `step` and `grad_scale` are scalars of the element type of `p`.
    - [adamw-c3] `apply` is a scalar.
    - [adamw-c4] `beta1` and `beta2` are at least 0 and less than 1.
    - [adamw-c5] `eps` and `weight_decay` are finite and not negative.
  }];
}

def Dtc_AdamOp : Dtc_AdamFamilyOp<"adam"> {
  let summary = "A step of Adam";
  let description = [{
    As `adamw`, but the decay is a part of the gradient: g' = g grad_scale + weight_decay p, and p =
    p - lr (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + eps).

    Source: Kingma and Ba, "Adam" (arXiv:1412.6980), algorithm 1, as PyTorch's Adam.

    Constraints:

    - [adam-c1] `g`, `m` and `v` have the type of `p`.
    - [adam-c2] `lr`, `step` and `grad_scale` are scalars of the element type of `p`.
    - [adam-c3] `apply` is a scalar.
    - [adam-c4] `beta1` and `beta2` are at least 0 and less than 1.
    - [adam-c5] `eps` and `weight_decay` are finite and not negative.
  }];
}

/// One buffer of momentum.
class Dtc_MomentumOp<string mnemonic, dag settings>
    : Dtc_OptimizerOp<mnemonic> {
  let arguments = !con((ins Dtc_WideTensor:$p, Dtc_WideTensor:$g, Dtc_WideTensor:$m,
                            Dtc_WideTensor:$lr, Dtc_WideTensor:$grad_scale, Dtc_MaskTensor:$apply),
                       settings);
  let results = (outs Dtc_WideTensor:$new_p, Dtc_WideTensor:$new_m);
  let assemblyFormat = [{
    $p `,` $g `,` $m `,` $lr `,` $grad_scale `,` $apply attr-dict
    `:` functional-type(operands, results)
  }];
}

def Dtc_SgdOp : Dtc_MomentumOp<"sgd", (ins Dtc_F64Attr:$momentum, Dtc_F64Attr:$weight_decay)> {
  let summary = "A step of stochastic gradient descent with momentum";
  let description = [{
    With g' = g grad_scale + weight_decay p: m = momentum m + g', p = p - lr m, as PyTorch's SGD.

    Source: Sutskever et al., "On the importance of initialization and momentum in deep learning"
    (ICML 2013), section 2, in the form of PyTorch.

    Constraints:

    - [sgd-c1] `g` and `m` have the type of `p`.
    - [sgd-c2] `lr` and `grad_scale` are scalars of the element type of `p`.
    - [sgd-c3] `apply` is a scalar.
    - [sgd-c4] `momentum` and `weight_decay` are finite and not negative.
  }];
}

def Dtc_LionOp : Dtc_MomentumOp<"lion", (ins Dtc_F64Attr:$beta1, Dtc_F64Attr:$beta2,
                                             Dtc_F64Attr:$weight_decay)> {
  let summary = "A step of Lion";
  let description = [{
    u = sign(beta1 m + (1 - beta1) g'), p = p - lr (u + weight_decay p), m = beta2 m + (1 - beta2)
    g'. The sign of 0 is 0.

    Source: Chen et al., "Symbolic Discovery of Optimization Algorithms" (arXiv:2302.06675),
    algorithm 2.

    Constraints:

    - [lion-c1] `g` and `m` have the type of `p`.
    - [lion-c2] `lr` and `grad_scale` are scalars of the element type of `p`.
    - [lion-c3] `apply` is a scalar.
    - [lion-c4] `beta1` and `beta2` are at least 0 and less than 1.
    - [lion-c5] `weight_decay` is finite and not negative.
  }];
}

#endif // DTC_DIALECTS_DTC_DTCOPTIMIZEROPS_TD
