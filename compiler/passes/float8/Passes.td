//===- Passes.td - Passes about operands of 8 bits ---------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_FLOAT8_PASSES_TD
#define DTC_COMPILER_PASSES_FLOAT8_PASSES_TD

include "mlir/Pass/PassBase.td"

def MarkLayerProductsPass : Pass<"dtc-mark-layer-products", "::mlir::ModuleOp"> {
  let summary = "Mark the products that may have operands of 8 bits";
  let description = [{
    Marks each `dtc.einsum` of a tensor and a parameter of at least two dimensions with `dtc.float8`: the products of the
    linear layers. Products that lead to a cross-entropy, a softmax, a choice of the largest or a pick by ops that
    change elements or their places alone are left as they are: logits and routers. So are those that multiply
    separate matrices of a batch. The gradients of a marked product are marked by its vector-Jacobian product.

    Source: Micikevicius et al., "FP8 Formats for Deep Learning" (arXiv:2209.05433), section 3: e4m3 for weights and
    activations, e5m2 for gradients.

    ```mlir
    // Before
    func.func @loss(%w: tensor<4x3xf32> {dtc.param = "w"}, %x: tensor<2x4xf32> {dtc.input = "x"}) -> tensor<2x3xf32> {
      %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
      return %0 : tensor<2x3xf32>
    }
    // After
    func.func @loss(%w: tensor<4x3xf32> {dtc.param = "w"}, %x: tensor<2x4xf32> {dtc.input = "x"}) -> tensor<2x3xf32> {
      %0 = dtc.einsum "bi,io->bo" %x, %w {dtc.float8 = [f8E4M3FN, f8E4M3FN]}
        : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
      return %0 : tensor<2x3xf32>
    }
    ```
  }];
  let dependentDialects = ["::dtc::DtcDialect"];
}

def ScaleProductsPass : Pass<"dtc-scale-products", "::mlir::ModuleOp"> {
  let summary = "Round the operands of marked products to 8 bits";
  let description = [{
    Each `dtc.einsum` with `dtc.float8` becomes a `dist.scaled_product` of operands that `dist.quantize_f8` makes. The
    scale of an operand follows from the largest absolute value of the whole tensor in the microbatch: the maximum over
    the devices that have parts of it, so that the scale does not depend on the layout. A value that several products
    multiply is rounded once. A parameter is rounded once a step, before the loop over microbatches, if ops have no
    stages; else once for each microbatch and pass.

    A product stays in 16 bits, with a remark, if a device's part of it is not m x k times k x n with each of m, n and k
    a multiple of 16 (GPUs compute no others in 8 bits), or if an operand is no longer in 16 bits.

    Along the axis `outer`, replicas train on their own, each with scales of its own.

    Runs in the local view.

    ```mlir
    // Before
    dist.mesh @mesh <"dp"=2>
    func.func @loss(%x: tensor<16x32xbf16>, %w: tensor<32x48xbf16>) -> tensor<16x48xbf16> {
      %0 = dtc.einsum "bi,io->bo" %x, %w {dtc.float8 = [f8E4M3FN, f8E4M3FN], dist.operand_axes = [["dp"], []]}
        : (tensor<16x32xbf16>, tensor<32x48xbf16>) -> tensor<16x48xbf16>
      return %0 : tensor<16x48xbf16>
    }
    // After
    dist.mesh @mesh <"dp"=2>
    func.func @loss(%x: tensor<16x32xbf16>, %w: tensor<32x48xbf16>) -> tensor<16x48xbf16> {
      %0 = dist.largest_magnitude %x : tensor<16x32xbf16>
      %1 = dist.all_reduce max %0 over @mesh ["dp"] : tensor<f32>
      %q, %s = dist.quantize_f8 %x by %1 : tensor<16x32xbf16> -> tensor<16x32xf8E4M3FN>
      %2 = dist.largest_magnitude %w : tensor<32x48xbf16>
      %r, %t = dist.quantize_f8 %w by %2 : tensor<32x48xbf16> -> tensor<32x48xf8E4M3FN>
      %3 = dist.scaled_product "bi,io->bo" %q, %r scales %s, %t
        : (tensor<16x32xf8E4M3FN>, tensor<32x48xf8E4M3FN>) -> tensor<16x48xbf16>
      return %3 : tensor<16x48xbf16>
    }
    ```
  }];
  let options = [
    Option<"outer", "outer", "std::string", "\"\"", "the axis whose replicas train on their own">,
  ];
  let dependentDialects = ["::dtc::DtcDialect", "::dtc::dist::DistDialect"];
}

#endif // DTC_COMPILER_PASSES_FLOAT8_PASSES_TD
