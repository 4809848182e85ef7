// RUN: dtc-opt %s --split-input-file --dtc-spmd-partition | FileCheck %s

// Each form of a reshard.

// A sum is completed by an all_reduce, or by a reduce_scatter where the target is split by its axis.
// CHECK-LABEL: func.func @sums(
// CHECK-SAME: %[[ARG0:[^:]*]]: tensor<4x2xf32>
// CHECK-SAME: -> (tensor<f32> {dtc.global_shape = array<i64>}, tensor<2xf32> {dtc.global_shape = array<i64: 8>}, tensor<f32> {dtc.global_shape = array<i64>})
// CHECK-NEXT: %[[V0:[^ :]*]] = dtc.reduce sum %[[ARG0]] dims [0, 1]
// CHECK-NEXT: %[[V1:[^ :]*]] = dist.all_reduce sum %[[V0]] over @mesh ["dp", "tp"] : tensor<f32>
// CHECK-NEXT: %[[V2:[^ :]*]] = dtc.reduce sum %[[ARG0]] dims [1]
// CHECK-NEXT: %[[V3:[^ :]*]] = dist.reduce_scatter sum %[[V2]] dim 0 over @mesh ["tp"] : (tensor<4xf32>) -> tensor<2xf32>
// CHECK-NEXT: %[[V4:[^ :]*]] = dtc.reduce max %[[ARG0]] dims [0, 1]
// CHECK-NEXT: %[[V5:[^ :]*]] = dist.all_reduce max %[[V4]] over @mesh ["dp", "tp"] : tensor<f32>
// CHECK-NEXT: return %[[V1]], %[[V3]], %[[V5]]
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @sums(%x: tensor<8x4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}]>}) -> (tensor<f32>, tensor<8xf32>, tensor<f32>) {
  %0 = dtc.reduce sum %x dims [0, 1] {dist.sharding = #dist.sharding<@mesh, [], partial = sum{"dp", "tp"}>} : (tensor<8x4xf32>) -> tensor<f32>
  %1 = dist.reshard %0 from <@mesh, [], partial = sum{"dp", "tp"}> to <@mesh, []> {dist.sharding = #dist.sharding<@mesh, []>} : tensor<f32>
  %2 = dtc.reduce sum %x dims [1] {dist.sharding = #dist.sharding<@mesh, [{"dp"}], partial = sum{"tp"}>} : (tensor<8x4xf32>) -> tensor<8xf32>
  %3 = dist.reshard %2 from <@mesh, [{"dp"}], partial = sum{"tp"}> to <@mesh, [{"dp", "tp"}]> {dist.sharding = #dist.sharding<@mesh, [{"dp", "tp"}]>} : tensor<8xf32>
  %4 = dtc.reduce max %x dims [0, 1] {dist.sharding = #dist.sharding<@mesh, [], partial = max{"dp", "tp"}>} : (tensor<8x4xf32>) -> tensor<f32>
  %5 = dist.reshard %4 from <@mesh, [], partial = max{"dp", "tp"}> to <@mesh, []> {dist.sharding = #dist.sharding<@mesh, []>} : tensor<f32>
  return %1, %3, %5 : tensor<f32>, tensor<8xf32>, tensor<f32>
}

// -----

// Axes that are missing are sliced, those that are too many are gathered, and one that changes its dimension is exchanged.
// CHECK-LABEL: func.func @moves(
// CHECK-SAME: %[[ARG0:[^:]*]]: tensor<8x4xf32>
// CHECK-SAME: -> (tensor<4x4xf32> {dtc.global_shape = array<i64: 8, 4>})
// CHECK-NEXT: %[[V0:[^ :]*]] = dist.shard_slice %[[ARG0]] dim 0 over @mesh ["dp", "tp"] : (tensor<8x4xf32>) -> tensor<2x4xf32>
// CHECK-NEXT: %[[V1:[^ :]*]] = dist.all_to_all %[[V0]] split_dim 1 dim 0 over @mesh ["tp"] : (tensor<2x4xf32>) -> tensor<4x2xf32>
// CHECK-NEXT: %[[V2:[^ :]*]] = dist.all_gather %[[V1]] dim 1 over @mesh ["tp"] : (tensor<4x2xf32>) -> tensor<4x4xf32>
// CHECK-NEXT: return %[[V2]]
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @moves(%x: tensor<8x4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{}, {}]>}) -> tensor<8x4xf32> {
  %0 = dist.reshard %x from <@mesh, [{}, {}]> to <@mesh, [{"dp", "tp"}, {}]> {dist.sharding = #dist.sharding<@mesh, [{"dp", "tp"}, {}]>} : tensor<8x4xf32>
  %1 = dist.reshard %0 from <@mesh, [{"dp", "tp"}, {}]> to <@mesh, [{"dp"}, {"tp"}]> {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}]>} : tensor<8x4xf32>
  %2 = dist.reshard %1 from <@mesh, [{"dp"}, {"tp"}]> to <@mesh, [{"dp"}, {}]> {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}]>} : tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}

// -----

// A reshard may take several: here the sum over one axis, while the other goes from dimension to dimension.
// CHECK-LABEL: func.func @several(
// CHECK-SAME: %[[ARG0:[^:]*]]: tensor<4x4x1xf32>
// CHECK-SAME: -> (tensor<8x2xf32> {dtc.global_shape = array<i64: 8, 4>})
// CHECK-NEXT: %[[V0:[^ :]*]] = dtc.reduce sum %[[ARG0]] dims [2]
// CHECK-NEXT: %[[V1:[^ :]*]] = dist.all_to_all %[[V0]] split_dim 1 dim 0 over @mesh ["dp"] : (tensor<4x4xf32>) -> tensor<8x2xf32>
// CHECK-NEXT: %[[V2:[^ :]*]] = dist.all_reduce sum %[[V1]] over @mesh ["tp"] : tensor<8x2xf32>
// CHECK-NEXT: return %[[V2]]
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @several(%x: tensor<8x4x2xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}, {"tp"}]>}) -> tensor<8x4xf32> {
  %0 = dtc.reduce sum %x dims [2] {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}], partial = sum{"tp"}>} : (tensor<8x4x2xf32>) -> tensor<8x4xf32>
  %1 = dist.reshard %0 from <@mesh, [{"dp"}, {}], partial = sum{"tp"}> to <@mesh, [{}, {"dp"}]> {dist.sharding = #dist.sharding<@mesh, [{}, {"dp"}]>} : tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// -----

// Axes of size one split nothing and move nothing; constraints have done their work.
// CHECK-LABEL: func.func @size_one(
// CHECK-SAME: %[[ARG0:[^:]*]]: tensor<8x4xf32>
// CHECK-SAME: -> (tensor<f32> {dtc.global_shape = array<i64>})
// CHECK-NEXT: %[[V0:[^ :]*]] = dtc.reduce sum %[[ARG0]] dims [0, 1]
// CHECK-NEXT: return %[[V0]]
dist.mesh @mesh <"dp"=1, "tp"=1>
func.func @size_one(%x: tensor<8x4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}]>}) -> tensor<f32> {
  %0 = dist.constrain %x to <@mesh, [{"dp"}, {"tp"}]> {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}]>} : tensor<8x4xf32>
  %1 = dtc.reduce sum %0 dims [0, 1] {dist.sharding = #dist.sharding<@mesh, [], partial = sum{"dp", "tp"}>} : (tensor<8x4xf32>) -> tensor<f32>
  %2 = dist.reshard %1 from <@mesh, [], partial = sum{"dp", "tp"}> to <@mesh, []> {dist.sharding = #dist.sharding<@mesh, []>} : tensor<f32>
  return %2 : tensor<f32>
}

// -----

// The signature: local types, global shapes, no logical axes; attributes that hold sizes become local too.
// CHECK-LABEL: func.func @local_types(
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}]>, dtc.global_shape = array<i64: 8, 8>, dtc.input = "x"},
// CHECK-SAME: %{{.*}}: tensor<3xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>, dtc.global_shape = array<i64: 3>, dtc.param = "w"})
// CHECK-SAME: -> (tensor<4x6xf32> {dtc.global_shape = array<i64: 8, 6>}, tensor<1x32xf32> {dtc.global_shape = array<i64: 2, 32>}, tensor<4xf32> {dtc.global_shape = array<i64: 8>})
// CHECK-NEXT: dtc.slice %[[X]] offsets [0, 2] sizes [4, 6] : (tensor<4x8xf32>) -> tensor<4x6xf32>
// CHECK-NEXT: dtc.reshape %[[X]] : (tensor<4x8xf32>) -> tensor<1x32xf32>
// CHECK-NEXT: dtc.constant dense<1.000000e+00> : tensor<4xf32>
dist.mesh @mesh <"dp"=2>
func.func @local_types(%x: tensor<8x8xf32> {dtc.input = "x", dtc.axes = ["batch", ""], dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}]>},
                       %w: tensor<3xf32> {dtc.param = "w", dist.sharding = #dist.sharding<@mesh, [{}]>}) -> (tensor<8x6xf32>, tensor<2x32xf32>, tensor<8xf32>) {
  %0 = dtc.slice %x offsets [0, 2] sizes [8, 6] {dtc.axes = ["batch", ""], dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}]>} : (tensor<8x8xf32>) -> tensor<8x6xf32>
  %1 = dtc.reshape %x {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}]>} : (tensor<8x8xf32>) -> tensor<2x32xf32>
  %2 = dtc.constant {dist.sharding = #dist.sharding<@mesh, [{"dp"}]>} dense<1.0> : tensor<8xf32>
  return %0, %1, %2 : tensor<8x6xf32>, tensor<2x32xf32>, tensor<8xf32>
}

// -----

// Indices into a sharded vocabulary count from the shard's first row; rows of other shards come out as zeros and the sum
// makes them up. The input's range is that of the whole.
// CHECK-LABEL: func.func @embedding(
// CHECK-SAME: %[[ARG0:[^:]*]]: tensor<4x8xf32>
// CHECK-SAME: %[[ARG1:[^:]*]]: tensor<4x2xi32> {dist.sharding = #dist.sharding<@mesh, [{}, {"dp"}]>, dtc.global_shape = array<i64: 4, 4>, dtc.index_limit = 16 : i64, dtc.input = "ids"}
// CHECK-SAME: -> (tensor<4x2x8xf32> {dtc.global_shape = array<i64: 4, 4, 8>})
// CHECK-NEXT: %[[V0:[^ :]*]] = dist.shard_offset size 16 over @mesh ["tp"] : tensor<i32>
// CHECK-NEXT: %[[V1:[^ :]*]] = dtc.broadcast %[[V0]] dims []
// CHECK-NEXT: %[[V2:[^ :]*]] = dtc.sub %[[ARG1]], %[[V1]]
// CHECK-NEXT: %[[V3:[^ :]*]] = dtc.embedding %[[ARG0]], %[[V2]]
// CHECK-NEXT: %[[V4:[^ :]*]] = dist.all_reduce sum %[[V3]] over @mesh ["tp"] : tensor<4x2x8xf32>
// CHECK-NEXT: return %[[V4]]
dist.mesh @mesh <"dp"=2, "tp"=4>
func.func @embedding(%w: tensor<16x8xf32> {dtc.param = "w", dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>},
                     %ids: tensor<4x4xi32> {dtc.input = "ids", dist.sharding = #dist.sharding<@mesh, [{}, {"dp"}]>}) -> tensor<4x4x8xf32> {
  %0 = dtc.embedding %w, %ids {dist.sharding = #dist.sharding<@mesh, [{}, {"dp"}, {}], partial = sum{"tp"}>} : (tensor<16x8xf32>, tensor<4x4xi32>) -> tensor<4x4x8xf32>
  %1 = dist.reshard %0 from <@mesh, [{}, {"dp"}, {}], partial = sum{"tp"}> to <@mesh, [{}, {"dp"}, {}]> {dist.sharding = #dist.sharding<@mesh, [{}, {"dp"}, {}]>} : tensor<4x4x8xf32>
  return %1 : tensor<4x4x8xf32>
}

// -----

// The work on a microbatch is in the loop, on its slice of the data, which are there whole. Ops that depend on no
// microbatch run before it, ops that depend on their sum after it; sums between devices run once, after the loop.
// CHECK-LABEL: func.func @microbatches(
// CHECK-SAME: %[[ARG0:[^:]*]]: tensor<4xf32>
// CHECK-SAME: %[[ARG1:[^:]*]]: tensor<8x4xf32>
// CHECK-SAME: -> (tensor<4xf32> {dtc.global_shape = array<i64: 4>})
// CHECK-NEXT: %[[V0:[^ :]*]] = dtc.exp %[[ARG0]]
// CHECK-NEXT: %[[V1:[^ :]*]] = dist.microbatch_loop @mesh "micro" : tensor<4xf32> {
// CHECK-NEXT: %[[V2:[^ :]*]] = dist.shard_slice %[[ARG1]] dim 0 over @mesh ["micro"] : (tensor<8x4xf32>) -> tensor<2x4xf32>
// CHECK-NEXT: %[[V3:[^ :]*]] = dtc.broadcast %[[V0]] dims [1]
// CHECK-NEXT: %[[V4:[^ :]*]] = dtc.mul %[[V2]], %[[V3]]
// CHECK-NEXT: %[[V5:[^ :]*]] = dtc.reduce sum %[[V4]] dims [0]
// CHECK-NEXT: dist.yield %[[V5]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[V6:[^ :]*]] = dist.all_reduce sum %[[V1]] over @mesh ["dp"] : tensor<4xf32>
// CHECK-NEXT: %[[V7:[^ :]*]] = dtc.exp %[[V6]]
// CHECK-NEXT: %[[V8:[^ :]*]] = dtc.add %[[V7]], %[[V0]]
// CHECK-NEXT: return %[[V8]]
dist.mesh @mesh <"dp"=2, "micro"=4 temporal>
func.func @microbatches(%w: tensor<4xf32> {dtc.param = "w", dist.sharding = #dist.sharding<@mesh, [{}]>},
                        %x: tensor<16x4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}, {}]>}) -> tensor<4xf32> {
  %before = dtc.exp %w {dist.sharding = #dist.sharding<@mesh, [{}]>} : tensor<4xf32>
  %rows = dtc.broadcast %before dims [1] {dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}, {}]>} : (tensor<4xf32>) -> tensor<16x4xf32>
  %in = dtc.mul %x, %rows {dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}, {}]>} : tensor<16x4xf32>
  %part = dtc.reduce sum %in dims [0] {dist.sharding = #dist.sharding<@mesh, [{}], partial = sum{"dp", "micro"}>} : (tensor<16x4xf32>) -> tensor<4xf32>
  %sum = dist.reshard %part from <@mesh, [{}], partial = sum{"dp", "micro"}> to <@mesh, [{}]> {dist.sharding = #dist.sharding<@mesh, [{}]>} : tensor<4xf32>
  %after = dtc.exp %sum {dist.sharding = #dist.sharding<@mesh, [{}]>} : tensor<4xf32>
  %late_user = dtc.add %after, %before {dist.sharding = #dist.sharding<@mesh, [{}]>} : tensor<4xf32>
  return %late_user : tensor<4xf32>
}

// -----

// A sum between devices that the computation of a microbatch needs is in the loop.
// CHECK-LABEL: func.func @collective_in_loop(
// CHECK-SAME: %[[ARG0:[^:]*]]: tensor<16x2xf32>
// CHECK-SAME: -> (tensor<f32> {dtc.global_shape = array<i64>})
// CHECK-NEXT: %[[V0:[^ :]*]] = dist.microbatch_loop @mesh "micro" : tensor<f32> {
// CHECK-NEXT: %[[V1:[^ :]*]] = dist.shard_slice %[[ARG0]] dim 0 over @mesh ["micro"] : (tensor<16x2xf32>) -> tensor<4x2xf32>
// CHECK-NEXT: %[[V2:[^ :]*]] = dtc.reduce sum %[[V1]] dims [1]
// CHECK-NEXT: %[[V3:[^ :]*]] = dist.all_reduce sum %[[V2]] over @mesh ["tp"] : tensor<4xf32>
// CHECK-NEXT: %[[V4:[^ :]*]] = dtc.exp %[[V3]]
// CHECK-NEXT: %[[V5:[^ :]*]] = dtc.reduce sum %[[V4]] dims [0]
// CHECK-NEXT: dist.yield %[[V5]]
// CHECK-NEXT: }
// CHECK-NEXT: return %[[V0]]
dist.mesh @mesh <"tp"=2, "micro"=4 temporal>
func.func @collective_in_loop(%x: tensor<16x4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"micro"}, {"tp"}]>}) -> tensor<f32> {
  %0 = dtc.reduce sum %x dims [1] {dist.sharding = #dist.sharding<@mesh, [{"micro"}], partial = sum{"tp"}>} : (tensor<16x4xf32>) -> tensor<16xf32>
  %1 = dist.reshard %0 from <@mesh, [{"micro"}], partial = sum{"tp"}> to <@mesh, [{"micro"}]> {dist.sharding = #dist.sharding<@mesh, [{"micro"}]>} : tensor<16xf32>
  %2 = dtc.exp %1 {dist.sharding = #dist.sharding<@mesh, [{"micro"}]>} : tensor<16xf32>
  %3 = dtc.reduce sum %2 dims [0] {dist.sharding = #dist.sharding<@mesh, [], partial = sum{"micro"}>} : (tensor<16xf32>) -> tensor<f32>
  %4 = dist.reshard %3 from <@mesh, [], partial = sum{"micro"}> to <@mesh, []> {dist.sharding = #dist.sharding<@mesh, []>} : tensor<f32>
  return %4 : tensor<f32>
}

// -----

// Nothing of the loop is used: it has no results. An argument can be a result, and a value two.
// CHECK-LABEL: func.func @odd(
// CHECK-SAME: %[[ARG0:[^:]*]]: tensor<8xf32>
// CHECK-SAME: %[[ARG1:[^:]*]]: tensor<4xf32>
// CHECK-SAME: -> (tensor<4xf32> {dtc.global_shape = array<i64: 4>}, tensor<4xf32> {dtc.global_shape = array<i64: 4>})
// CHECK-NEXT: dist.microbatch_loop @mesh "micro" {
// CHECK-NEXT: %[[V0:[^ :]*]] = dist.shard_slice %[[ARG0]] dim 0 over @mesh ["micro"] : (tensor<8xf32>) -> tensor<2xf32>
// CHECK-NEXT: %[[V1:[^ :]*]] = dtc.exp %[[V0]]
// CHECK-NEXT: }
// CHECK-NEXT: return %[[ARG1]], %[[ARG1]]
dist.mesh @mesh <"micro"=4 temporal>
func.func @odd(%x: tensor<8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"micro"}]>},
               %w: tensor<4xf32> {dtc.param = "w", dist.sharding = #dist.sharding<@mesh, [{}]>}) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = dtc.exp %x {dist.sharding = #dist.sharding<@mesh, [{"micro"}]>} : tensor<8xf32>
  return %w, %w : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK: func.func private @no_body(tensor<8xf32>)
// CHECK: func.func @nothing() {
// CHECK-NEXT: return
dist.mesh @mesh <>
func.func private @no_body(tensor<8xf32>)
func.func @nothing() {
  return
}
