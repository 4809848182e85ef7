//===- Passes.td - Passes about parts of one tensor --------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_PARTS_PASSES_TD
#define DTC_COMPILER_PASSES_PARTS_PASSES_TD

include "mlir/Pass/PassBase.td"

def JoinProductsPass : Pass<"dtc-join-products", "::mlir::ModuleOp"> {
  let summary = "Compute products with the parts of one weight as one product";
  let description = [{
    Where a tensor is multiplied by each of the parts that a dimension of a weight has, such as the weights of queries,
    keys and values in GPT-2, one product with the whole weight replaces the products, and their results are slices of
    its result. If a part of one bias is added to each of them, the whole bias is added to the joint product. The
    gradient of the tensor is then one product, too, instead of a sum of several, and so is that of the weight.

    The dimension comes before all those of the weight that the result has, so that each slice is one range in each row
    of the result. `dtc-fold-slices` lets attention read the slices where they lie.

    ```mlir
    // Before
    func.func @loss(%w: tensor<8x2x6xf32> {dtc.param = "w"}, %x: tensor<4x8xf32> {dtc.input = "x"})
        -> (tensor<4x6xf32>, tensor<4x6xf32>) {
      %0 = dtc.slice %w offsets [0, 0, 0] sizes [8, 1, 6] : (tensor<8x2x6xf32>) -> tensor<8x1x6xf32>
      %1 = dtc.reshape %0 : (tensor<8x1x6xf32>) -> tensor<8x6xf32>
      %2 = dtc.einsum "sd,de->se" %x, %1 : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
      %3 = dtc.slice %w offsets [0, 1, 0] sizes [8, 1, 6] : (tensor<8x2x6xf32>) -> tensor<8x1x6xf32>
      %4 = dtc.reshape %3 : (tensor<8x1x6xf32>) -> tensor<8x6xf32>
      %5 = dtc.einsum "sd,de->se" %x, %4 : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
      return %2, %5 : tensor<4x6xf32>, tensor<4x6xf32>
    }
    // After
    func.func @loss(%w: tensor<8x2x6xf32> {dtc.param = "w"}, %x: tensor<4x8xf32> {dtc.input = "x"})
        -> (tensor<4x6xf32>, tensor<4x6xf32>) {
      %0 = dtc.einsum "sd,dae->sae" %x, %w : (tensor<4x8xf32>, tensor<8x2x6xf32>) -> tensor<4x2x6xf32>
      %1 = dtc.slice %0 offsets [0, 0, 0] sizes [4, 1, 6] : (tensor<4x2x6xf32>) -> tensor<4x1x6xf32>
      %2 = dtc.reshape %1 : (tensor<4x1x6xf32>) -> tensor<4x6xf32>
      %3 = dtc.slice %0 offsets [0, 1, 0] sizes [4, 1, 6] : (tensor<4x2x6xf32>) -> tensor<4x1x6xf32>
      %4 = dtc.reshape %3 : (tensor<4x1x6xf32>) -> tensor<4x6xf32>
      return %2, %4 : tensor<4x6xf32>, tensor<4x6xf32>
    }
    ```
  }];
  let dependentDialects = ["::dtc::DtcDialect"];
}

def FoldSlicesPass : Pass<"dtc-fold-slices", "::mlir::ModuleOp"> {
  let summary = "Let attention read and write parts of a tensor where they lie";
  let description = [{
    Where the queries, keys and values of an `attention` are slices that follow each other in the rows of one tensor, the
    kernel `joined_attention` reads that tensor instead. Where also the three gradients of an `attention_grad` are
    concatenated in that order and used in no other way, `joined_attention_grad` writes the concatenation. Slices that
    nothing reads any more are left out.

    ```mlir
    // Before
    dist.mesh @mesh <>
    exec.program @loss on @mesh {
      %x = exec.buffer activation : memref<1x4x3x2x8xf32>
      %0 = exec.buffer activation : memref<1x4x1x2x8xf32>
      %q = exec.view %0 : memref<1x4x1x2x8xf32> to memref<1x4x2x8xf32>
      %1 = exec.buffer activation : memref<1x4x1x2x8xf32>
      %k = exec.view %1 : memref<1x4x1x2x8xf32> to memref<1x4x2x8xf32>
      %2 = exec.buffer activation : memref<1x4x1x2x8xf32>
      %v = exec.view %2 : memref<1x4x1x2x8xf32> to memref<1x4x2x8xf32>
      %out = exec.buffer activation : memref<1x4x2x8xf32>
      %lse = exec.buffer activation : memref<1x2x4xf32>
      exec.task @step {
        exec.kernel "slice"(%x) to(%0) {offsets = array<i64: 0, 0, 0, 0, 0>}
          : (memref<1x4x3x2x8xf32>) -> memref<1x4x1x2x8xf32>
        exec.kernel "slice"(%x) to(%1) {offsets = array<i64: 0, 0, 1, 0, 0>}
          : (memref<1x4x3x2x8xf32>) -> memref<1x4x1x2x8xf32>
        exec.kernel "slice"(%x) to(%2) {offsets = array<i64: 0, 0, 2, 0, 0>}
          : (memref<1x4x3x2x8xf32>) -> memref<1x4x1x2x8xf32>
        exec.kernel "attention"(%q, %k, %v) to(%out, %lse) {causal = true, scale = 0.5}
          : (memref<1x4x2x8xf32>, memref<1x4x2x8xf32>, memref<1x4x2x8xf32>)
          -> (memref<1x4x2x8xf32>, memref<1x2x4xf32>)
      }
      exec.run @step
    }
    // After
    dist.mesh @mesh <>
    exec.program @loss on @mesh {
      %x = exec.buffer activation : memref<1x4x3x2x8xf32>
      %rows = exec.view %x : memref<1x4x3x2x8xf32> to memref<1x4x6x8xf32>
      %out = exec.buffer activation : memref<1x4x2x8xf32>
      %lse = exec.buffer activation : memref<1x2x4xf32>
      exec.task @step {
        exec.kernel "joined_attention"(%rows) to(%out, %lse) {causal = true, scale = 0.5}
          : (memref<1x4x6x8xf32>) -> (memref<1x4x2x8xf32>, memref<1x2x4xf32>)
      }
      exec.run @step
    }
    ```
  }];
  let dependentDialects = ["::dtc::exec::ExecDialect", "::mlir::memref::MemRefDialect"];
}

#endif // DTC_COMPILER_PASSES_PARTS_PASSES_TD
