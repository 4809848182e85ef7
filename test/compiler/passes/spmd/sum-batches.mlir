// RUN: split-file %s %t
// RUN: dtc-opt %t/term.mlir --dtc-build-train-step="optimizer=sgd clip=0 accumulates separate-batches" --canonicalize --cse --dtc-propagate-shardings="shard=batch=dp+micro" --dtc-insert-reshards --dtc-spmd-partition | FileCheck %s --check-prefix=TERM
// RUN: sed 's/"micro"=2/"micro"=1/' %t/term.mlir > %t/single.mlir
// RUN: dtc-opt %t/single.mlir --dtc-build-train-step="optimizer=sgd clip=0 accumulates separate-batches" --canonicalize --cse --dtc-propagate-shardings="shard=batch=dp+micro" --dtc-insert-reshards --dtc-spmd-partition=accumulates | FileCheck %s --check-prefix=TERM
// RUN: dtc-opt %t/divisor.mlir --dtc-build-train-step="optimizer=sgd clip=0 accumulates separate-batches" --canonicalize --cse --dtc-propagate-shardings="shard=batch=dp+micro" --dtc-insert-reshards --dtc-spmd-partition=accumulates | FileCheck %s --check-prefix=DIVISOR
// RUN: dtc-opt %t/log.mlir --dtc-build-train-step="optimizer=sgd clip=0 accumulates separate-batches" --canonicalize --cse --dtc-propagate-shardings="shard=batch=dp+micro" --dtc-insert-reshards --dtc-spmd-partition | FileCheck %s --check-prefix=ONE
// RUN: not dtc-opt %t/log.mlir --dtc-build-train-step="optimizer=sgd clip=0 accumulates separate-batches" --canonicalize --cse --dtc-propagate-shardings="shard=batch=dp+micro" --dtc-insert-reshards --dtc-spmd-partition=accumulates 2>&1 | FileCheck %s --check-prefix=LOG
// RUN: not dtc-opt %t/vector.mlir --dtc-build-train-step="optimizer=sgd clip=0 accumulates separate-batches" --canonicalize --cse --dtc-propagate-shardings="shard=batch=dp+micro" --dtc-insert-reshards --dtc-spmd-partition=accumulates 2>&1 | FileCheck %s --check-prefix=VECTOR

// The gradient of b depends on no data and is made once; each batch has its part of it. One microbatch is as two are.
// TERM-LABEL: func.func @train_step(
// TERM-SAME: %[[N:[^:]*]]: tensor<f32> {dist.sharding = {{.*}}, dtc.global_shape = array<i64>, dtc.scalar = "batches"}
// TERM: %[[ALL:.*]] = dtc.broadcast %[[N]] dims [] : (tensor<f32>) -> tensor<3xf32>
// TERM: %[[GRADIENT:.*]] = dtc.mul %{{.*}}, %[[ALL]] : tensor<3xf32>
// TERM: dtc.sgd %{{[^,]*}}, %[[GRADIENT]],

// A divisor is computed after the loop, from the sums over all batches, and so is the loss.
// DIVISOR-LABEL: func.func @train_step(
// DIVISOR-NOT: "batches"
// DIVISOR: dist.microbatch_loop
// DIVISOR-NOT: dtc.maximum
// DIVISOR: dist.yield
// DIVISOR: }
// DIVISOR: %[[COUNT:.*]] = dtc.maximum
// DIVISOR: dtc.div %{{.*}}, %[[COUNT]]

// A result that is no sum over samples has no sum over batches: the loop runs for one batch, and the module says why.
// ONE: module attributes {dist.one_batch = "{{.*}}log.mlir:9:8: 'dtc.log' is not linear in a sum over the samples of a batch, so that several batches do not add up to one large batch; compile a larger batch and do not accumulate, or a loss that is a sum over samples or a quotient of such sums"}
// ONE: dist.microbatch_loop
// LOG: log.mlir:9:8: error: 'dtc.log' is not linear in a sum over the samples of a batch

// The value of the loss would have a summand once, and the gradients for each batch.
// VECTOR: vector.mlir:6:8: error: 'dtc.add' adds what depends on no data to a sum over samples, before a tensor of such sums is added up; add it to the loss, as a scalar; compile

//--- term.mlir
dist.mesh @mesh <"dp"=2, "micro"=2 temporal>
func.func @loss(%x: tensor<8x3xf32> {dtc.input = "x", dtc.axes = ["batch", ""]},
                %b: tensor<3xf32> {dtc.param = "b"}) -> tensor<f32> {
  %0 = dtc.broadcast %b dims [1] : (tensor<3xf32>) -> tensor<8x3xf32>
  %1 = dtc.add %x, %0 : tensor<8x3xf32>
  %2 = dtc.reduce sum %1 dims [0, 1] : (tensor<8x3xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}
//--- divisor.mlir
dist.mesh @mesh <"dp"=2, "micro"=1 temporal>
func.func @loss(%x: tensor<8x3xf32> {dtc.input = "x", dtc.axes = ["batch", ""]},
                %m: tensor<8xf32> {dtc.input = "m", dtc.axes = ["batch"]},
                %w: tensor<3xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,i->b" %x, %w : (tensor<8x3xf32>, tensor<3xf32>) -> tensor<8xf32>
  %1 = dtc.einsum "b,b->" %0, %m : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
  %2 = dtc.reduce sum %m dims [0] : (tensor<8xf32>) -> tensor<f32>
  %3 = dtc.constant dense<1.0> : tensor<f32>
  %4 = dtc.maximum %2, %3 : tensor<f32>
  %5 = dtc.div %1, %4 : tensor<f32>
  return %5 : tensor<f32>
}
//--- log.mlir
dist.mesh @mesh <"dp"=2, "micro"=2 temporal>
func.func @loss(%x: tensor<8x3xf32> {dtc.input = "x", dtc.axes = ["batch", ""]},
                %w: tensor<3xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,i->b" %x, %w : (tensor<8x3xf32>, tensor<3xf32>) -> tensor<8xf32>
  %1 = dtc.reduce sum %0 dims [0] : (tensor<8xf32>) -> tensor<f32>
  %2 = dtc.einsum "bi,bi->" %x, %x : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<f32>

  // The value of the loss, but no gradient, depends on it.
  %3 = dtc.log %2 : tensor<f32>
  %4 = dtc.add %1, %3 : tensor<f32>
  return %4 : tensor<f32>
}
//--- vector.mlir
dist.mesh @mesh <"dp"=2, "micro"=1 temporal>
func.func @loss(%x: tensor<8x3xf32> {dtc.input = "x", dtc.axes = ["batch", ""]},
                %b: tensor<3xf32> {dtc.param = "b"}, %w: tensor<3xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,i->bi" %x, %w : (tensor<8x3xf32>, tensor<3xf32>) -> tensor<8x3xf32>
  %1 = dtc.reduce sum %0 dims [0] : (tensor<8x3xf32>) -> tensor<3xf32>
  %2 = dtc.add %1, %b : tensor<3xf32>
  %3 = dtc.reduce sum %2 dims [0] : (tensor<3xf32>) -> tensor<f32>
  %4 = dtc.reduce sum %x dims [0, 1] : (tensor<8x3xf32>) -> tensor<f32>
  %5 = dtc.div %3, %4 : tensor<f32>
  return %5 : tensor<f32>
}
