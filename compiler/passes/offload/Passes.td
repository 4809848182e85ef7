//===- Passes.td - Passes about the memory of the host -----*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_OFFLOAD_PASSES_TD
#define DTC_COMPILER_PASSES_OFFLOAD_PASSES_TD

include "mlir/Pass/PassBase.td"

def OffloadActivationsPass : Pass<"dtc-offload-activations", "::mlir::ModuleOp"> {
  let summary = "Keep activations in the memory of the host from the forward to the backward pass";
  let description = [{
    What the forward pass of a stage makes or gets and its backward pass needs is copied to the memory of the host
    after its last use in the forward pass, and copied back ahead of its first use in the backward pass. Values that
    are views or broadcasts of it, or slices that together have at least its bytes, are made again of the copy. Copies
    stand before products, so that one kernel of a GPU can still compute a product and what follows it.

    Copies back start `prefetch` layers ahead: before the first op of the backward pass that needs a value of the layer
    whose backward pass comes that many layers earlier, or, where the stage has none, at the beginning of its backward
    pass. In the last stage nothing comes between the two passes: what the first `prefetch` layers of its backward pass
    need stays on the device. Ops that belong to no layer count to the layer before them; where no location names a
    layer, each value counts as one.

    With a `fraction` below 1, the values that the forward pass makes first are taken, until they have at least that
    fraction of the bytes of all: these have the most time to be back. Values with fewer bytes than 1/256 of the largest
    stay on the device.

    Ops need a `dist.stage`, also without a pipeline. It runs after `dtc-recompute-activations`, whose copies of ops need
    what is still kept, and before `dtc-schedule-pipeline`. A loop over one microbatch that no pipeline needs becomes its
    body, unless `keep-loop`.

    Source: Rhu et al., "vDNN" (arXiv:1602.08124), section 3.

    ```mlir
    // dtc-opt --dtc-offload-activations=prefetch=0
    // Before
    dist.mesh @mesh <"micro"=1 temporal>
    func.func @train_step(%x: tensor<4xf32> {dtc.input = "x"}) -> tensor<4xf32> {
      %0 = dist.microbatch_loop @mesh "micro" : tensor<4xf32> {
        %1 = dtc.exp %x {dist.stage = #dist.stage<0 forward>} : tensor<4xf32>
        %2 = dtc.exp %1 {dist.stage = #dist.stage<0 forward>} : tensor<4xf32>
        %3 = dtc.mul %1, %2 {dist.stage = #dist.stage<0 backward>} : tensor<4xf32>
        dist.yield %3 : tensor<4xf32>
      }
      return %0 : tensor<4xf32>
    }
    // After
    dist.mesh @mesh <"micro"=1 temporal>
    func.func @train_step(%x: tensor<4xf32> {dtc.input = "x"}) -> tensor<4xf32> {
      %0 = dtc.exp %x {dist.stage = #dist.stage<0 forward>} : tensor<4xf32>
      %1 = dtc.exp %0 {dist.stage = #dist.stage<0 forward>} : tensor<4xf32>
      %2 = dist.copy %0 to "host" {dist.stage = #dist.stage<0 forward>} : tensor<4xf32>
      %3 = dist.copy %1 to "host" {dist.stage = #dist.stage<0 forward>} : tensor<4xf32>
      %4 = dist.copy %2 to "device" {dist.stage = #dist.stage<0 backward>} : tensor<4xf32>
      %5 = dist.copy %3 to "device" {dist.stage = #dist.stage<0 backward>} : tensor<4xf32>
      %6 = dtc.mul %4, %5 {dist.stage = #dist.stage<0 backward>} : tensor<4xf32>
      return %6 : tensor<4xf32>
    }
    ```
  }];
  let options = [
    Option<"fraction", "fraction", "double", "1", "the part of the bytes of activations that is kept on the host">,
    Option<"prefetch", "prefetch", "int64_t", "1", "the number of layers by which copies back start ahead">,
    Option<"keepLoop", "keep-loop", "bool", "false",
      "keep a loop over one microbatch, which is repeated for each batch of a step">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

#endif // DTC_COMPILER_PASSES_OFFLOAD_PASSES_TD
