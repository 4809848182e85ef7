// RUN: dtc-opt %s --dtc-propagate-shardings --dtc-insert-reshards | FileCheck %s

// A sum whose users need it in two layouts is completed once, and goes from one to the other: half of a shard is less than
// half of the sum.
// CHECK-LABEL: func.func @completed_once(
// CHECK: %[[SUM:.*]] = dtc.reduce sum %arg0
// CHECK: %[[FIRST:[^ ]*]] = dist.reshard %[[SUM]] from <@mesh, [{}, {}], partial = sum{"tp"}> to <@mesh, [{{({}, {"tp"}|{"tp"}, {})}}]>
// CHECK-NOT: = dist.reshard %[[SUM]]
// CHECK: dist.reshard %[[FIRST]] from <@mesh, [{{({}, {"tp"}|{"tp"}, {})}}]> to <@mesh, [{{({}, {"tp"}|{"tp"}, {})}}]>
// CHECK-NOT: = dist.reshard
dist.mesh @mesh <"tp"=2>
func.func @completed_once(%x: tensor<64x64x4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{}, {}, {"tp"}]>},
                          %a: tensor<64x64xf32> {dtc.input = "a", dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>},
                          %b: tensor<64x64xf32> {dtc.input = "b", dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>}) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0 = dtc.reduce sum %x dims [2] : (tensor<64x64x4xf32>) -> tensor<64x64xf32>
  %1 = dtc.add %0, %a : tensor<64x64xf32>
  %2 = dist.constrain %1 to <@mesh, [{"tp"}, {}]> : tensor<64x64xf32>
  %3 = dtc.add %0, %b : tensor<64x64xf32>
  %4 = dist.constrain %3 to <@mesh, [{}, {"tp"}]> : tensor<64x64xf32>
  return %2, %4 : tensor<64x64xf32>, tensor<64x64xf32>
}
