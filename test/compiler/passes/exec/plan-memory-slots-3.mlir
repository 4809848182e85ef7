// RUN: dtc-opt %s --dtc-schedule-pipeline="schedule=1f1b chunks=1" --dtc-lower-to-exec --dtc-plan-memory | FileCheck %s --check-prefix=F1B1
// RUN: dtc-opt %s --dtc-schedule-pipeline="schedule=gpipe chunks=1" --dtc-lower-to-exec --dtc-plan-memory | FileCheck %s --check-prefix=GPIPE
// RUN: dtc-opt %s --dtc-schedule-pipeline="schedule=naive chunks=1" --dtc-lower-to-exec --dtc-plan-memory | FileCheck %s --check-prefix=NAIVE
// RUN: dtc-opt %s --dtc-schedule-pipeline="schedule=zb-h1 chunks=1" --dtc-lower-to-exec --dtc-plan-memory | FileCheck %s --check-prefix=ZB

// Each stage has a value, the one of two dimensions, that its backward pass reads again. It has a slot for each microbatch
// that is in flight on the stage: begun, and not through.

// Device d of p: p - d of them.
// F1B1-LABEL: exec.program @step.0
// F1B1: exec.buffer activation at {{[0-9]+}} slots 3 : memref<4x2xf32>
// F1B1-NOT: exec.buffer {{.*}}memref<4x2xf32>{{$}}
// F1B1: exec.task
// F1B1-LABEL: exec.program @step.1
// F1B1: exec.buffer activation at {{[0-9]+}} slots 2 : memref<4x2xf32>
// F1B1-NOT: exec.buffer {{.*}}memref<4x2xf32>{{$}}
// F1B1: exec.task
// F1B1-LABEL: exec.program @step.2
// F1B1: exec.buffer activation at {{[0-9]+}} slots 1 : memref<4x2xf32>
// F1B1-NOT: exec.buffer {{.*}}memref<4x2xf32>{{$}}
// F1B1: exec.task

// All six microbatches.
// GPIPE-LABEL: exec.program @step.0
// GPIPE: exec.buffer activation at {{[0-9]+}} slots 6 : memref<4x2xf32>
// GPIPE-NOT: exec.buffer {{.*}}memref<4x2xf32>{{$}}
// GPIPE: exec.task
// GPIPE-LABEL: exec.program @step.1
// GPIPE: exec.buffer activation at {{[0-9]+}} slots 6 : memref<4x2xf32>
// GPIPE-NOT: exec.buffer {{.*}}memref<4x2xf32>{{$}}
// GPIPE: exec.task
// GPIPE-LABEL: exec.program @step.2
// GPIPE: exec.buffer activation at {{[0-9]+}} slots 6 : memref<4x2xf32>
// GPIPE-NOT: exec.buffer {{.*}}memref<4x2xf32>{{$}}
// GPIPE: exec.task

// One.
// NAIVE-LABEL: exec.program @step.0
// NAIVE: exec.buffer activation at {{[0-9]+}} slots 1 : memref<4x2xf32>
// NAIVE-NOT: exec.buffer {{.*}}memref<4x2xf32>{{$}}
// NAIVE: exec.task
// NAIVE-LABEL: exec.program @step.1
// NAIVE: exec.buffer activation at {{[0-9]+}} slots 1 : memref<4x2xf32>
// NAIVE-NOT: exec.buffer {{.*}}memref<4x2xf32>{{$}}
// NAIVE: exec.task
// NAIVE-LABEL: exec.program @step.2
// NAIVE: exec.buffer activation at {{[0-9]+}} slots 1 : memref<4x2xf32>
// NAIVE-NOT: exec.buffer {{.*}}memref<4x2xf32>{{$}}
// NAIVE: exec.task

// As many as 1F1B's first device on all, as weights come late.
// ZB-LABEL: exec.program @step.0
// ZB: exec.buffer activation at {{[0-9]+}} slots 3 : memref<4x2xf32>
// ZB-NOT: exec.buffer {{.*}}memref<4x2xf32>{{$}}
// ZB: exec.task
// ZB-LABEL: exec.program @step.1
// ZB: exec.buffer activation at {{[0-9]+}} slots 3 : memref<4x2xf32>
// ZB-NOT: exec.buffer {{.*}}memref<4x2xf32>{{$}}
// ZB: exec.task
// ZB-LABEL: exec.program @step.2
// ZB: exec.buffer activation at {{[0-9]+}} slots 3 : memref<4x2xf32>
// ZB-NOT: exec.buffer {{.*}}memref<4x2xf32>{{$}}
// ZB: exec.task
dist.mesh @mesh <"pp"=3 pipeline link 1.0e30 0.0, "micro"=6 temporal> {device_flops = 1.0, device_bandwidth = 1.0}
func.func @step(%x: tensor<4xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) -> (tensor<4xf32> {dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}, tensor<4xf32> {dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}, tensor<4xf32> {dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  %sums:3 = dist.microbatch_loop @mesh "micro" : tensor<4xf32>, tensor<4xf32>, tensor<4xf32> {
    %rows0 = dtc.broadcast %x dims [0] {dist.stage = #dist.stage<0 forward>} : (tensor<4xf32>) -> tensor<4x2xf32>
    %kept0 = dtc.exp %rows0 {dist.stage = #dist.stage<0 forward>} : tensor<4x2xf32>
    %a0 = dtc.reduce sum %kept0 dims [1] {dist.stage = #dist.stage<0 forward>} : (tensor<4x2xf32>) -> tensor<4xf32>
    %rows1 = dtc.broadcast %a0 dims [0] {dist.stage = #dist.stage<1 forward>} : (tensor<4xf32>) -> tensor<4x2xf32>
    %kept1 = dtc.exp %rows1 {dist.stage = #dist.stage<1 forward>} : tensor<4x2xf32>
    %a1 = dtc.reduce sum %kept1 dims [1] {dist.stage = #dist.stage<1 forward>} : (tensor<4x2xf32>) -> tensor<4xf32>
    %rows2 = dtc.broadcast %a1 dims [0] {dist.stage = #dist.stage<2 forward>} : (tensor<4xf32>) -> tensor<4x2xf32>
    %kept2 = dtc.exp %rows2 {dist.stage = #dist.stage<2 forward>} : tensor<4x2xf32>
    %a2 = dtc.reduce sum %kept2 dims [1] {dist.stage = #dist.stage<2 forward>} : (tensor<4x2xf32>) -> tensor<4xf32>
    %w2 = dtc.reduce max %kept2 dims [1] {dist.stage = #dist.stage<2 backward>} : (tensor<4x2xf32>) -> tensor<4xf32>
    %d2 = dtc.mul %a2, %w2 {dist.stage = #dist.stage<2 backward>} : tensor<4xf32>
    %g2 = dtc.neg %a2 {dist.stage = #dist.stage<2 backward>} : tensor<4xf32>
    %w1 = dtc.reduce max %kept1 dims [1] {dist.stage = #dist.stage<1 backward>} : (tensor<4x2xf32>) -> tensor<4xf32>
    %d1 = dtc.mul %g2, %w1 {dist.stage = #dist.stage<1 backward>} : tensor<4xf32>
    %g1 = dtc.neg %g2 {dist.stage = #dist.stage<1 backward>} : tensor<4xf32>
    %w0 = dtc.reduce max %kept0 dims [1] {dist.stage = #dist.stage<0 backward>} : (tensor<4x2xf32>) -> tensor<4xf32>
    %d0 = dtc.mul %g1, %w0 {dist.stage = #dist.stage<0 backward>} : tensor<4xf32>
    dist.yield %d0, %d1, %d2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  return %sums#0, %sums#1, %sums#2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
