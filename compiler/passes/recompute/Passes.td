//===- Passes.td - The pass about recomputation ------------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_RECOMPUTE_PASSES_TD
#define DTC_COMPILER_PASSES_RECOMPUTE_PASSES_TD

include "mlir/Pass/PassBase.td"

def RecomputeActivationsPass : Pass<"dtc-recompute-activations", "::mlir::ModuleOp"> {
  let summary = "Recompute activations in the backward pass";
  let description = [{
    Copies ops of the forward pass to just before the ops of the backward pass that use their results, instead of saving
    these (Chen et al. 2016). The copies compute with the same operands, so that no bit of the result changes. `mode` is

    * `none`: nothing is recomputed;
    * `gathers`: activations that are gathered from other devices are gathered again, and each device saves the part of
      them that it has (Korthikanti et al. 2022, section 4.2.2);
    * `elementwise`: so are they, and results that are made element by element of one tensor, such as those of activation
      functions, are made again, where that lowers the sum of saved bytes;
    * `selective`: activations are recomputed that cost little for the bytes that need not be saved then (after
      Korthikanti et al. 2022), where that lowers the sum of saved bytes. If some contractions make a large result from
      small operands, as that of the scores of attention does (a result of more bytes than the operands, for fewer than
      a quarter of the FLOPs per byte that the products with parameters take on average), these are recomputed, and the
      ops after each up to the next contraction (section 5). In other models, ops are recomputed that take fewer than
      two FLOPs for each byte that they read or write. Activations that are gathered from other devices are gathered
      again (section 4.2.2). Projections, the other products of a layer and other collectives are not repeated;
    * `full`: only what goes from one layer to another is saved; all else is recomputed, collectives too;
    * `auto`: as little is recomputed as lets a device save at most `keep-bytes`, counting the microbatches that the
      schedule has in flight. What goes from one layer to another is saved. A collective costs the time that it takes.

    Layers are those that locations name; where they name none, the function is cut into about as many parts as each has
    ops.

    In a pipeline the bytes are those of all stages of a device together. Ops need a `dist.stage`, also without a
    pipeline. It runs before `dtc-gather-parameters-per-use`, so that recomputed ops that use sharded parameters gather these
    again.

    A loop over one microbatch that no pipeline needs becomes its body, unless `keep-loop`.

    ```mlir
    // dtc-opt --dtc-recompute-activations=mode=full
    // Before
    dist.mesh @mesh <"micro"=1 temporal>
    func.func @train_step(%x: tensor<4xf32> {dtc.input = "x"}) -> tensor<4xf32> {
      %0 = dist.microbatch_loop @mesh "micro" : tensor<4xf32> {
        %1 = dtc.exp %x {dist.stage = #dist.stage<0 forward>} : tensor<4xf32>
        %2 = dtc.mul %1, %1 {dist.stage = #dist.stage<0 backward>} : tensor<4xf32>
        dist.yield %2 : tensor<4xf32>
      }
      return %0 : tensor<4xf32>
    }
    // After
    dist.mesh @mesh <"micro"=1 temporal>
    func.func @train_step(%x: tensor<4xf32> {dtc.input = "x"}) -> tensor<4xf32> {
      %0 = dtc.exp %x {dist.stage = #dist.stage<0 forward>} : tensor<4xf32>
      %1 = dtc.exp %x {dist.stage = #dist.stage<0 backward>} : tensor<4xf32>
      %2 = dtc.mul %1, %1 {dist.stage = #dist.stage<0 backward>} : tensor<4xf32>
      return %2 : tensor<4xf32>
    }
    ```
  }];
  let options = [
    Option<"mode", "mode", "std::string", "\"selective\"", "none, gathers, selective, full or auto">,
    ListOption<"keepBytes", "keep-bytes", "int64_t",
      "the most bytes that each device saves, in the order of coordinates on the pipeline axis; the last holds for "
      "those that follow">,
    Option<"schedule", "schedule", "std::string", "\"1f1b\"", "as for dtc-schedule-pipeline">,
    Option<"chunks", "chunks", "int64_t", "1", "stages of one device">,
    Option<"keepLoop", "keep-loop", "bool", "false",
      "keep a loop over one microbatch, which is repeated for each batch of a step">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

#endif // DTC_COMPILER_PASSES_RECOMPUTE_PASSES_TD
