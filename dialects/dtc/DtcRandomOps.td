//===- DtcRandomOps.td - Random masks -------------------------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_DTCRANDOMOPS_TD
#define DTC_DIALECTS_DTC_DTCRANDOMOPS_TD

include "dialects/dtc/DtcOpBase.td"

def Dtc_DropoutOp : Dtc_Op<"dropout", [
    Dtc_Kernel<>, Dtc_InferType, Dtc_Sharded<>, Dtc_Differentiable]> {
  let summary = "Zeroes elements at random";
  let description = [{
    `x F[s], key i32[2] -> F[s]`. Each element is 0 with probability `rate`, else x / (1 - rate).
    Whether an element is dropped is a function of the `key` (the run's seed and a number of the
    iteration), of `number`, in which the random ops of a model differ, and of the element's place
    in the whole tensor: not of how the tensor is sharded or cut into microbatches. So the gradient,
    the same op on dy, draws the same mask, as does an op that is recomputed. docs/kernels.md
    has the function.

    A shard of the op has the attributes `shape`, the shape of the whole tensor, and `sharding`, for
    each of its dimensions the mesh axes that split it, joined by commas.

    Source: Srivastava et al., "Dropout" (JMLR 15, 2014), scaled while training.

    ```mlir
    %y = dtc.dropout %x, %key {number = 3, rate = 1.0e-1}
        : (tensor<16x128x64xf32>, tensor<2xi32>) -> tensor<16x128x64xf32>
    ```

    Constraints:

    - [dropout-c1] `rate` is at least 0 and less than 1.
    - [dropout-c2] `key` has the type i32[2].
  }];
  let arguments = (ins Dtc_FloatTensor:$operand, Dtc_IndexTensor:$key, Dtc_F64Attr:$rate,
                       I64Attr:$number, OptionalAttr<DenseI64ArrayAttr>:$shape,
                       OptionalAttr<StrArrayAttr>:$sharding);
  let results = (outs Dtc_FloatTensor:$result);
  let assemblyFormat = "$operand `,` $key attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{
    ::mlir::DictionaryAttr getKernelAttributes();
  }];
}

#endif // DTC_DIALECTS_DTC_DTCRANDOMOPS_TD
