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
}

#endif // DTC_COMPILER_PASSES_SPMD_PASSES_TD
