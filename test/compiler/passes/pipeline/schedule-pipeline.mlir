// RUN: dtc-opt %s --split-input-file --dtc-schedule-pipeline | FileCheck %s

// Functions are numbered like the devices. Each has the arguments that its ops read, and names, initializers and shardings
// stay with them. Values that no stage owns are made by each fragment that needs them: the slice of the data twice on
// device 0.
// CHECK-LABEL: func.func @step.0(
// CHECK-SAME: %[[X:[^:]*]]: tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{"micro"}]>, dtc.input = "x"}
// CHECK-SAME: %[[W:[^:]*]]: tensor<4xf32> {dtc.init = #dtc.zeros, dtc.param = "w"}
// CHECK-SAME: -> (tensor<4xf32> {dtc.output = "grad:w"}) attributes {dist.pipeline = {schedule = "1f1b", stages = 2 : i64}} {
// CHECK-NEXT: %[[SUM:.*]] = dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: {{.*}}>} : tensor<4xf32> {
// CHECK-NEXT: %[[F:.*]] = dist.fragment forward 0 -> tensor<4xf32> {
// CHECK-NEXT: %[[PART:.*]] = dist.shard_slice %[[X]] dim 0 over @mesh ["micro"]
// CHECK-NEXT: %[[EXP:.*]] = dtc.exp %[[PART]] : tensor<4xf32>
// CHECK-NEXT: %[[MUL:.*]] = dtc.mul %[[EXP]], %[[W]] : tensor<4xf32>
// CHECK-NEXT: dist.yield %[[MUL]] : tensor<4xf32>
// CHECK-NEXT: }
// CHECK-NEXT: dist.send %[[F]] to 1 channel 0 : tensor<4xf32>
// CHECK-NEXT: %[[IN:.*]]:2 = dist.receive from 1 channel 1 : tensor<f32>, tensor<4xf32>
// CHECK-NEXT: %[[B:.*]] = dist.fragment backward 0 -> tensor<4xf32> {
// CHECK-NEXT: %[[ROWS:.*]] = dtc.broadcast %[[IN]]#0 dims []
// CHECK-NEXT: %[[PART:.*]] = dist.shard_slice %[[X]] dim 0 over @mesh ["micro"]
// CHECK-NEXT: %[[EXP:.*]] = dtc.exp %[[PART]] : tensor<4xf32>
// CHECK-NEXT: %[[MUL:.*]] = dtc.mul %[[IN]]#1, %[[EXP]] : tensor<4xf32>
// CHECK-NEXT: %[[ADD:.*]] = dtc.add %[[MUL]], %[[ROWS]] : tensor<4xf32>
// CHECK-NEXT: dist.yield %[[ADD]] : tensor<4xf32>
// CHECK-NEXT: }
// CHECK-NEXT: dist.yield %[[B]] : tensor<4xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[SUM]] : tensor<4xf32>

// Two values that stage 0 needs go in one message. The gradients' seed is made where it is used.
// CHECK-LABEL: func.func @step.1(
// CHECK-SAME: %[[V:[^:]*]]: tensor<4xf32> {dtc.param = "v"}) -> (tensor<f32> {dtc.output = "loss"}) attributes
// CHECK-NEXT: %[[SUM:.*]] = dist.microbatch_loop
// CHECK-NEXT: %[[IN:.*]] = dist.receive from 0 channel 0 : tensor<4xf32>
// CHECK-NEXT: %[[F:.*]] = dist.fragment forward 1 -> tensor<f32> {
// CHECK-NEXT: %[[MUL:.*]] = dtc.mul %[[IN]], %[[V]]
// CHECK-NEXT: %[[LOSS:.*]] = dtc.reduce sum %[[MUL]]
// CHECK-NEXT: dist.yield %[[LOSS]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[B:.*]]:2 = dist.fragment backward 1 -> tensor<f32>, tensor<4xf32> {
// CHECK-NEXT: %[[ONES:.*]] = dtc.constant dense<1.000000e+00>
// CHECK-NEXT: %[[MUL:.*]] = dtc.mul %[[ONES]], %[[V]]
// CHECK-NEXT: %[[MEAN:.*]] = dtc.reduce sum %[[IN]]
// CHECK-NEXT: dist.yield %[[MEAN]], %[[MUL]] : tensor<f32>, tensor<4xf32>
// CHECK-NEXT: }
// CHECK-NEXT: dist.send %[[B]]#0, %[[B]]#1 to 0 channel 1 : tensor<f32>, tensor<4xf32>
// CHECK-NEXT: dist.yield %[[F]] : tensor<f32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[SUM]] : tensor<f32>
// CHECK-NOT: func.func
dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
func.func @step(%x: tensor<8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"micro"}]>}, %w: tensor<4xf32> {dtc.param = "w", dtc.init = #dtc.zeros},
                %v: tensor<4xf32> {dtc.param = "v"}) -> (tensor<f32> {dtc.output = "loss"}, tensor<4xf32> {dtc.output = "grad:w"}) {
  %0:2 = dist.microbatch_loop @mesh "micro" : tensor<f32>, tensor<4xf32> {
    %1 = dist.shard_slice %x dim 0 over @mesh ["micro"] : (tensor<8xf32>) -> tensor<4xf32>
    %2 = dtc.exp %1 : tensor<4xf32>
    %3 = dtc.mul %2, %w {dist.stage = #dist.stage<0 forward>} : tensor<4xf32>
    %4 = dtc.mul %3, %v {dist.stage = #dist.stage<1 forward>} : tensor<4xf32>
    %loss = dtc.reduce sum %4 dims [0] {dist.stage = #dist.stage<1 forward>} : (tensor<4xf32>) -> tensor<f32>
    %5 = dtc.constant dense<1.0> : tensor<4xf32>
    %6 = dtc.mul %5, %v {dist.stage = #dist.stage<1 backward>} : tensor<4xf32>
    %7 = dtc.reduce sum %3 dims [0] {dist.stage = #dist.stage<1 backward>} : (tensor<4xf32>) -> tensor<f32>
    // A broadcast without a stage belongs to the stage of those who use it, as it makes its operand larger.
    %8 = dtc.broadcast %7 dims [] : (tensor<f32>) -> tensor<4xf32>
    %9 = dtc.mul %6, %2 {dist.stage = #dist.stage<0 backward>} : tensor<4xf32>
    %10 = dtc.add %9, %8 {dist.stage = #dist.stage<0 backward>} : tensor<4xf32>
    dist.yield %loss, %10 : tensor<f32>, tensor<4xf32>
  }
  return %0#0, %0#1 : tensor<f32>, tensor<4xf32>
}

// -----

// A value that skips a stage does not pass through it: device 0 sends it to 1 and to 2. Collectives of a stage stay in it,
// and one that makes a value smaller is where the value is, so that less is sent.
// CHECK-LABEL: func.func @skip.0(
// CHECK: %[[F:.*]]:2 = dist.fragment forward 0 -> tensor<4xf32>, tensor<2xf32> {
// CHECK: dist.reduce_scatter
// CHECK: dist.send %[[F]]#0 to 1 channel 0 : tensor<4xf32>
// CHECK-NEXT: dist.send %[[F]]#1 to 2 channel 1 : tensor<2xf32>
// CHECK-NEXT: }
// CHECK-LABEL: func.func @skip.1(
// CHECK: dist.receive from 0 channel 0 : tensor<4xf32>
// CHECK: %[[F:.*]] = dist.fragment forward 1 -> tensor<2xf32> {
// CHECK: dist.reduce_scatter
// CHECK: dist.send %[[F]] to 2 channel 2 : tensor<2xf32>
// CHECK-NEXT: }
// CHECK-LABEL: func.func @skip.2(
// CHECK: %[[A:.*]] = dist.receive from 0 channel 1 : tensor<2xf32>
// CHECK-NEXT: %[[B:.*]] = dist.receive from 1 channel 2 : tensor<2xf32>
// CHECK-NEXT: dist.fragment forward 2 -> tensor<4xf32> {
// CHECK-NEXT: dtc.add %[[B]], %[[A]]
// CHECK-NEXT: dist.all_gather
dist.mesh @mesh <"tp"=2, "pp"=3 pipeline, "micro"=2 temporal>
func.func @skip(%x: tensor<4xf32> {dtc.input = "x"}) -> (tensor<4xf32> {dtc.output = "y"}) {
  %0 = dist.microbatch_loop @mesh "micro" : tensor<4xf32> {
    %1 = dtc.exp %x {dist.stage = #dist.stage<0 forward>} : tensor<4xf32>
    %2 = dtc.exp %1 {dist.stage = #dist.stage<1 forward>} : tensor<4xf32>
    %3 = dist.reduce_scatter sum %1 dim 0 over @mesh ["tp"] : (tensor<4xf32>) -> tensor<2xf32>
    %4 = dist.reduce_scatter sum %2 dim 0 over @mesh ["tp"] : (tensor<4xf32>) -> tensor<2xf32>
    %5 = dtc.add %4, %3 {dist.stage = #dist.stage<2 forward>} : tensor<2xf32>
    %6 = dist.all_gather %5 dim 0 over @mesh ["tp"] : (tensor<2xf32>) -> tensor<4xf32>
    dist.yield %6 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// A gather for one other stage is in that stage: its operand is sent. A gather for several stages is in its own stage.
// CHECK-LABEL: func.func @gathers.0(
// CHECK: %[[F:.*]]:2 = dist.fragment forward 0 -> tensor<2xf32>, tensor<4xf32> {
// A value has the same number wherever it is sent and received.
// CHECK: dist.send %[[F]]#0, %[[F]]#1 to 1 channel 0 : tensor<2xf32>, tensor<4xf32> as [0, 1]
// CHECK: dist.send %[[F]]#1 to 2 channel 1 : tensor<4xf32> as [1]
// CHECK-LABEL: func.func @gathers.1(
// CHECK: %[[IN:.*]]:2 = dist.receive from 0 channel 0 : tensor<2xf32>, tensor<4xf32> as [0, 1]
// CHECK: dist.all_gather %[[IN]]#0
dist.mesh @mesh <"tp"=2, "pp"=3 pipeline, "micro"=2 temporal>
func.func @gathers(%x: tensor<2xf32> {dtc.input = "x"}) -> (tensor<4xf32> {dtc.output = "y"}) {
  %0 = dist.microbatch_loop @mesh "micro" : tensor<4xf32> {
    %1 = dtc.exp %x {dist.stage = #dist.stage<0 forward>} : tensor<2xf32>
    %2 = dtc.neg %x {dist.stage = #dist.stage<0 forward>} : tensor<2xf32>
    %3 = dist.all_gather %1 dim 0 over @mesh ["tp"] : (tensor<2xf32>) -> tensor<4xf32>
    %4 = dist.all_gather %2 dim 0 over @mesh ["tp"] : (tensor<2xf32>) -> tensor<4xf32>
    %5 = dtc.mul %3, %4 {dist.stage = #dist.stage<1 forward>} : tensor<4xf32>
    %6 = dtc.mul %5, %4 {dist.stage = #dist.stage<2 forward>} : tensor<4xf32>
    dist.yield %6 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// A pipeline of one device is a program with a schedule. A function without a body stays as it is.
// CHECK-LABEL: func.func @one.0(
// CHECK: dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, 0, 0, 1>}
// CHECK: func.func private @elsewhere(tensor<4xf32>)
dist.mesh @mesh <"pp"=1 pipeline, "micro"=2 temporal>
func.func @one(%x: tensor<4xf32> {dtc.input = "x"}) -> (tensor<4xf32> {dtc.output = "y"}) {
  %0 = dist.microbatch_loop @mesh "micro" : tensor<4xf32> {
    %1 = dtc.exp %x {dist.stage = #dist.stage<0 forward>} : tensor<4xf32>
    dist.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
func.func private @elsewhere(tensor<4xf32>)

// -----

// Without a pipeline nothing changes.
// CHECK-LABEL: func.func @none(
// CHECK: dist.microbatch_loop @mesh "micro" : tensor<4xf32> {
dist.mesh @mesh <"dp"=2, "micro"=2 temporal>
func.func @none(%x: tensor<4xf32> {dtc.input = "x"}) -> (tensor<4xf32> {dtc.output = "y"}) {
  %0 = dist.microbatch_loop @mesh "micro" : tensor<4xf32> {
    %1 = dtc.exp %x : tensor<4xf32>
    dist.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
