// RUN: dtc-opt %s --dtc-schedule-pipeline=schedule=naive | FileCheck %s --check-prefix=NAIVE
// RUN: dtc-opt %s --dtc-schedule-pipeline=schedule=gpipe | FileCheck %s --check-prefix=GPIPE
// RUN: dtc-opt %s --dtc-schedule-pipeline=schedule=1f1b | FileCheck %s --check-prefix=1F1B
// RUN: dtc-opt %s --dtc-schedule-pipeline=schedule=zb-h1 | FileCheck %s --check-prefix=ZB-H1
// RUN: dtc-opt %s --dtc-schedule-pipeline | FileCheck %s --check-prefix=1F1B

// The loop's schedule has pairs of the place of an op in its body and a microbatch. The bodies are
//   device 0: 0 forward 0, 1 send to stage 1, 2 receive from it, 3 backward 0
//   device 1: 0 receive from stage 0, 1 forward 1, 2 backward 1, 3 send
// and with ZB-H1
//   device 0: ... 3 weight 0
//   device 1: ... 4 weight 1
// Sends need no time here. Receives start so early that the sender need not wait, and not before there is a reason; sends
// are over two fragments later.

// Naive: a microbatch is through before the next one begins.
// NAIVE-LABEL: func.func @step.0(
// NAIVE-SAME: dist.pipeline = {schedule = "naive", stages = 2 : i64}
// NAIVE: dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 2, 0, 2, 1, 0, 0, 3, 0, 2, 2, 0, 1, 3, 1, 2, 3, 1, 0, 0, 2, 3, 2, 1, 1, 0, 3, 3, 3, 1, 2, 1, 3>}
// NAIVE-LABEL: func.func @step.1(
// NAIVE: dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, 0, 0, 1, 1, 0, 2, 0, 0, 2, 1, 1, 2, 1, 0, 3, 1, 2, 3, 0, 2, 2, 1, 3, 3, 1, 2, 3, 3, 2, 3, 3>}

// GPipe: forward for all, then backward for all. Receives start while forwards run.
// GPIPE-LABEL: func.func @step.0(
// GPIPE-SAME: dist.pipeline = {schedule = "gpipe", stages = 2 : i64}
// GPIPE: dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 2, 0, 2, 1, 0, 0, 0, 1, 1, 0, 0, 2, 1, 1, 0, 3, 3, 0, 2, 2, 3, 1, 2, 3, 3, 2, 3, 3, 1, 2, 1, 3>}
// GPIPE-LABEL: func.func @step.1(
// GPIPE: dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, 0, 0, 1, 0, 2, 0, 3, 1, 0, 1, 1, 1, 2, 1, 3, 2, 0, 2, 1, 3, 0, 2, 2, 3, 1, 2, 3, 3, 2, 3, 3>}

// One forward, one backward: device 0 has two microbatches in flight, device 1 one.
// 1F1B-LABEL: func.func @step.0(
// 1F1B-SAME: dist.pipeline = {schedule = "1f1b", stages = 2 : i64}
// 1F1B: dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 2, 0, 2, 1, 0, 0, 0, 1, 3, 0, 2, 2, 1, 0, 0, 2, 3, 1, 2, 3, 1, 1, 0, 3, 3, 2, 3, 3, 1, 2, 1, 3>}
// 1F1B-LABEL: func.func @step.1(
// 1F1B: dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, 0, 0, 1, 1, 0, 2, 0, 0, 2, 1, 1, 2, 1, 0, 3, 1, 2, 3, 0, 2, 2, 1, 3, 3, 1, 2, 3, 3, 2, 3, 3>}

// Zero bubble, H1: the first device, for which no other one waits, has weights only; the second leaves the last two to the end.
// ZB-H1-LABEL: func.func @step.0(
// ZB-H1-SAME: dist.pipeline = {schedule = "zb-h1", stages = 2 : i64}
// ZB-H1: dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 2, 0, 2, 1, 0, 0, 0, 1, 3, 0, 2, 2, 1, 0, 0, 2, 3, 1, 2, 3, 1, 1, 0, 3, 3, 2, 3, 3, 1, 2, 1, 3>}
// ZB-H1-LABEL: func.func @step.1(
// ZB-H1: dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, 0, 0, 1, 0, 2, 1, 0, 2, 0, 1, 1, 2, 1, 4, 0, 0, 3, 1, 2, 3, 0, 2, 2, 4, 1, 1, 3, 3, 1, 2, 3, 4, 2, 4, 3, 3, 2, 3, 3>}
dist.mesh @mesh <"pp"=2 pipeline link 1.0e30 0.0, "micro"=4 temporal> {device_flops = 1.0, device_bandwidth = 1.0}
func.func @step(%x: tensor<4xf32> {dtc.input = "x"},
    %w0: tensor<4xf32> {dtc.param = "w0"},
    %w1: tensor<4xf32> {dtc.param = "w1"})
    -> (tensor<f32> {dtc.output = "loss"}, tensor<4xf32> {dtc.output = "grad:w0"}, tensor<4xf32> {dtc.output = "grad:w1"}) {
  %sums:3 = dist.microbatch_loop @mesh "micro" : tensor<f32>, tensor<4xf32>, tensor<4xf32> {
    %a0 = dtc.exp %x : tensor<4xf32>
    %a1 = dtc.mul %a0, %w0 {dist.stage = #dist.stage<0 forward>} : tensor<4xf32>
    %a2 = dtc.mul %a1, %w1 {dist.stage = #dist.stage<1 forward>} : tensor<4xf32>
    %loss = dtc.reduce sum %a2 dims [0] {dist.stage = #dist.stage<1 forward>} : (tensor<4xf32>) -> tensor<f32>
    %g2 = dtc.constant dense<1.0> : tensor<4xf32>
    %d1 = dtc.mul %g2, %a1 {dist.stage = #dist.stage<1 backward>} : tensor<4xf32>
    %g1 = dtc.mul %g2, %w1 {dist.stage = #dist.stage<1 backward>} : tensor<4xf32>
    %d0 = dtc.mul %g1, %a0 {dist.stage = #dist.stage<0 backward>} : tensor<4xf32>
    dist.yield %loss, %d0, %d1 : tensor<f32>, tensor<4xf32>, tensor<4xf32>
  }
  return %sums#0, %sums#1, %sums#2 : tensor<f32>, tensor<4xf32>, tensor<4xf32>
}
