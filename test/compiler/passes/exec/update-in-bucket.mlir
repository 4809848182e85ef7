// RUN: dtc-opt %s --dtc-lower-to-exec | FileCheck %s

// A state's new value does not go to the state's storage where another tensor of its bucket is the old value: all of a
// bucket is read before any of it is written.
// CHECK-LABEL: exec.program @f
// CHECK: %[[P:.*]] = exec.buffer parameter
// CHECK: %[[NEW:.*]] = exec.reuse %[[P]]
// CHECK-NEXT: exec.update "p" = %[[NEW]]
// CHECK: exec.collective all_to_all over ["dp"](%[[P]], %[[B:[^ )]*]]) to(%{{[^ ,]*}}, %[[N:[^ )]*]])
// CHECK: exec.kernel "copy"(%[[N]]) to(%[[NEW]])
dist.mesh @mesh <"dp"=2>
func.func @f(%p: tensor<4x4xf32> {dtc.param = "p", dtc.global_shape = array<i64: 8, 4>, dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}]>},
             %x: tensor<8x2xf32> {dtc.input = "x", dtc.global_shape = array<i64: 8, 4>, dist.sharding = #dist.sharding<@mesh, [{}, {"dp"}]>})
    -> (tensor<8x2xf32> {dtc.output = "old", dtc.global_shape = array<i64: 8, 4>, dist.sharding = #dist.sharding<@mesh, [{}, {"dp"}]>},
        tensor<4x4xf32> {dtc.updates = 0 : i64, dtc.global_shape = array<i64: 8, 4>, dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}]>}) {
  %b = dtc.mul %x, %x : tensor<8x2xf32>
  %0:2 = dist.bucket -> tensor<8x2xf32>, tensor<4x4xf32> {
    %1 = dist.all_to_all %p split_dim 1 dim 0 over @mesh ["dp"] : (tensor<4x4xf32>) -> tensor<8x2xf32>
    %2 = dist.all_to_all %b split_dim 0 dim 1 over @mesh ["dp"] : (tensor<8x2xf32>) -> tensor<4x4xf32>
    dist.yield %1, %2 : tensor<8x2xf32>, tensor<4x4xf32>
  }
  return %0#0, %0#1 : tensor<8x2xf32>, tensor<4x4xf32>
}
