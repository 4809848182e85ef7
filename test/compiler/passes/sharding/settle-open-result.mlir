// RUN: dtc-opt %s --dtc-propagate-shardings --dtc-insert-reshards | FileCheck %s

// Operands that disagree: one is moved, the smaller one, and the result lies as the op makes it.
// CHECK-LABEL: func.func @disagree(
// CHECK-SAME: -> (tensor<8x64xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"dp"}]>})
// CHECK-NEXT: %[[V0:.*]] = dist.reshard %arg0 from <@mesh, [{"dp"}, {}]> to <@mesh, [{}, {}]>
// CHECK-NEXT: %[[V1:.*]] = dtc.einsum "bi,ih->bh" %[[V0]], %arg1 {dist.sharding = #dist.sharding<@mesh, [{}, {"dp"}]>}
// CHECK-NEXT: return %[[V1]]
dist.mesh @mesh <"dp"=2>
func.func @disagree(%x: tensor<8x4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}]>},
                    %w: tensor<4x64xf32> {dtc.param = "w", dist.sharding = #dist.sharding<@mesh, [{}, {"dp"}]>}) -> tensor<8x64xf32> {
  %0 = dtc.einsum "bi,ih->bh" %x, %w : (tensor<8x4xf32>, tensor<4x64xf32>) -> tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}
