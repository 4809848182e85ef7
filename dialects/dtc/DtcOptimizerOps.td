//===- DtcOptimizerOps.td - Parameter updates -----------------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_DTCOPTIMIZEROPS_TD
#define DTC_DIALECTS_DTC_DTCOPTIMIZEROPS_TD

include "dialects/dtc/DtcElementwiseOps.td"

def Dtc_AdamwOp : Dtc_ElementwiseOp<"adamw", "", "{0, 0}, {2, 1}, {3, 2}", [Dtc_InferType, DeclareOpInterfaceMethods<Dtc_OptimizerOpInterface>]> {
  let summary = "A step of AdamW";
  let description = [{
    `p, g, m, v: F[s]; lr, step, grad_scale: F scalar -> p, m, v: F[s]`. With g' = g grad_scale: m =
    beta1 m + (1 - beta1) g', v = beta2 v + (1 - beta2) g'^2, p = p - lr weight_decay p - lr (m / (1
    - beta1^step)) / (sqrt(v / (1 - beta2^step)) + eps). The first step is 1.

    Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization" (arXiv:1711.05101),
    algorithm 2, as PyTorch's AdamW.
  }];
  let arguments = (ins Dtc_FloatTensor:$p, Dtc_FloatTensor:$g, Dtc_FloatTensor:$m,
                       Dtc_FloatTensor:$v, Dtc_FloatTensor:$lr, Dtc_FloatTensor:$step,
                       Dtc_FloatTensor:$grad_scale, Dtc_F64Attr:$beta1, Dtc_F64Attr:$beta2,
                       Dtc_F64Attr:$eps, Dtc_F64Attr:$weight_decay);
  let results = (outs Dtc_FloatTensor:$new_p, Dtc_FloatTensor:$new_m, Dtc_FloatTensor:$new_v);
  let assemblyFormat = [{
    $p `,` $g `,` $m `,` $v `,` $lr `,` $step `,` $grad_scale attr-dict
    `:` functional-type(operands, results)
  }];
}

def Dtc_SgdOp : Dtc_ElementwiseOp<"sgd", "", "{0, 0}, {2, 1}", [Dtc_InferType, DeclareOpInterfaceMethods<Dtc_OptimizerOpInterface>]> {
  let summary = "A step of stochastic gradient descent with momentum";
  let description = [{
    `p, g, m: F[s]; lr, grad_scale: F scalar -> p, m: F[s]`. With g' = g grad_scale + weight_decay
    p: m = momentum m + g', p = p - lr m, as PyTorch's SGD.

    Source: Sutskever et al., "On the importance of initialization and momentum in deep learning"
    (ICML 2013), section 2, in the form of PyTorch.
  }];
  let arguments = (ins Dtc_FloatTensor:$p, Dtc_FloatTensor:$g, Dtc_FloatTensor:$m,
                       Dtc_FloatTensor:$lr, Dtc_FloatTensor:$grad_scale, Dtc_F64Attr:$momentum,
                       Dtc_F64Attr:$weight_decay);
  let results = (outs Dtc_FloatTensor:$new_p, Dtc_FloatTensor:$new_m);
  let assemblyFormat = [{
    $p `,` $g `,` $m `,` $lr `,` $grad_scale attr-dict `:` functional-type(operands, results)
  }];
}

#endif // DTC_DIALECTS_DTC_DTCOPTIMIZEROPS_TD
