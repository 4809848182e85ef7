// RUN: dtc-opt %s --dtc-schedule-pipeline="schedule=interleaved chunks=2" --dtc-lower-to-exec --dtc-plan-memory | FileCheck %s --check-prefix=ROUND
// RUN: dtc-opt %s --dtc-schedule-pipeline="schedule=zb-v chunks=2" --dtc-lower-to-exec --dtc-plan-memory | FileCheck %s --check-prefix=V

// Each stage has a value, the one of two dimensions, that its backward pass reads again. The stages of a device share slots
// for it: as many as there are microbatches in flight on the device, begun and not through, each counted for each stage.

// Interleaved: stages 0 and 2 are on device 0. By themselves they need 4 and 2 slots, but never more than p v + p - 1 = 5 at once.
// ROUND-LABEL: exec.program @step.0
// ROUND: exec.buffer activation at [[AT:[0-9]+]] slots 5 map [0, 1, 4, 2, 3, 0] : memref<4x2xf32>
// ROUND: exec.buffer activation at [[AT]] slots 5 map [2, 3, 0, 1, 1, 2] : memref<4x2xf32>
// ROUND-NOT: exec.buffer {{.*}}memref<4x2xf32>{{$}}
// ROUND: exec.task
// Stages 1 and 3 are busiest at one moment: nothing is saved, and there is no map.
// ROUND-LABEL: exec.program @step.1
// ROUND: exec.buffer activation at {{[0-9]+}} slots 2 : memref<4x2xf32>
// ROUND: exec.buffer activation at {{[0-9]+}} slots 1 : memref<4x2xf32>
// ROUND-NOT: exec.buffer {{.*}}memref<4x2xf32>{{$}}
// ROUND: exec.task

// In a V stages 0 and 3 are on device 0. No device has more than four, p for each of its stages, at a time, where each device has
// a stage that needs three slots by itself and one that needs two.
// V-LABEL: exec.program @step.0
// V: exec.buffer activation at [[AT:[0-9]+]] slots 4 map [0, 1, 2, 0, 3, 1] : memref<4x2xf32>
// V: exec.buffer activation at [[AT]] slots 4 map [3, 3, 1, 2, 0, 0] : memref<4x2xf32>
// V-NOT: exec.buffer {{.*}}memref<4x2xf32>{{$}}
// V: exec.task
// V-LABEL: exec.program @step.1
// V: exec.buffer activation at [[AT1:[0-9]+]] slots 4 map [0, 2, 0, 1, 3, 2] : memref<4x2xf32>
// V: exec.buffer activation at [[AT1]] slots 4 map [1, 3, 2, 0, 1, 3] : memref<4x2xf32>
// V-NOT: exec.buffer {{.*}}memref<4x2xf32>{{$}}
// V: exec.task
dist.mesh @mesh <"pp"=2 pipeline link 1.0e30 0.0, "micro"=6 temporal> {device_flops = 1.0, device_bandwidth = 1.0}
func.func @step(%x: tensor<4xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) -> (tensor<4xf32> {dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}, tensor<4xf32> {dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}, tensor<4xf32> {dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}, tensor<4xf32> {dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  %sums:4 = dist.microbatch_loop @mesh "micro" : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32> {
    %rows0 = dtc.broadcast %x dims [0] {dist.stage = #dist.stage<0 forward>} : (tensor<4xf32>) -> tensor<4x2xf32>
    %kept0 = dtc.exp %rows0 {dist.stage = #dist.stage<0 forward>} : tensor<4x2xf32>
    %a0 = dtc.reduce sum %kept0 dims [1] {dist.stage = #dist.stage<0 forward>} : (tensor<4x2xf32>) -> tensor<4xf32>
    %rows1 = dtc.broadcast %a0 dims [0] {dist.stage = #dist.stage<1 forward>} : (tensor<4xf32>) -> tensor<4x2xf32>
    %kept1 = dtc.exp %rows1 {dist.stage = #dist.stage<1 forward>} : tensor<4x2xf32>
    %a1 = dtc.reduce sum %kept1 dims [1] {dist.stage = #dist.stage<1 forward>} : (tensor<4x2xf32>) -> tensor<4xf32>
    %rows2 = dtc.broadcast %a1 dims [0] {dist.stage = #dist.stage<2 forward>} : (tensor<4xf32>) -> tensor<4x2xf32>
    %kept2 = dtc.exp %rows2 {dist.stage = #dist.stage<2 forward>} : tensor<4x2xf32>
    %a2 = dtc.reduce sum %kept2 dims [1] {dist.stage = #dist.stage<2 forward>} : (tensor<4x2xf32>) -> tensor<4xf32>
    %rows3 = dtc.broadcast %a2 dims [0] {dist.stage = #dist.stage<3 forward>} : (tensor<4xf32>) -> tensor<4x2xf32>
    %kept3 = dtc.exp %rows3 {dist.stage = #dist.stage<3 forward>} : tensor<4x2xf32>
    %a3 = dtc.reduce sum %kept3 dims [1] {dist.stage = #dist.stage<3 forward>} : (tensor<4x2xf32>) -> tensor<4xf32>
    %w3 = dtc.reduce max %kept3 dims [1] {dist.stage = #dist.stage<3 backward>} : (tensor<4x2xf32>) -> tensor<4xf32>
    %d3 = dtc.mul %a3, %w3 {dist.stage = #dist.stage<3 backward>} : tensor<4xf32>
    %g3 = dtc.neg %a3 {dist.stage = #dist.stage<3 backward>} : tensor<4xf32>
    %w2 = dtc.reduce max %kept2 dims [1] {dist.stage = #dist.stage<2 backward>} : (tensor<4x2xf32>) -> tensor<4xf32>
    %d2 = dtc.mul %g3, %w2 {dist.stage = #dist.stage<2 backward>} : tensor<4xf32>
    %g2 = dtc.neg %g3 {dist.stage = #dist.stage<2 backward>} : tensor<4xf32>
    %w1 = dtc.reduce max %kept1 dims [1] {dist.stage = #dist.stage<1 backward>} : (tensor<4x2xf32>) -> tensor<4xf32>
    %d1 = dtc.mul %g2, %w1 {dist.stage = #dist.stage<1 backward>} : tensor<4xf32>
    %g1 = dtc.neg %g2 {dist.stage = #dist.stage<1 backward>} : tensor<4xf32>
    %w0 = dtc.reduce max %kept0 dims [1] {dist.stage = #dist.stage<0 backward>} : (tensor<4x2xf32>) -> tensor<4xf32>
    %d0 = dtc.mul %g1, %w0 {dist.stage = #dist.stage<0 backward>} : tensor<4xf32>
    dist.yield %d0, %d1, %d2, %d3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  return %sums#0, %sums#1, %sums#2, %sums#3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
