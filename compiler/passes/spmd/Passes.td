//===- Passes.td - The pass that partitions functions -------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_SPMD_PASSES_TD
#define DTC_COMPILER_PASSES_SPMD_PASSES_TD

include "mlir/Pass/PassBase.td"

def SpmdPartitionPass : Pass<"dtc-spmd-partition", "::mlir::ModuleOp"> {
  let summary = "Partition the global view into the local view";
  let description = [{
    Gives every value its local shape, turns each `dist.reshard` into collectives, shifts indices into sharded factors
    to the start of the shard, and moves the ops that run once for each microbatch into a `dist.microbatch_loop`. A
    function in which the computation of a microbatch needs the result of a sum over microbatches is refused, with the
    op named.

    Where a function has `dist.sum_batches`, the loop may run again, for further batches of the same step, and its sums
    are then over all of them. A `dist.sum_batches` of what is computed after the loop becomes one of what the loop
    sums: the ops in between must be linear, and what they add that is the same for all batches is multiplied by the
    number of batches. A gradient without `dist.sum_batches` must be what the loop sums. With `accumulates` a function
    for which that cannot be done is refused. Without it, a loop over several microbatches then runs for one batch, and
    the module says why in `dist.one_batch`; a loop over one microbatch always does, and refuses nothing.

    ```mlir
    // Before
    dist.mesh @mesh <"dp"=2, "micro"=2 temporal>
    func.func @loss(%x: tensor<8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"} ]>})
        -> (tensor<f32> {dtc.output = "y", dist.sharding = #dist.sharding<@mesh, []>}) {
      %0 = dtc.reduce sum %x dims [0] {dist.sharding = #dist.sharding<@mesh, [], partial = sum{"dp", "micro"}>}
        : (tensor<8xf32>) -> tensor<f32>
      %1 = dist.reshard %0 from <@mesh, [], partial = sum{"dp", "micro"}> to <@mesh, []>
        {dist.sharding = #dist.sharding<@mesh, []>} : tensor<f32>
      return %1 : tensor<f32>
    }
    // After
    dist.mesh @mesh <"dp"=2, "micro"=2 temporal>
    func.func @loss(%x: tensor<4xf32> {dtc.input = "x", dtc.global_shape = array<i64: 8>,
                                       dist.sharding = #dist.sharding<@mesh, [{"dp"} ]>})
        -> (tensor<f32> {dtc.output = "y", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>}) {
      %0 = dist.microbatch_loop @mesh "micro" : tensor<f32> {
        %2 = dist.shard_slice %x dim 0 over @mesh ["micro"] : (tensor<4xf32>) -> tensor<2xf32>
        %3 = dtc.reduce sum %2 dims [0] : (tensor<2xf32>) -> tensor<f32>
        dist.yield %3 : tensor<f32>
      }
      %1 = dist.all_reduce sum %0 over @mesh ["dp"] : tensor<f32>
      return %1 : tensor<f32>
    }
    ```
  }];
  let dependentDialects = ["::dtc::dist::DistDialect"];
  let options = [
    Option<"accumulates", "accumulates", "bool", "false",
      "the loop has to run for several batches, also a loop over one microbatch">,
  ];
}

#endif // DTC_COMPILER_PASSES_SPMD_PASSES_TD
