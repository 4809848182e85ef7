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

def ExpandAttentionSinksPass : Pass<"dtc-expand-attention-sinks", "::mlir::ModuleOp"> {
  let summary = "Compute sinks of attention beside it";
  let description = [{
    Replaces each `dtc.attention` with `sinks` by one without, and corrects its results: with l the lse of the keys alone
    and z the sink of a head, lse = z + log(1 + exp(l - z)), and out is multiplied by sigmoid(l - z), which is
    exp(l - lse). The gradient of attention needs no change: it reads the corrected out and lse.

    It runs after `dtc-spmd-partition` and before `dtc-expand-ring-attention`, which sees attention without sinks.

    ```mlir
    // Before
    func.func @f(%q: tensor<1x4x2x4xf32>, %sinks: tensor<2xf32>) -> tensor<1x4x2x4xf32> {
      %out, %lse = dtc.attention %q, %q, %q sinks %sinks {causal = true, scale = 1.0}
        : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<2xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
      return %out : tensor<1x4x2x4xf32>
    }
    // After
    func.func @f(%q: tensor<1x4x2x4xf32>, %sinks: tensor<2xf32>) -> tensor<1x4x2x4xf32> {
      %out, %l = dtc.attention %q, %q, %q {causal = true, scale = 1.0}
        : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
      %z = dtc.broadcast %sinks dims [1] : (tensor<2xf32>) -> tensor<1x2x4xf32>
      %more = dtc.sub %l, %z : tensor<1x2x4xf32>
      %log = dtc.softplus %more : tensor<1x2x4xf32>
      %lse = dtc.add %z, %log : tensor<1x2x4xf32>
      %share = dtc.sigmoid %more : tensor<1x2x4xf32>
      %rows = dtc.transpose %share permutation [0, 2, 1] : (tensor<1x2x4xf32>) -> tensor<1x4x2xf32>
      %factors = dtc.broadcast %rows dims [0, 1, 2] : (tensor<1x4x2xf32>) -> tensor<1x4x2x4xf32>
      %scaled = dtc.mul %out, %factors : tensor<1x4x2x4xf32>
      return %scaled : tensor<1x4x2x4xf32>
    }
    ```
  }];
  let dependentDialects = ["::dtc::DtcDialect"];
}

def ExpandRingAttentionPass : Pass<"dtc-expand-ring-attention", "::mlir::ModuleOp"> {
  let summary = "Let keys and values go round the devices that share a sequence";
  let description = [{
    Replaces each `dtc.attention` and each gradient with a `key_shift`, whose keys are split as the queries are, by one op
    for each shard of keys that some device sees, `dist.permute`s that hand the shards on, and, for the forward pass,
    `dtc.merge_attention`s. Gradients of keys and values go round with them and then home. Where a window does not reach
    a shard from any device, nobody waits for it.

    It runs after `dtc-spmd-partition` and the CSE that follows: forward and backward send keys and values once each,
    so that nobody keeps those of others in between.

    ```mlir
    // Before
    dist.mesh @mesh <"cp"=2>
    func.func @f(%q: tensor<1x4x2x4xf32>, %k: tensor<1x4x1x4xf32>) -> tensor<1x4x2x4xf32> {
      %out, %lse = dtc.attention %q, %k, %k {causal = true, key_shift = 0, scale = 1.0, sequence = 8, sequence_axes = ["cp"]}
        : (tensor<1x4x2x4xf32>, tensor<1x4x1x4xf32>, tensor<1x4x1x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>) loc("attn")
      return %out : tensor<1x4x2x4xf32>
    }
    // After
    dist.mesh @mesh <"cp"=2>
    func.func @f(%q: tensor<1x4x2x4xf32>, %k: tensor<1x4x1x4xf32>) -> tensor<1x4x2x4xf32> {
      %k1 = dist.permute %k over @mesh ["cp"] from ["cp"] {
        dist.reason = {consumer = "dtc.attention in attn", from = "the device before along {\22cp\22}", remedy = "",
          to = "the next one", value = "a shard of keys or values, on its way round"}, shift = 1 : i64} : tensor<1x4x1x4xf32>
      %v1 = dist.permute %k over @mesh ["cp"] from ["cp"] {
        dist.reason = {consumer = "dtc.attention in attn", from = "the device before along {\22cp\22}", remedy = "",
          to = "the next one", value = "a shard of keys or values, on its way round"}, shift = 1 : i64} : tensor<1x4x1x4xf32>
      %out, %lse = dtc.attention %q, %k, %k {causal = true, key_shift = 0, scale = 1.0, sequence = 8, sequence_axes = ["cp"]}
        : (tensor<1x4x2x4xf32>, tensor<1x4x1x4xf32>, tensor<1x4x1x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
      %out1, %lse1 = dtc.attention %q, %k1, %v1 {causal = true, key_shift = 1, scale = 1.0, sequence = 8, sequence_axes = ["cp"]}
        : (tensor<1x4x2x4xf32>, tensor<1x4x1x4xf32>, tensor<1x4x1x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
      %merged, %mergedLse = dtc.merge_attention %out, %lse, %out1, %lse1
        : (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x2x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
      return %merged : tensor<1x4x2x4xf32>
    }
    ```
  }];
  let dependentDialects = ["::dtc::dist::DistDialect", "::dtc::DtcDialect"];
}

#endif // DTC_COMPILER_PASSES_SPMD_PASSES_TD
