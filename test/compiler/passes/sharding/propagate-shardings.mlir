// RUN: dtc-opt %s --split-input-file --dtc-propagate-shardings=default-shard=batch=dp+micro,mlp=tp,vocab=tp,heads=tp | FileCheck %s
// RUN: dtc-opt %S/Inputs/rows.mlir --dtc-propagate-shardings="shard=batch=dp default-shard=embed=tp,batch=tp" | FileCheck %s --check-prefix=SHARD
// RUN: dtc-opt %S/Inputs/sequences.mlir --dtc-propagate-shardings="default-shard=residual_seq=tp@1,mlp=tp" 2>&1 | FileCheck %s --check-prefix=SEQUENCE
// RUN: dtc-opt %S/Inputs/sequences.mlir --dtc-propagate-shardings="shard=residual_seq=tp@1,mlp=tp" 2>&1 | FileCheck %s --check-prefix=SEQUENCE
// RUN: dtc-opt %S/Inputs/sequences.mlir --dtc-propagate-shardings="shard=residual_seq=tp,mlp=tp@1" 2>&1 | FileCheck %s --check-prefix=URGENT

// A priority in the map: what is mapped without one, or with a lower one, has the axis.
// SEQUENCE: tensor<2x8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}, {}]>, {{.*}}"between"}
// SEQUENCE-SAME: tensor<2x8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {}, {"tp"}]>, {{.*}}"inside"}
// URGENT: tensor<2x8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}, {}]>, {{.*}}"between"}
// URGENT-SAME: tensor<2x8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}, {}]>, {{.*}}"inside"}

// The user's map wins over a default.
// SHARD: tensor<8x6xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}]>

// A column of the first weight, a row of the second (Megatron-LM): the batch comes from the input, the hidden dimension
// from the first weight, and the result of the second product is whole. The axis that it sums over is no sharding yet,
// but the op keeps it (dist.factors).
// CHECK-LABEL: func.func @mlp(
// CHECK-SAME: tensor<8x6xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}, {}]>
// CHECK-SAME: tensor<6x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>
// CHECK-SAME: tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{"tp"}]>
// CHECK-SAME: tensor<4x6xf32> {dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>
// CHECK: dtc.einsum "bi,ih->bh" {{.*}}{dist.factors = {{\[\["dp", "micro"\], \[\], \["tp"\]\]}}, dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}, {"tp"}]>}
// CHECK: dtc.broadcast {{.*}}dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}, {"tp"}]>}
// CHECK: dtc.add {{.*}}dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}, {"tp"}]>}
// CHECK: dtc.gelu tanh {{.*}}dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}, {"tp"}]>}
// CHECK: dtc.einsum "bh,ho->bo" {{.*}}{dist.factors = {{\[\["dp", "micro"\], \["tp"\], \[\]\]}}, dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}, {}]>}
// CHECK: dtc.reduce sum {{.*}}dist.sharding = #dist.sharding<@mesh, []>}
dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=2 temporal>
func.func @mlp(%x: tensor<8x6xf32> {dtc.input = "x", dtc.axes = ["batch", ""]},
               %w: tensor<6x4xf32> {dtc.param = "w", dtc.axes = ["embed", "mlp"]},
               // The bias and the second weight take over the sharding of the first.
               %b: tensor<4xf32> {dtc.param = "b"}, %v: tensor<4x6xf32> {dtc.param = "v"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,ih->bh" %x, %w : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  %1 = dtc.broadcast %b dims [1] : (tensor<4xf32>) -> tensor<8x4xf32>
  %2 = dtc.add %0, %1 : tensor<8x4xf32>
  %3 = dtc.gelu tanh %2 : tensor<8x4xf32>
  %4 = dtc.einsum "bh,ho->bo" %3, %v : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %5 = dtc.reduce sum %4 dims [0, 1] : (tensor<8x6xf32>) -> tensor<f32>
  return %5 : tensor<f32>
}

// -----

// Backwards: from what is asked of a result to the arguments.
// CHECK-LABEL: func.func @backwards(
// CHECK-SAME: tensor<4x8xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"dp"}]>
// CHECK: dtc.transpose {{.*}}dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}]>
// CHECK: %[[E:.*]] = dtc.exp {{.*}}dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}]>}
// CHECK: dist.constrain %[[E]] to <@mesh, [{"dp"}, {}]> {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}]>}
dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=2 temporal>
func.func @backwards(%x: tensor<4x8xf32> {dtc.input = "x", dtc.axes = ["", ""]}) -> tensor<8x4xf32> {
  %0 = dtc.transpose %x permutation [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %1 = dtc.exp %0 : tensor<8x4xf32>
  %2 = dist.constrain %1 to <@mesh, [{"dp"}, {}]> : tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}

// -----

// Written shardings are never changed: the argument keeps its own, and so do constrained values, in spite of the map
// and of each other. Users and producers of a constrained value see its sharding.
// CHECK-LABEL: func.func @fixed(
// CHECK-SAME: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>, dtc.axes = ["batch", "mlp"]
// CHECK: %[[C:.*]] = dist.constrain %{{.*}} to <@mesh, [{}, {"dp"}]> {dist.sharding = #dist.sharding<@mesh, [{}, {"dp"}]>}
// CHECK: dtc.exp %[[C]] {{.*}}dist.sharding = #dist.sharding<@mesh, [{}, {"dp"}]>}
dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=2 temporal>
func.func @fixed(%x: tensor<8x4xf32> {dtc.input = "x", dtc.axes = ["batch", "mlp"], dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>}) -> tensor<8x4xf32> {
  %0 = dist.constrain %x to <@mesh, [{}, {"dp"}]> : tensor<8x4xf32>
  %1 = dtc.exp %0 : tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// -----

// A sharding on an op is a constraint on its result; one of several results may have one.
// CHECK-LABEL: func.func @written_on_ops(
// CHECK: %[[E:.*]] = dtc.exp %{{.*}}dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>}
// CHECK: %[[C:.*]] = dist.constrain %[[E]] to <@mesh, [{"tp"}, {}]>
// CHECK: %[[LOSS:.*]], %[[LSE:.*]] = dtc.cross_entropy %[[C]]{{.*}}dist.sharding = [#dist.sharding<@mesh, [{"tp"}]>, #dist.sharding<@mesh, [{"tp"}]>]}
// CHECK: %[[L:.*]] = dist.constrain %[[LSE]] to <@mesh, [{"dp"}]> {dist.sharding = #dist.sharding<@mesh, [{"dp"}]>}
// CHECK: return %[[LOSS]], %[[L]]
dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=2 temporal>
func.func @written_on_ops(%x: tensor<8x4xf32> {dtc.input = "x", dtc.axes = ["", ""]}, %l: tensor<8xi32> {dtc.input = "l"}) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = dtc.exp %x {dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>} : tensor<8x4xf32>
  %1:2 = dtc.cross_entropy %0, %l {dist.sharding = [unit, #dist.sharding<@mesh, [{"dp"}]>]} : (tensor<8x4xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %1#0, %1#1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// Where two operands contradict and one is split over microbatches, which cannot see each other, that one's sharding goes
// on, however large the other is.
// CHECK-LABEL: func.func @conflict(
// CHECK-SAME: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}, {}]>
// CHECK-SAME: tensor<4x64xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"dp"}]>
// CHECK: dtc.einsum {{.*}}{dist.factors = {{\[\["dp", "micro"\], \[\], \[\]\]}}, dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}, {}]>}
dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=2 temporal>
func.func @conflict(%x: tensor<8x4xf32> {dtc.input = "x", dtc.axes = ["batch", ""]},
                    %w: tensor<4x64xf32> {dtc.param = "w", dist.sharding = #dist.sharding<@mesh, [{}, {"dp"}]>}) -> tensor<8x64xf32> {
  %0 = dtc.einsum "bi,ih->bh" %x, %w : (tensor<8x4xf32>, tensor<4x64xf32>) -> tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}

// -----

// default-shard splits dimensions, with padding where they do not divide (5 rows in blocks of 3), leaves them whole if
// some devices would have nothing but padding (1 row for 2), and does not use an axis twice.
// CHECK-LABEL: func.func @defaults(
// CHECK-SAME: tensor<5x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>, dtc.axes = ["vocab", ""]
// CHECK-SAME: tensor<4x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>, dtc.axes = ["vocab", "heads"]
// CHECK-SAME: tensor<1x8xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {}]>, dtc.axes = ["vocab", ""]
// CHECK-SAME: tensor<8xi32> {dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}]>
// Half a batch of 3 is 2, or 1 with padding; its microbatches would have 1: enough. With a batch of 2 some would have
// nothing.
// CHECK-SAME: tensor<3xi32> {dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}]>
// CHECK-SAME: tensor<2xi32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}]>
dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=2 temporal>
func.func @defaults(%a: tensor<5x8xf32> {dtc.param = "a", dtc.axes = ["vocab", ""]},
                    %b: tensor<4x8xf32> {dtc.param = "b", dtc.axes = ["vocab", "heads"]},
                    %one: tensor<1x8xf32> {dtc.param = "one", dtc.axes = ["vocab", ""]},
                    %c: tensor<8xi32> {dtc.input = "c", dtc.axes = ["batch"]},
                    %d: tensor<3xi32> {dtc.input = "d", dtc.axes = ["batch"]},
                    %e: tensor<2xi32> {dtc.input = "e", dtc.axes = ["batch"]}) {
  return
}

// -----

// dtc.axes on an op.
// CHECK-LABEL: func.func @axes_on_op(
// CHECK: dtc.reshape {{.*}} {dist.factors = {{\[\[\], \["tp"\], \[\]\]}}, dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}, {}]>, dtc.axes = ["", "heads", ""]}
// CHECK: dtc.constant {dist.factors = {{\[\["tp"\], \[\]\]}}, dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>, dtc.axes = ["mlp", ""]}
dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=2 temporal>
func.func @axes_on_op(%x: tensor<8x8xf32> {dtc.input = "x", dtc.axes = ["", ""]}) -> (tensor<8x4x2xf32>, tensor<4x2xf32>) {
  %0 = dtc.reshape %x {dtc.axes = ["", "heads", ""]} : (tensor<8x8xf32>) -> tensor<8x4x2xf32>
  %1 = dtc.constant {dtc.axes = ["mlp", ""]} dense<1.0> : tensor<4x2xf32>
  return %0, %1 : tensor<8x4x2xf32>, tensor<4x2xf32>
}

// -----

// With the vocabulary sharded the loss is written as simpler ops, whose maximum and sum can be reduced; the gradient's
// rows need nothing of each other.
// CHECK-LABEL: func.func @cross_entropy(
// CHECK: dtc.reshape {{.*}}dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}, {"tp"}, {}]>} : (tensor<8x16xf32>) -> tensor<8x2x8xf32>
// CHECK: %{{.*}}, %[[PARTS:.*]] = dtc.cross_entropy {{.*}}dist.sharding = [{{.*}}, #dist.sharding<@mesh, [{"dp", "micro"}, {"tp"}]>]}
// CHECK-NOT: dtc.cross_entropy %
// CHECK: dtc.reduce max %[[PARTS]] {{.*}}dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}]>}
// CHECK: dtc.exp {{.*}}dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}, {"tp"}]>}
// CHECK: dtc.reduce sum {{.*}}dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}]>}
// CHECK: dtc.pick {{.*}}dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}]>}
// CHECK: %[[LOSS:.*]] = dtc.sub
// CHECK: %[[D:.*]] = dtc.cross_entropy_grad {{.*}}, %[[LOSS]] {{.*}}dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}, {"tp"}]>}
// CHECK-NOT: dtc.softmax
// CHECK: dtc.reduce max %[[D]]
// CHECK: dtc.div {{.*}}dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}, {"tp"}]>}
dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=2 temporal>
func.func @cross_entropy(%x: tensor<8x16xf32> {dtc.input = "x", dtc.axes = ["batch", "vocab"]},
                         %l: tensor<8xi32> {dtc.input = "l"}) -> tensor<8x16xf32> {
  %0:2 = dtc.cross_entropy %x, %l : (tensor<8x16xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
  %1 = dtc.cross_entropy_grad %x, %l, %0#1, %0#0 : (tensor<8x16xf32>, tensor<8xi32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8x16xf32>
  %2 = dtc.softmax %1 : tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}

// -----

// Shards of unequal sizes are computed by simpler ops alone.
// CHECK-LABEL: func.func @unequal_classes(
// CHECK-NOT: dtc.cross_entropy %
// CHECK: dtc.reduce max %arg0 {{.*}}dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}]>}
// CHECK: dtc.exp {{.*}}dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}, {"tp"}]>}
dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=2 temporal>
func.func @unequal_classes(%x: tensor<8x15xf32> {dtc.input = "x", dtc.axes = ["batch", "vocab"]},
                           %l: tensor<8xi32> {dtc.input = "l"}) -> tensor<8xf32> {
  %0:2 = dtc.cross_entropy %x, %l : (tensor<8x15xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0#0 : tensor<8xf32>
}

// -----

// Where rows are whole the fused ops stay; an op without a simpler form stays in any case.
// CHECK-LABEL: func.func @fused(
// CHECK: dtc.softmax
// CHECK: dtc.rotary
dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=2 temporal>
func.func @fused(%x: tensor<8x16xf32> {dtc.input = "x", dtc.axes = ["batch", ""]},
                 %y: tensor<2x2x2x4xf32> {dtc.input = "y", dtc.axes = ["", "", "", "mlp"]}) -> (tensor<8x16xf32>, tensor<2x2x2x4xf32>) {
  %0 = dtc.softmax %x : tensor<8x16xf32>
  %1 = dtc.rotary %y {inverse = false, theta = 1.0e4} : tensor<2x2x2x4xf32>
  return %0, %1 : tensor<8x16xf32>, tensor<2x2x2x4xf32>
}

// -----

// A function without a body is left alone; a mesh without axes makes everything whole.
// CHECK-LABEL: func.func private @no_body(tensor<8xf32>)
// CHECK: func.func @nothing() {
dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=2 temporal>
func.func private @no_body(tensor<8xf32>)
func.func @nothing() {
  return
}
