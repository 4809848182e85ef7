// RUN: dtc-opt %s --split-input-file --dtc-lower-to-exec | FileCheck %s

// A value that a function returns is an output or the new value of a state, whether it comes from a bucket or not.
// CHECK-LABEL: exec.program @outputs
// CHECK: exec.buffer input : memref<4xf32>
// CHECK: %[[R:[^ :]*]] = exec.buffer output : memref<4xf32>
// CHECK: %[[S:[^ :]*]] = exec.buffer output : memref<2x2xf32>
// CHECK: exec.output "result0" = %[[R]]
// CHECK: exec.output "result1" = %[[S]]
dist.mesh @mesh <"dp"=2>
func.func @outputs(%x: tensor<4xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>},
                   %y: tensor<2x2xf32> {dtc.input = "y", dtc.global_shape = array<i64: 2, 2>, dist.sharding = #dist.sharding<@mesh, [{}, {}]>})
    -> (tensor<4xf32> {dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>},
        tensor<2x2xf32> {dtc.global_shape = array<i64: 2, 2>, dist.sharding = #dist.sharding<@mesh, [{}, {}]>}) {
  %0:2 = dist.bucket -> tensor<4xf32>, tensor<2x2xf32> {
    %r = dist.all_reduce sum %x over @mesh ["dp"] : tensor<4xf32>
    %s = dist.all_reduce sum %y over @mesh ["dp"] : tensor<2x2xf32>
    dist.yield %r, %s : tensor<4xf32>, tensor<2x2xf32>
  }
  return %0#0, %0#1 : tensor<4xf32>, tensor<2x2xf32>
}

// -----

// New parameters, gathered for the next step.
// CHECK-LABEL: exec.program @states
// CHECK-NOT: exec.buffer activation : memref<4xf32>
// CHECK: exec.task @step
dist.mesh @mesh <"dp"=2>
func.func @states(%v: tensor<4xf32> {dtc.param = "v", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>},
                  %w: tensor<4xf32> {dtc.param = "w", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>},
                  %x: tensor<2xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{"dp"}]>})
    -> (tensor<4xf32> {dtc.updates = 0 : i64, dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>},
        tensor<4xf32> {dtc.updates = 1 : i64, dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  %y = dtc.exp %x : tensor<2xf32>
  %0:2 = dist.bucket -> tensor<4xf32>, tensor<4xf32> {
    %a = dist.all_gather %x dim 0 over @mesh ["dp"] : (tensor<2xf32>) -> tensor<4xf32>
    %b = dist.all_gather %y dim 0 over @mesh ["dp"] : (tensor<2xf32>) -> tensor<4xf32>
    dist.yield %a, %b : tensor<4xf32>, tensor<4xf32>
  }
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
}
