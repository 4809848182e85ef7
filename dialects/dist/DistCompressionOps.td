//===- DistCompressionOps.td - Ops of compressed gradients --*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DIST_DISTCOMPRESSIONOPS_TD
#define DTC_DIALECTS_DIST_DISTCOMPRESSIONOPS_TD

include "dialects/dist/DistDialect.td"
include "dialects/dtc/DtcInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Dist_WideTensor : StaticShapeTensorOf<[F32, F64]>;
def Dist_WordTensor : StaticShapeTensorOf<[I32]>;
def Dist_UniformTensor : StaticShapeTensorOf<[F32]>;

/// An op between a tensor of floats and blocks of its elements as integers.
class Dist_BlocksOp<string mnemonic>
    : Op<Dist_Dialect, mnemonic, [Pure, DeclareOpInterfaceMethods<Dtc_KernelOpInterface>]> {
  let hasVerifier = 1;
}

def Dist_QuantizeBlocksOp : Dist_BlocksOp<"quantize_blocks"> {
  let summary = "Blocks of elements as integers with a scale";
  let description = [{
    `W[s] -> i32[parts * blocks, words]`. Dimension `dim` is divided into `parts` equal parts. The elements of each
    part, in row-major order, are divided into blocks of `block` consecutive elements; the last block of a part may
    have fewer. With L = 2^(bits - 1) - 1, a block x has the scale s = max |x| / L, rounded to f32, and its elements
    are the integers q = round(x / s), ties to even, limited to [-L, L]; with `noise` u, they are q = floor(x / s + u),
    limited to [-L, L], which is x / s on average where u is evenly distributed on [0, 1). A block that holds an infinity or a NaN has
    a NaN as its scale and zeros as its integers. A scale below the least normal number of f32 is zero, and so are the
    integers of its block.

    Word 0 of a row has the bits of the scale. The integers follow, from the low bits of word 1 on, in `bits` bits
    each as two's complement; what is left of the last word is zero.

    Source: a scale for each block is that of Dettmers et al., "8-bit Optimizers via Block-wise Quantization"
    (arXiv:2110.02861), section 2.1; the integers are those of linear symmetric quantization, stochastic rounding is that
    of Alistarh et al., "QSGD" (arXiv:1610.02132), section 3.1.

    ```mlir
    %q = dist.quantize_blocks %x {bits = 8, block = 64, dim = 0, parts = 2}
        : (tensor<256xf32>) -> tensor<4x17xi32>
    %r = dist.quantize_blocks %x noise %u {bits = 8, block = 64, dim = 0, parts = 2}
        : (tensor<256xf32>, tensor<256xf32>) -> tensor<4x17xi32>
    ```

    Constraints:

    - [quantize_blocks-c1] `bits` is 4 or 8.
    - [quantize_blocks-c2] `block` is at least 1 and at most 2^20.
    - [quantize_blocks-c3] `dim` is a dimension of the tensor of floats.
    - [quantize_blocks-c4] `parts` is at least 1 and divides the size of dimension `dim`.
    - [quantize_blocks-c5] The result has a row for each block and in it a word for the scale and those of the
      integers.
    - [quantize_blocks-c6] `noise` has the shape of the tensor of floats.
  }];
  let arguments = (ins Dist_WideTensor:$input, Optional<Dist_UniformTensor>:$noise, I64Attr:$bits, I64Attr:$block,
                       I64Attr:$dim, I64Attr:$parts);
  let results = (outs Dist_WordTensor:$result);
  let assemblyFormat = "$input (`noise` $noise^)? attr-dict `:` functional-type(operands, results)";
}

def Dist_DequantizeBlocksOp : Dist_BlocksOp<"dequantize_blocks"> {
  let summary = "The elements that blocks of integers stand for";
  let description = [{
    `i32[parts * blocks, words] -> W[s]`. The products of the integers of each block and its scale, at the places from
    which `dist.quantize_blocks` with the same attributes has taken them. A block whose scale is a NaN is NaNs.

    ```mlir
    %x = dist.dequantize_blocks %q {bits = 8, block = 64, dim = 0, parts = 2}
        : (tensor<4x17xi32>) -> tensor<256xf32>
    ```

    Constraints:

    - [dequantize_blocks-c1] `bits` is 4 or 8.
    - [dequantize_blocks-c2] `block` is at least 1 and at most 2^20.
    - [dequantize_blocks-c3] `dim` is a dimension of the tensor of floats.
    - [dequantize_blocks-c4] `parts` is at least 1 and divides the size of dimension `dim`.
    - [dequantize_blocks-c5] The operand has a row for each block and in it a word for the scale and those of the
      integers.
  }];
  let arguments = (ins Dist_WordTensor:$input, I64Attr:$bits, I64Attr:$block, I64Attr:$dim, I64Attr:$parts);
  let results = (outs Dist_WideTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type($input, $result)";
}

def Dist_RandomUniformOp : Op<Dist_Dialect, "random_uniform", [
    Pure, DeclareOpInterfaceMethods<Dtc_KernelOpInterface, ["getKernelAttributes"]>]> {
  let summary = "Random numbers for the elements of a shard";
  let description = [{
    `key i32[2] -> f32[s]`. Numbers that are evenly distributed on [0, 1), multiples of 2^-24. The number of an element is
    a function of the `key` (the run's seed and a number of the iteration), of `number`, in which ops differ, and of the
    element's place in the whole tensor: not of how the tensor is sharded. docs/kernels.md has the function. `shape` is
    the shape of the whole tensor, and `sharding` has for each of its dimensions the mesh axes that split it, joined by
    commas, as for `dtc.dropout`.

    Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).

    ```mlir
    %u = dist.random_uniform %key {number = 7, shape = array<i64: 8, 6>, sharding = ["", "tp"]}
        : (tensor<2xi32>) -> tensor<8x3xf32>
    ```

    Constraints:

    - [random_uniform-c1] `key` has the type i32[2].
    - [random_uniform-c2] `shape` and `sharding` have an entry for each dimension of the result.
    - [random_uniform-c3] `number` fits an unsigned 32-bit word.
  }];
  let arguments = (ins Dist_WordTensor:$key, I64Attr:$number, DenseI64ArrayAttr:$shape, StrArrayAttr:$sharding);
  let results = (outs Dist_UniformTensor:$result);
  let assemblyFormat = "$key attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // DTC_DIALECTS_DIST_DISTCOMPRESSIONOPS_TD
