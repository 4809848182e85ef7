// RUN: dtc-opt %s | dtc-opt | FileCheck %s
// RUN: dtc-opt %s --mlir-print-op-generic | dtc-opt | FileCheck %s
// RUN: dtc-opt %s --emit-bytecode | dtc-opt | FileCheck %s

// CHECK: dist.mesh @mesh <"dp"=2, "pp"=4 pipeline, "micro"=8 temporal> {device_bandwidth = 2.000000e+11 : f64, device_flops = 1.000000e+12 : f64}
dist.mesh @mesh <"dp"=2, "pp"=4 pipeline, "micro"=8 temporal> {device_flops = 1.0e12, device_bandwidth = 2.0e11}

// A pipeline of one, its link, and a part of an axis.
module {
  // CHECK: dist.mesh @linked <"pp"=1 pipeline link 2.500000e+10 1.000000e-05>
  dist.mesh @linked <"pp"=1 pipeline link 2.5e10 1.0e-5>
  // CHECK: dist.mesh @part <"pp.0"=2 pipeline of "pp">
  dist.mesh @part <"pp.0"=2 pipeline of "pp">
}

// CHECK-LABEL: func.func @stages(
// CHECK-SAME: attributes {dist.pipeline = {schedule = "1f1b", stages = 4 : i64}}
func.func @stages(%x: tensor<4x8xf32>) attributes {dist.pipeline = {schedule = "1f1b", stages = 4}} {
  // CHECK: dtc.exp %{{.*}} {dist.stage = #dist.stage<0 forward>}
  %0 = dtc.exp %x {dist.stage = #dist.stage<0 forward>} : tensor<4x8xf32>
  // CHECK: dtc.exp %{{.*}} {dist.stage = #dist.stage<3 backward>}
  %1 = dtc.exp %0 {dist.stage = #dist.stage<3 backward>} : tensor<4x8xf32>
  // CHECK: dtc.exp %{{.*}} {dist.stage = #dist.stage<1 weight>}
  %2 = dtc.exp %1 {dist.stage = #dist.stage<1 weight>} : tensor<4x8xf32>
  return
}

// CHECK-LABEL: func.func @scheduled(
func.func @scheduled(%x: tensor<4xf32>) -> tensor<4xf32> {
  // Places in the body and microbatches, in turns.
  // CHECK: %[[SUM:.*]] = dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, 0, 1, 0, 0, 1, 2, 0, 1, 1, 2, 1, 3, 0, 4, 0>} : tensor<4xf32> {
  %0 = dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, 0, 1, 0, 0, 1, 2, 0, 1, 1, 2, 1, 3, 0, 4, 0>} : tensor<4xf32> {
    // CHECK-NEXT: %[[IN:.*]]:2 = dist.receive from 0 channel 5 : tensor<4xf32>, tensor<2xi32>
    %1:2 = dist.receive from 0 channel 5 : tensor<4xf32>, tensor<2xi32>
    // CHECK-NEXT: %[[F:.*]]:2 = dist.fragment forward 1 -> tensor<4xf32>, tensor<4xf32> {
    %2:2 = dist.fragment forward 1 -> tensor<4xf32>, tensor<4xf32> {
      // CHECK-NEXT: %[[EXP:.*]] = dtc.exp %[[IN]]#0
      %3 = dtc.exp %1#0 : tensor<4xf32>
      // A fragment may hand on what it did not make.
      // CHECK-NEXT: dist.yield %[[EXP]], %{{.*}} : tensor<4xf32>, tensor<4xf32>
      dist.yield %3, %x : tensor<4xf32>, tensor<4xf32>
    }
    // CHECK: dist.send %[[F]]#0, %[[IN]]#1 to 2 channel 0 : tensor<4xf32>, tensor<2xi32> as [4, 0]
    dist.send %2#0, %1#1 to 2 channel 0 : tensor<4xf32>, tensor<2xi32> as [4, 0]
    // CHECK: dist.fragment backward 1 attributes {note = 1 : i64} {
    // CHECK-NEXT: }
    dist.fragment backward 1 attributes {note = 1} {
    }
    // CHECK: dist.fragment weight 1 {
    dist.fragment weight 1 {
      dist.yield
    }
    dist.yield %2#0 : tensor<4xf32>
  }
  // Beside the loop, once a step.
  // CHECK: dist.send %[[SUM]] to 0 channel 7 : tensor<4xf32>
  dist.send %0 to 0 channel 7 : tensor<4xf32>
  // CHECK: dist.receive from 3 channel 8 {note = 1 : i64} : tensor<f32> as [2]
  %4 = dist.receive from 3 channel 8 {note = 1} : tensor<f32> as [2]
  return %0 : tensor<4xf32>
}

// Without a schedule, which is as good as none.
// CHECK-LABEL: func.func @not_scheduled(
func.func @not_scheduled() {
  // CHECK: dist.microbatch_loop @mesh "micro" {
  // CHECK-NEXT: dist.fragment forward 0 {
  dist.microbatch_loop @mesh "micro" {
    dist.fragment forward 0 {
    }
  }
  // CHECK: dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64>} {
  dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64>} {
  }
  return
}
