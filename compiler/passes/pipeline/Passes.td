//===- Passes.td - Passes about pipelines ------------------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_PIPELINE_PASSES_TD
#define DTC_COMPILER_PASSES_PIPELINE_PASSES_TD

include "mlir/Pass/PassBase.td"

def PartitionStagesPass : Pass<"dtc-partition-stages", "::mlir::ModuleOp"> {
  let summary = "Partition a function into pipeline stages";
  let description = [{
    Gives each op that works on a microbatch a `dist.stage`: its stage, and whether it runs in the forward pass or in
    the backward pass. The ops of the loss, in their order, are cut into `chunks` stages for each device of the mesh's
    pipeline axis. The cuts are those for which the slowest stage takes the least time. The time of a stage is that of
    its ops with their gradients, and that of the link for the values that cross its ends: at most 2% of the mean stage,
    since messages overlap with computation. Of all such cuts, those are taken that send the fewest bytes. Ops of the
    backward pass follow the op whose gradients they compute (`dtc.gradient_of`).

    Without a pipeline axis there is one stage, and the result says which ops run in the forward pass and which in the
    backward pass.

    An op that does not work on a microbatch has no stage: it runs once a step, on each device that needs its result. So
    do the sums of the gradients of a parameter that several stages use.

    With `stages` the user gives the stages: for each stage, separated by `|`, names of layers and ranges of them,
    separated by commas, such as `wte,h.0-h.3|h.4-h.7,ln_f`. Ops of layers that are not named belong to the stage of the
    op before them.

    The ops of a function that has no backward pass may be numbered (`dtc.op`). Then `dist.stage_starts` of the function
    has the number of the first op of each stage but the first. With these numbers as `starts`, another function that
    was made from the same model is cut at the same places.

    ```mlir
    // Before
    dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
    func.func @loss(%x: tensor<4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"micro"} ]>})
        -> (tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{"micro"} ]>}) {
      %0 = dtc.exp %x {dist.sharding = #dist.sharding<@mesh, [{"micro"} ]>} : tensor<4xf32>
      %1 = dtc.tanh %0 {dist.sharding = #dist.sharding<@mesh, [{"micro"} ]>} : tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    // After
    dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
    func.func @loss(%x: tensor<4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"micro"} ]>})
        -> (tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{"micro"} ]>}) {
      %0 = dtc.exp %x {dist.sharding = #dist.sharding<@mesh, [{"micro"} ]>,
                       dist.stage = #dist.stage<0 forward>} : tensor<4xf32>
      %1 = dtc.tanh %0 {dist.sharding = #dist.sharding<@mesh, [{"micro"} ]>,
                        dist.stage = #dist.stage<1 forward>} : tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    ```
  }];
  let options = [
    Option<"chunks", "chunks", "int64_t", "1", "stages of one device">,
    Option<"stages", "stages", "std::string", "\"\"", "the layers of each stage">,
    ListOption<"starts", "starts", "int64_t", "the number of the first op of each stage but the first">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def SchedulePipelinePass : Pass<"dtc-schedule-pipeline", "::mlir::ModuleOp"> {
  let summary = "Create and schedule the functions of a pipeline's devices";
  let description = [{
    From the local view of the whole function, whose ops have a `dist.stage`, makes a function for each coordinate on
    the pipeline axis. Its microbatch loop holds a `dist.fragment` for each forward, backward or weight pass over a
    stage of the device, and a `dist.send` or `dist.receive` for each value that another device needs or makes. An op
    without a stage is copied to where its result is needed; but an op that runs once a step and whose result is smaller
    than its operands runs in one place, and the result is sent.

    The order of the fragments follows from the schedule rule: `naive` (one microbatch at a time), `gpipe` (Huang et al.
    2019), `1f1b` and `interleaved` (Narayanan et al. 2021, section 2.2), `zb-h1` (Qi et al. 2023) and `zb-v` (Qi et al.
    2024). The last two run the weight pass, the part of the backward pass that no other stage waits for, when a device
    has nothing better to do. A receive is posted so early that no send has to wait for it, if ops take as long as
    estimated; the order cannot deadlock, whatever they take.

    ```mlir
    // dtc-opt --dtc-schedule-pipeline=schedule=gpipe
    // Before
    dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
    func.func @loss(%x: tensor<4xf32> {dtc.input = "x"}) -> (tensor<4xf32> {dtc.output = "y"}) {
      %0 = dist.microbatch_loop @mesh "micro" : tensor<4xf32> {
        %1 = dtc.exp %x {dist.stage = #dist.stage<0 forward>} : tensor<4xf32>
        %2 = dtc.neg %1 {dist.stage = #dist.stage<1 forward>} : tensor<4xf32>
        dist.yield %2 : tensor<4xf32>
      }
      return %0 : tensor<4xf32>
    }
    // After
    dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
    func.func @loss.0(%x: tensor<4xf32> {dtc.input = "x"})
        attributes {dist.pipeline = {schedule = "gpipe", stages = 2}} {
      dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, 0, 0, 1, 1, 0, 1, 1>} {
        %0 = dist.fragment forward 0 -> tensor<4xf32> {
          %1 = dtc.exp %x : tensor<4xf32>
          dist.yield %1 : tensor<4xf32>
        }
        dist.send %0 to 1 channel 0 : tensor<4xf32> as [0]
      }
      return
    }
    func.func @loss.1() -> (tensor<4xf32> {dtc.output = "y"})
        attributes {dist.pipeline = {schedule = "gpipe", stages = 2}} {
      %0 = dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, 0, 0, 1, 1, 0, 1, 1>}
          : tensor<4xf32> {
        %1 = dist.receive from 0 channel 0 : tensor<4xf32> as [0]
        %2 = dist.fragment forward 1 -> tensor<4xf32> {
          %3 = dtc.neg %1 : tensor<4xf32>
          dist.yield %3 : tensor<4xf32>
        }
        dist.yield %2 : tensor<4xf32>
      }
      return %0 : tensor<4xf32>
    }
    ```

    The `schedule` of a loop is a list of pairs: the number of an op of the loop, and a microbatch. The numbers after `as`
    identify the values that are sent.
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", "\"1f1b\"", "naive, gpipe, 1f1b, interleaved, zb-h1 or zb-v">,
    Option<"chunks", "chunks", "int64_t", "1", "stages of one device">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

#endif // DTC_COMPILER_PASSES_PIPELINE_PASSES_TD
