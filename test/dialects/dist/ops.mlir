// RUN: dtc-opt %s | dtc-opt | FileCheck %s
// RUN: dtc-opt %s --mlir-print-op-generic | dtc-opt | FileCheck %s

// CHECK: dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>
dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>
// One device.
// CHECK: dist.mesh @one <>
dist.mesh @one <>
// CHECK: dist.mesh @noted <"dp"=1> {note = "kept"}
dist.mesh @noted <"dp"=1> {note = "kept"}

// CHECK-LABEL: func.func @global_view(
func.func @global_view(%x: tensor<16x8xf32>) -> tensor<16x8xf32> {
  // CHECK: dist.constrain %{{.*}} to <@mesh, [{"dp", "micro"}, {"tp"}]> : tensor<16x8xf32>
  %0 = dist.constrain %x to <@mesh, [{"dp", "micro"}, {"tp"}]> : tensor<16x8xf32>
  // CHECK: dist.sum_batches %{{.*}} : tensor<16x8xf32>
  %b = dist.sum_batches %0 : tensor<16x8xf32>
  // CHECK: dist.reshard %{{.*}} from <@mesh, [{"dp"}, {}]> to <@mesh, [{}, {"dp"}]> : tensor<16x8xf32>
  %1 = dist.reshard %0 from <@mesh, [{"dp"}, {}]> to <@mesh, [{}, {"dp"}]> : tensor<16x8xf32>
  // A sum over two axes, completed over one.
  // CHECK: dist.reshard %{{.*}} from <@mesh, [{}, {}], partial = sum{"dp", "tp"}> to <@mesh, [{"dp"}, {}], partial = sum{"tp"}> : tensor<16x8xf32>
  %2 = dist.reshard %1 from <@mesh, [{}, {}], partial = sum{"dp", "tp"}> to <@mesh, [{"dp"}, {}], partial = sum{"tp"}> : tensor<16x8xf32>
  // CHECK: from <@mesh, [{}, {}], partial = max{"dp"}> to <@mesh, [{}, {}]>
  %3 = dist.reshard %2 from <@mesh, [{}, {}], partial = max{"dp"}> to <@mesh, [{}, {}], partial = sum{}> : tensor<16x8xf32>
  // CHECK: from <@mesh, [{}, {}], partial = min{"dp"}> to <@mesh, [{}, {}]>
  %4 = dist.reshard %3 from <@mesh, [{}, {}], partial = min{"dp"}> to <@mesh, [{}, {}]> : tensor<16x8xf32>
  return %4 : tensor<16x8xf32>
}

// CHECK-LABEL: func.func @local_view(
func.func @local_view(%x: tensor<16x8xf32>) {
  // CHECK: dist.all_reduce sum %{{.*}} over @mesh ["dp"] : tensor<16x8xf32>
  %0 = dist.all_reduce sum %x over @mesh ["dp"] : tensor<16x8xf32>
  // CHECK: dist.all_reduce max %{{.*}} over @mesh ["dp", "tp"] : tensor<16x8xf32>
  %1 = dist.all_reduce max %x over @mesh ["dp", "tp"] : tensor<16x8xf32>
  // CHECK: dist.all_reduce min %{{.*}} over @mesh [] : tensor<16x8xf32>
  %2 = dist.all_reduce min %x over @mesh [] : tensor<16x8xf32>
  // CHECK: dist.all_gather %{{.*}} dim 1 over @mesh ["tp", "dp"] : (tensor<16x8xf32>) -> tensor<16x64xf32>
  %3 = dist.all_gather %x dim 1 over @mesh ["tp", "dp"] : (tensor<16x8xf32>) -> tensor<16x64xf32>
  // CHECK: dist.reduce_scatter sum %{{.*}} dim 0 over @mesh ["tp"] : (tensor<16x8xf32>) -> tensor<4x8xf32>
  %4 = dist.reduce_scatter sum %x dim 0 over @mesh ["tp"] : (tensor<16x8xf32>) -> tensor<4x8xf32>
  // CHECK: dist.all_to_all %{{.*}} split_dim 0 dim 1 over @mesh ["tp"] : (tensor<16x8xf32>) -> tensor<4x32xf32>
  %5 = dist.all_to_all %x split_dim 0 dim 1 over @mesh ["tp"] : (tensor<16x8xf32>) -> tensor<4x32xf32>
  // CHECK: dist.shard_slice %{{.*}} dim 0 over @mesh ["dp", "micro"] : (tensor<16x8xf32>) -> tensor<1x8xf32>
  %6 = dist.shard_slice %x dim 0 over @mesh ["dp", "micro"] : (tensor<16x8xf32>) -> tensor<1x8xf32>
  // CHECK: dist.shard_offset size 4 over @mesh ["tp", "micro"] : tensor<i32>
  %7 = dist.shard_offset size 4 over @mesh ["tp", "micro"] : tensor<i32>
  return
}

// CHECK-LABEL: func.func @microbatch_loop(
func.func @microbatch_loop(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) {
  // CHECK: %{{.*}}:2 = dist.microbatch_loop @mesh "micro" : tensor<4xf32>, tensor<f32> {
  // CHECK:   dist.yield %{{.*}}, %{{.*}} : tensor<4xf32>, tensor<f32>
  %0:2 = dist.microbatch_loop @mesh "micro" : tensor<4xf32>, tensor<f32> {
    %1 = dtc.exp %x : tensor<4xf32>
    %2 = dtc.reduce sum %1 dims [0] : (tensor<4xf32>) -> tensor<f32>
    dist.yield %1, %2 : tensor<4xf32>, tensor<f32>
  }
  // The terminator is there even if it is not written.
  // CHECK: dist.microbatch_loop @mesh "micro" attributes {note = 1 : i64} {
  // CHECK-NEXT: }
  dist.microbatch_loop @mesh "micro" attributes {note = 1} {
  }
  return %0#0, %0#1 : tensor<4xf32>, tensor<f32>
}

// CHECK-LABEL: func.func @signature(
// CHECK-SAME: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}]>}
// CHECK-SAME: tensor<f32> {dist.sharding = #dist.sharding<@mesh, [], partial = sum{"dp"}>}
// CHECK-SAME: -> (tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {}]>})
func.func @signature(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}]>},
                     %s: tensor<f32> {dist.sharding = #dist.sharding<@mesh, [], partial = sum{"dp"}>})
    -> (tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {}]>}) {
  // CHECK: dtc.exp %{{.*}} {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}]>}
  %0 = dtc.exp %x {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}]>} : tensor<8x4xf32>
  // CHECK: dtc.exp %{{.*}} {dist.sharding = [#dist.sharding<@mesh, [{"dp"}, {}]>]}
  %1 = dtc.exp %x {dist.sharding = [#dist.sharding<@mesh, [{"dp"}, {}]>]} : tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// A unit stands for a result whose sharding is not known.
// CHECK-LABEL: func.func @several_results(
func.func @several_results(%x: tensor<4x8xf32>, %labels: tensor<4xi32>) {
  // CHECK: dtc.cross_entropy %{{.*}} {dist.sharding = [#dist.sharding<@mesh, [{"dp"}]>, unit]}
  %0:2 = dtc.cross_entropy %x, %labels {dist.sharding = [#dist.sharding<@mesh, [{"dp"}]>, unit]}
      : (tensor<4x8xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// A mesh is visible in nested modules.
// CHECK-LABEL: module @inner
module @inner {
  func.func private @outside(tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{"tp"}]>})
}

// CHECK-LABEL: func.func @on_the_host(
// CHECK-SAME: tensor<4xf32> {dist.host}
func.func @on_the_host(%h: tensor<4xf32> {dist.host}, %x: tensor<4xf32>) {
  // CHECK: dist.copy %{{.*}} to "host" : tensor<4xf32>
  %0 = dist.copy %x to "host" : tensor<4xf32>
  // CHECK-NEXT: dtc.add %{{.*}}, %{{.*}} {dist.host} : tensor<4xf32>
  %1 = dtc.add %h, %0 {dist.host} : tensor<4xf32>
  // CHECK-NEXT: dist.copy %{{.*}} to "device" {note = 1 : i64} : tensor<4xf32>
  %2 = dist.copy %1 to "device" {note = 1} : tensor<4xf32>
  return
}
