// RUN: dtc-opt %s --dtc-lower-to-exec | FileCheck %s

// The schedule decides what runs last, not the order of the body: the weight fragment still reads %v after the backward
// fragment after it in the body, which must not work in its place. Tasks are in the order in which they run.
// CHECK: %[[V:.*]] = exec.buffer activation slots 0 : memref<4xf32>
// CHECK-NOT: exec.reuse %[[V]]
// CHECK: %[[OTHER:.*]] = exec.buffer activation : memref<4xf32>
// CHECK: exec.task @forward.0
// CHECK-NEXT: exec.kernel "exp"(%{{.*}}) to(%[[V]])
// CHECK: exec.task @backward.0
// CHECK-NEXT: exec.kernel "tanh"(%[[V]]) to(%[[OTHER]])
// CHECK-NEXT: exec.kernel "accumulate"(%[[OTHER]])
// CHECK: exec.task @weight.0
// CHECK-NEXT: exec.kernel "neg"(%[[V]])
// CHECK: exec.run @backward.0 in_loop{{$}}
// CHECK-NEXT: exec.run @weight.0 in_loop{{$}}
dist.mesh @mesh <"pp"=1 pipeline, "micro"=2 temporal>
func.func @step.0(%w: tensor<4xf32> {dtc.param = "w", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>})
    -> (tensor<4xf32> {dtc.output = "a", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>},
        tensor<4xf32> {dtc.output = "b", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) attributes {dist.pipeline = {schedule = "zb-h1", stages = 1}} {
  %0:2 = dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, 0, 2, 0, 1, 0, 0, 1, 2, 1, 1, 1>} : tensor<4xf32>, tensor<4xf32> {
    %v = dist.fragment forward 0 -> tensor<4xf32> {
      %1 = dtc.exp %w : tensor<4xf32>
      dist.yield %1 : tensor<4xf32>
    }
    %2 = dist.fragment weight 0 -> tensor<4xf32> {
      %3 = dtc.neg %v : tensor<4xf32>
      dist.yield %3 : tensor<4xf32>
    }
    %4 = dist.fragment backward 0 -> tensor<4xf32> {
      %5 = dtc.tanh %v : tensor<4xf32>
      dist.yield %5 : tensor<4xf32>
    }
    dist.yield %2, %4 : tensor<4xf32>, tensor<4xf32>
  }
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
}
