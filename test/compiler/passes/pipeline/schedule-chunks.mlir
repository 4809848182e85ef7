// RUN: dtc-opt %s --dtc-schedule-pipeline='schedule=interleaved chunks=2' | FileCheck %s --check-prefix=ROUND
// RUN: dtc-opt %s --dtc-schedule-pipeline='schedule=zb-v chunks=2' | FileCheck %s --check-prefix=V

// Interleaved: stages 0 and 2 are on device 0, 1 and 3 on device 1. Each device does a chunk for two microbatches, then
// the other one. All values go to the other device.
// ROUND-LABEL: func.func @step.0(
// ROUND-SAME: dist.pipeline = {schedule = "interleaved", stages = 4 : i64}
// ROUND: dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 2, 0, 2, 1, 5, 0, 5, 1, 8, 0, 0, 0, 0, 1, 3, 0, 3, 1, 1, 0, 0, 2, 6, 0, 2, 2, 8, 1, 1, 1, 0, 3, 6, 1, 2, 3, 5, 2, 5, 3, 9, 0, 8, 2, 4, 0, 3, 2, 9, 1, 8, 3, 4, 1, 3, 3, 7, 0, 6, 2, 7, 1, 6, 3, 9, 2, 9, 3, 1, 2, 1, 3, 4, 2, 4, 3, 7, 2, 7, 3>}
// ROUND: dist.fragment forward 0
// ROUND: dist.send %{{[^,]*}} to 1 channel 0 :
// ROUND: dist.receive from 1 channel 1 : tensor<4xf32> as [{{[0-9]}}]{{$}}
// ROUND: dist.fragment forward 2
// ROUND: dist.send %{{[^,]*}} to 1 channel 2 :
// ROUND: dist.receive from 1 channel 3 : tensor<4xf32> as [{{[0-9]}}]{{$}}
// ROUND: dist.fragment backward 2
// ROUND: dist.send %{{[^,]*}} to 1 channel 4 :
// ROUND: dist.receive from 1 channel 5 : tensor<4xf32> as [{{[0-9]}}]{{$}}
// ROUND: dist.fragment backward 0
// ROUND-NOT: dist.{{fragment|send|receive}}
// ROUND: return
// ROUND-LABEL: func.func @step.1(
// ROUND: dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, 0, 0, 1, 3, 0, 3, 1, 0, 2, 7, 0, 0, 3, 7, 1, 1, 0, 1, 1, 4, 0, 5, 0, 3, 2, 4, 1, 5, 1, 3, 3, 8, 0, 7, 2, 2, 0, 1, 2, 8, 1, 7, 3, 2, 1, 1, 3, 4, 2, 6, 0, 5, 2, 4, 3, 6, 1, 5, 3, 9, 0, 8, 2, 9, 1, 8, 3, 2, 2, 2, 3, 6, 2, 6, 3, 9, 2, 9, 3>}
// ROUND: dist.receive from 0 channel 0 : tensor<4xf32> as [{{[0-9]}}]{{$}}
// ROUND: dist.fragment forward 1
// ROUND: dist.send %{{[^,]*}} to 0 channel 1 :
// ROUND: dist.receive from 0 channel 2 : tensor<4xf32> as [{{[0-9]}}]{{$}}
// ROUND: dist.fragment forward 3
// ROUND: dist.fragment backward 3
// ROUND: dist.send %{{[^,]*}} to 0 channel 3 :
// ROUND: dist.receive from 0 channel 4 : tensor<4xf32> as [{{[0-9]}}]{{$}}
// ROUND: dist.fragment backward 1
// ROUND: dist.send %{{[^,]*}} to 0 channel 5 :
// ROUND-NOT: dist.{{fragment|send|receive}}
// ROUND: return

// ZB-V: stages 0 and 3 are on device 0, 1 and 2 on device 1, which hands the values between them on without a message.
// V-LABEL: func.func @step.0(
// V-SAME: dist.pipeline = {schedule = "zb-v", stages = 4 : i64}
// V: dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 2, 0, 2, 1, 7, 0, 7, 1, 0, 0, 0, 1, 1, 0, 0, 2, 3, 0, 4, 0, 6, 0, 2, 2, 3, 1, 4, 1, 8, 0, 7, 2, 1, 1, 0, 3, 8, 1, 3, 2, 5, 0, 4, 2, 6, 1, 2, 3, 7, 3, 6, 2, 8, 2, 3, 3, 5, 1, 4, 3, 6, 3, 8, 3, 1, 2, 1, 3, 5, 2, 5, 3>}
// V: dist.fragment forward 0
// V: dist.send %{{[^,]*}} to 1 channel 0 :
// V: dist.receive from 1 channel 1 : tensor<4xf32> as [{{[0-9]}}]{{$}}
// V: dist.fragment forward 3
// V: dist.fragment backward 3
// V: dist.send %{{[^,]*}} to 1 channel 2 :
// V: dist.fragment weight 3
// V: dist.receive from 1 channel 3 : tensor<4xf32> as [{{[0-9]}}]{{$}}
// V: dist.fragment weight 0
// V-NOT: dist.{{fragment|send|receive}}
// V: return
// V-LABEL: func.func @step.1(
// V: dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, 0, 0, 1, 0, 2, 4, 0, 4, 1, 1, 0, 2, 0, 1, 1, 2, 1, 5, 0, 7, 0, 9, 0, 0, 3, 1, 2, 5, 1, 7, 1, 9, 1, 3, 0, 2, 2, 6, 0, 4, 2, 1, 3, 5, 2, 8, 0, 7, 2, 9, 2, 3, 1, 2, 3, 6, 1, 4, 3, 6, 2, 5, 3, 8, 1, 7, 3, 9, 3, 6, 3, 3, 2, 3, 3, 8, 2, 8, 3>}
// V: dist.receive from 0 channel 0 : tensor<4xf32> as [{{[0-9]}}]{{$}}
// V: dist.fragment forward 1
// V: dist.fragment forward 2
// V: dist.send %{{[^,]*}} to 0 channel 1 :
// V: dist.receive from 0 channel 2 : tensor<4xf32> as [{{[0-9]}}]{{$}}
// V: dist.fragment backward 2
// V: dist.fragment weight 2
// V: dist.fragment backward 1
// V: dist.send %{{[^,]*}} to 0 channel 3 :
// V: dist.fragment weight 1
// V-NOT: dist.{{fragment|send|receive}}
// V: return

dist.mesh @mesh <"pp"=2 pipeline link 1.0e30 0.0, "micro"=4 temporal> {device_flops = 1.0, device_bandwidth = 1.0}
func.func @step(%x: tensor<4xf32> {dtc.input = "x"},
    %w0: tensor<4xf32> {dtc.param = "w0"},
    %w1: tensor<4xf32> {dtc.param = "w1"},
    %w2: tensor<4xf32> {dtc.param = "w2"},
    %w3: tensor<4xf32> {dtc.param = "w3"})
    -> (tensor<f32> {dtc.output = "loss"}, tensor<4xf32> {dtc.output = "grad:w0"}, tensor<4xf32> {dtc.output = "grad:w1"}, tensor<4xf32> {dtc.output = "grad:w2"}, tensor<4xf32> {dtc.output = "grad:w3"}) {
  %sums:5 = dist.microbatch_loop @mesh "micro" : tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32> {
    %a0 = dtc.exp %x : tensor<4xf32>
    %a1 = dtc.mul %a0, %w0 {dist.stage = #dist.stage<0 forward>} : tensor<4xf32>
    %a2 = dtc.mul %a1, %w1 {dist.stage = #dist.stage<1 forward>} : tensor<4xf32>
    %a3 = dtc.mul %a2, %w2 {dist.stage = #dist.stage<2 forward>} : tensor<4xf32>
    %a4 = dtc.mul %a3, %w3 {dist.stage = #dist.stage<3 forward>} : tensor<4xf32>
    %loss = dtc.reduce sum %a4 dims [0] {dist.stage = #dist.stage<3 forward>} : (tensor<4xf32>) -> tensor<f32>
    %g4 = dtc.constant dense<1.0> : tensor<4xf32>
    %d3 = dtc.mul %g4, %a3 {dist.stage = #dist.stage<3 backward>} : tensor<4xf32>
    %g3 = dtc.mul %g4, %w3 {dist.stage = #dist.stage<3 backward>} : tensor<4xf32>
    %d2 = dtc.mul %g3, %a2 {dist.stage = #dist.stage<2 backward>} : tensor<4xf32>
    %g2 = dtc.mul %g3, %w2 {dist.stage = #dist.stage<2 backward>} : tensor<4xf32>
    %d1 = dtc.mul %g2, %a1 {dist.stage = #dist.stage<1 backward>} : tensor<4xf32>
    %g1 = dtc.mul %g2, %w1 {dist.stage = #dist.stage<1 backward>} : tensor<4xf32>
    %d0 = dtc.mul %g1, %a0 {dist.stage = #dist.stage<0 backward>} : tensor<4xf32>
    dist.yield %loss, %d0, %d1, %d2, %d3 : tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  return %sums#0, %sums#1, %sums#2, %sums#3, %sums#4 : tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
