// RUN: dtc-opt %s --split-input-file --dtc-propagate-shardings --dtc-insert-reshards --dtc-spmd-partition 2>/dev/null | FileCheck %s

// Five rows in shards of three: the sixth is padding, whose value nobody knows. Where rows are summed it is made zero, where
// the largest or the smallest is looked for the least or the greatest number; where rows stay apart it is left alone.
// CHECK-LABEL: func.func @reductions(
// CHECK-SAME: %[[X:[^:]*]]: tensor<3x4xf32>
// CHECK-SAME: dtc.global_shape = array<i64: 5, 4>
// CHECK-NEXT: %[[Z:.*]] = dist.mask_padding zero %[[X]] dim 0 of 5 over @mesh ["tp"] : tensor<3x4xf32>
// CHECK-NEXT: %[[SUM:.*]] = dtc.reduce sum %[[Z]] dims [0] : (tensor<3x4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[L:.*]] = dist.mask_padding lowest %[[X]] dim 0 of 5 over @mesh ["tp"] : tensor<3x4xf32>
// CHECK-NEXT: %[[MAX:.*]] = dtc.reduce max %[[L]] dims [0] : (tensor<3x4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[H:.*]] = dist.mask_padding highest %[[X]] dim 0 of 5 over @mesh ["tp"] : tensor<3x4xf32>
// CHECK-NEXT: %[[MIN:.*]] = dtc.reduce min %[[H]] dims [0] : (tensor<3x4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[EXP:.*]] = dtc.exp %[[X]] : tensor<3x4xf32>
// CHECK-NEXT: %[[ROWS:.*]] = dtc.reduce sum %[[EXP]] dims [1] : (tensor<3x4xf32>) -> tensor<3xf32>
// CHECK-NEXT: %[[S:.*]] = dist.all_reduce sum %[[SUM]] over @mesh ["tp"]
// CHECK-NEXT: %[[A:.*]] = dist.all_reduce max %[[MAX]] over @mesh ["tp"]
// CHECK-NEXT: %[[I:.*]] = dist.all_reduce min %[[MIN]] over @mesh ["tp"]
// CHECK-NEXT: return %[[S]], %[[A]], %[[I]], %[[ROWS]]
dist.mesh @mesh <"tp"=2>
func.func @reductions(%x: tensor<5x4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>})
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<5xf32>) {
  %0 = dtc.reduce sum %x dims [0] : (tensor<5x4xf32>) -> tensor<4xf32>
  %1 = dtc.reduce max %x dims [0] : (tensor<5x4xf32>) -> tensor<4xf32>
  %2 = dtc.reduce min %x dims [0] : (tensor<5x4xf32>) -> tensor<4xf32>
  %3 = dtc.exp %x : tensor<5x4xf32>
  %4 = dtc.reduce sum %3 dims [1] : (tensor<5x4xf32>) -> tensor<5xf32>
  return %0, %1, %2, %4 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<5xf32>
}

// -----

// The product of two paddings may be no number: both operands of a contraction over padded rows are masked. Where rows divide
// there is no mask.
// CHECK-LABEL: func.func @contraction(
// CHECK-SAME: %[[X:[^:]*]]: tensor<3x4xf32>{{.*}} %[[Y:[^:]*]]: tensor<3x2xf32>{{.*}} %[[Z:[^:]*]]: tensor<3x2xf32>
// CHECK-DAG: %[[MX:.*]] = dist.mask_padding zero %[[X]] dim 0 of 5 over @mesh ["tp"]
// CHECK-DAG: %[[MY:.*]] = dist.mask_padding zero %[[Y]] dim 0 of 5 over @mesh ["tp"]
// CHECK: dtc.einsum "bi,bo->io" %[[MX]], %[[MY]] : (tensor<3x4xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
// CHECK-NEXT: dtc.reduce sum %[[Z]] dims [0]
dist.mesh @mesh <"tp"=2>
func.func @contraction(%x: tensor<5x4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>},
                       %y: tensor<5x2xf32> {dtc.input = "y", dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>},
                       %z: tensor<6x2xf32> {dtc.input = "z", dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>}) -> (tensor<4x2xf32>, tensor<2xf32>) {
  %0 = dtc.einsum "bi,bo->io" %x, %y : (tensor<5x4xf32>, tensor<5x2xf32>) -> tensor<4x2xf32>
  %1 = dtc.reduce sum %z dims [0] : (tensor<6x2xf32>) -> tensor<2xf32>
  return %0, %1 : tensor<4x2xf32>, tensor<2xf32>
}

// -----

// A gathered tensor is cut to its real elements; over two axes the blocks of blocks are, one after the other: five in
// blocks of three, and those in blocks of two.
// CHECK-LABEL: func.func @gathers(
// CHECK-SAME: %[[X:[^:]*]]: tensor<3x4xf32>{{.*}} %[[Y:[^:]*]]: tensor<2xf32>
// CHECK: %[[G:.*]] = dist.all_gather %[[X]] dim 0 over @mesh ["a"] {{.*}} : (tensor<3x4xf32>) -> tensor<6x4xf32>
// CHECK-NEXT: dtc.slice %[[G]] offsets [0, 0] sizes [5, 4] : (tensor<6x4xf32>) -> tensor<5x4xf32>
// CHECK: %[[B:.*]] = dist.all_gather %[[Y]] dim 0 over @mesh ["b"] {{.*}} : (tensor<2xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[C:.*]] = dtc.slice %[[B]] offsets [0] sizes [3] : (tensor<4xf32>) -> tensor<3xf32>
// CHECK-NEXT: %[[A:.*]] = dist.all_gather %[[C]] dim 0 over @mesh ["a"] {{.*}} : (tensor<3xf32>) -> tensor<6xf32>
// CHECK-NEXT: dtc.slice %[[A]] offsets [0] sizes [5] : (tensor<6xf32>) -> tensor<5xf32>
dist.mesh @mesh <"a"=2, "b"=2>
func.func @gathers(%x: tensor<5x4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"a"}, {}]>},
                   %y: tensor<5xf32> {dtc.input = "y", dist.sharding = #dist.sharding<@mesh, [{"a", "b"}]>}) -> (tensor<5x4xf32>, tensor<5xf32>) {
  %0 = dist.constrain %x to <@mesh, [{}, {}]> : tensor<5x4xf32>
  %1 = dist.constrain %y to <@mesh, [{}]> : tensor<5xf32>
  return %0, %1 : tensor<5x4xf32>, tensor<5xf32>
}

// -----

// Scattered and exchanged tensors are padded before, and exchanged ones are cut after that. A slice needs neither.
// CHECK-LABEL: func.func @scatters(
// CHECK-SAME: %[[X:[^:]*]]: tensor<5x2xf32>{{.*}} %[[Y:[^:]*]]: tensor<3x3xf32>{{.*}} %[[Z:[^:]*]]: tensor<5xf32>
// CHECK: %[[S:.*]] = dtc.reduce sum %[[X]] dims [1] : (tensor<5x2xf32>) -> tensor<5xf32>
// CHECK-NEXT: %[[P:.*]] = dtc.pad %[[S]] low [0] high [1] {{.*}} : (tensor<5xf32>) -> tensor<6xf32>
// CHECK-NEXT: dist.reduce_scatter sum %[[P]] dim 0 over @mesh ["tp"] {{.*}} : (tensor<6xf32>) -> tensor<3xf32>
// CHECK-NEXT: %[[Q:.*]] = dtc.pad %[[Y]] low [0, 0] high [0, 1] {{.*}} : (tensor<3x3xf32>) -> tensor<3x4xf32>
// CHECK-NEXT: %[[E:.*]] = dist.all_to_all %[[Q]] split_dim 1 dim 0 over @mesh ["tp"] {{.*}} : (tensor<3x4xf32>) -> tensor<6x2xf32>
// CHECK-NEXT: dtc.slice %[[E]] offsets [0, 0] sizes [5, 2] : (tensor<6x2xf32>) -> tensor<5x2xf32>
// CHECK-NEXT: dist.shard_slice %[[Z]] dim 0 over @mesh ["tp"] : (tensor<5xf32>) -> tensor<3xf32>
// CHECK-NEXT: return
dist.mesh @mesh <"tp"=2>
func.func @scatters(%x: tensor<5x4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>},
                    %y: tensor<5x3xf32> {dtc.input = "y", dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>},
                    %z: tensor<5xf32> {dtc.input = "z", dist.sharding = #dist.sharding<@mesh, [{}]>}) -> (tensor<5xf32>, tensor<5x3xf32>, tensor<5xf32>) {
  %0 = dtc.reduce sum %x dims [1] : (tensor<5x4xf32>) -> tensor<5xf32>
  %1 = dist.constrain %0 to <@mesh, [{"tp"}]> : tensor<5xf32>
  %2 = dist.constrain %y to <@mesh, [{}, {"tp"}]> : tensor<5x3xf32>
  %3 = dist.constrain %z to <@mesh, [{"tp"}]> : tensor<5xf32>
  return %1, %2, %3 : tensor<5xf32>, tensor<5x3xf32>, tensor<5xf32>
}

// -----

// A vocabulary of 14 in shards of four, the last of which has two: indices count from the shard's start, and that is four
// times its number. (The range of the indices is that of the whole.)
// CHECK-LABEL: func.func @embedding(
// CHECK-SAME: %[[W:[^:]*]]: tensor<4x8xf32>{{.*}} %[[I:[^:]*]]: tensor<3xi32>{{.*}} dtc.index_limit = 14 : i64
// CHECK: %[[O:.*]] = dist.shard_offset size 14 over @mesh ["tp"] : tensor<i32>
// CHECK-NEXT: %[[B:.*]] = dtc.broadcast %[[O]] dims [] : (tensor<i32>) -> tensor<3xi32>
// CHECK-NEXT: %[[L:.*]] = dtc.sub %[[I]], %[[B]] : tensor<3xi32>
// CHECK-NEXT: %[[E:.*]] = dtc.embedding %{{.*}}, %[[L]] : (tensor<4x8xf32>, tensor<3xi32>) -> tensor<3x8xf32>
// CHECK-NEXT: dist.all_reduce sum %[[E]] over @mesh ["tp"]
dist.mesh @mesh <"tp"=4>
func.func @embedding(%w: tensor<14x8xf32> {dtc.param = "w", dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>},
                     %ids: tensor<3xi32> {dtc.input = "ids"}) -> tensor<3x8xf32> {
  %0 = dtc.embedding %w, %ids : (tensor<14x8xf32>, tensor<3xi32>) -> tensor<3x8xf32>
  return %0 : tensor<3x8xf32>
}

// -----

// Axes in another order: shards change hands whole.
// CHECK-LABEL: func.func @permute(
// CHECK-SAME: %[[X:[^:]*]]: tensor<2xf32>
// CHECK-NEXT: %[[P:.*]] = dist.permute %[[X]] over @mesh ["a", "b"] from ["b", "a"] {{.*}}: tensor<2xf32>
// CHECK-NEXT: return %[[P]]
dist.mesh @mesh <"a"=2, "b"=3>
func.func @permute(%x: tensor<12xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"a", "b"}]>}) -> tensor<12xf32> {
  %0 = dist.constrain %x to <@mesh, [{"b", "a"}]> : tensor<12xf32>
  return %0 : tensor<12xf32>
}

// -----

// Ten samples on two devices and in three microbatches: five for each device, two of them in each microbatch, but one
// in the last. Nothing after the last sample counts.
// CHECK-LABEL: func.func @microbatches(
// CHECK-SAME: %[[X:[^:]*]]: tensor<5xf32>
// CHECK: dist.microbatch_loop
// CHECK-NEXT: %[[S:.*]] = dist.shard_slice %[[X]] dim 0 over @mesh ["micro"] : (tensor<5xf32>) -> tensor<2xf32>
// CHECK-NEXT: %[[M:.*]] = dist.mask_padding zero %[[S]] dim 0 of 10 over @mesh ["dp", "micro"] : tensor<2xf32>
// CHECK-NEXT: dtc.reduce sum %[[M]] dims [0] : (tensor<2xf32>) -> tensor<f32>
dist.mesh @mesh <"dp"=2, "micro"=3 temporal>
func.func @microbatches(%x: tensor<10xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}]>}) -> tensor<f32> {
  %0 = dtc.reduce sum %x dims [0] : (tensor<10xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
