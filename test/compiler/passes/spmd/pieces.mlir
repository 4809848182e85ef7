// RUN: dtc-opt %s --split-input-file --dtc-spmd-partition | FileCheck %s

// Where axes come after the temporal one, an argument lies in memory as a piece of each microbatch, one after the other;
// its sharding keeps the temporal axis, which says so. In the loop the microbatch is one block of the rows, as ever.
// CHECK-LABEL: func.func @pieces(
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp", "micro", "ep"}, {}]>, dtc.global_shape = array<i64: 16, 8>, dtc.input = "x"}
// CHECK-SAME: %[[Y:[^:]*]]: tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}]>, dtc.global_shape = array<i64: 16>, dtc.input = "y"}
// CHECK-NEXT: dist.microbatch_loop @mesh "micro"
// CHECK-NEXT: %[[ROWS:.*]] = dist.shard_slice %[[X]] dim 0 over @mesh ["micro"] : (tensor<4x8xf32>) -> tensor<1x8xf32>
// CHECK-NEXT: dist.shard_slice %[[Y]] dim 0 over @mesh ["micro"] : (tensor<8xf32>) -> tensor<2xf32>
// CHECK-NEXT: dtc.exp %[[ROWS]] : tensor<1x8xf32>
// CHECK: dist.all_reduce sum %{{.*}} over @mesh ["dp", "ep"]
dist.mesh @mesh <"dp"=2, "micro"=4 temporal, "ep"=2>
func.func @pieces(%x: tensor<16x8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"dp", "micro", "ep"}, {}]>},
                  %y: tensor<16xf32> {dtc.input = "y", dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}]>}) -> (tensor<f32>, tensor<f32>) {
  %0 = dtc.exp %x {dist.sharding = #dist.sharding<@mesh, [{"dp", "micro", "ep"}, {}]>} : tensor<16x8xf32>
  %1 = dtc.reduce sum %0 dims [0, 1] {dist.sharding = #dist.sharding<@mesh, [], partial = sum{"dp", "micro", "ep"}>} : (tensor<16x8xf32>) -> tensor<f32>
  %2 = dist.reshard %1 from <@mesh, [], partial = sum{"dp", "micro", "ep"}> to <@mesh, []> {dist.sharding = #dist.sharding<@mesh, []>} : tensor<f32>
  %3 = dtc.reduce sum %y dims [0] {dist.sharding = #dist.sharding<@mesh, [], partial = sum{"dp", "micro"}>} : (tensor<16xf32>) -> tensor<f32>
  %4 = dist.reshard %3 from <@mesh, [], partial = sum{"dp", "micro"}> to <@mesh, []> {dist.sharding = #dist.sharding<@mesh, []>} : tensor<f32>
  return %2, %4 : tensor<f32>, tensor<f32>
}

// -----

// One microbatch is all of a device's rows, which need not be even parts.
// CHECK-LABEL: func.func @one_microbatch(
// CHECK-SAME: %[[X:[^:]*]]: tensor<3xf32> {dist.sharding = #dist.sharding<@mesh, [{"ep"}]>, dtc.global_shape = array<i64: 5>, dtc.input = "x"}
// CHECK: dtc.exp %[[X]] : tensor<3xf32>
dist.mesh @mesh <"micro"=1 temporal, "ep"=2>
func.func @one_microbatch(%x: tensor<5xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"micro", "ep"}]>}) -> tensor<f32> {
  %0 = dtc.exp %x {dist.sharding = #dist.sharding<@mesh, [{"micro", "ep"}]>} : tensor<5xf32>
  %1 = dtc.reduce sum %0 dims [0] {dist.sharding = #dist.sharding<@mesh, [], partial = sum{"micro", "ep"}>} : (tensor<5xf32>) -> tensor<f32>
  %2 = dist.reshard %1 from <@mesh, [], partial = sum{"micro", "ep"}> to <@mesh, []> {dist.sharding = #dist.sharding<@mesh, []>} : tensor<f32>
  return %2 : tensor<f32>
}
