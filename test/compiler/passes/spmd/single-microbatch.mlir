// RUN: dtc-opt %s --dtc-build-train-step="optimizer=sgd clip=0 separate-batches" --canonicalize --cse --dtc-propagate-shardings="shard=batch=dp+micro" --dtc-insert-reshards --dtc-spmd-partition | FileCheck %s
// RUN: dtc-opt %s --dtc-propagate-shardings="shard=batch=dp+micro" --dtc-insert-reshards --dtc-spmd-partition | FileCheck %s --check-prefix=FORWARD
// RUN: not dtc-opt %s --dtc-build-train-step="optimizer=sgd clip=0 accumulates separate-batches" --canonicalize --cse --dtc-propagate-shardings="shard=batch=dp+micro" --dtc-insert-reshards --dtc-spmd-partition=accumulates 2>&1 | FileCheck %s --check-prefix=BATCHES
// RUN: sed 's/"micro"=1/"micro"=2/' %s > %t.mlir
// RUN: not dtc-opt %t.mlir --dtc-propagate-shardings="shard=batch=dp+micro" --dtc-insert-reshards --dtc-spmd-partition 2>&1 | FileCheck %s --check-prefix=TWO

// A loss that is no sum over samples, of one microbatch: the loss and the gradients are made in the loop, and devices are
// summed over after it.
// CHECK-LABEL: func.func @train_step(
// CHECK: dist.microbatch_loop @mesh "micro" : {{.*}}tensor<3x2xf32>{{.*}} {
// CHECK: dist.all_reduce
// CHECK: dtc.log
// CHECK: dist.yield
// CHECK-NEXT: }
// CHECK-NOT: dtc.log
// CHECK: dist.all_reduce sum %{{.*}} : tensor<3x2xf32>
// CHECK: dtc.sqrt
// CHECK: dtc.sgd

// Without an update everything that works on the batch is in the loop, and the ops after a sum are not.
// FORWARD-LABEL: func.func @loss(
// FORWARD: dist.microbatch_loop
// FORWARD: dtc.einsum "bi,ij->bj"
// FORWARD: }
// FORWARD: dist.all_reduce
// FORWARD: dtc.log

// Several batches do not give the result of one large batch.
// BATCHES: error: {{.*}}; compile a larger batch and do not accumulate

// TWO: error: a value of shape 'tensor<8x2xf32>' that each microbatch has a part of {{.*}} is needed as a whole
dist.mesh @mesh <"dp"=2, "micro"=1 temporal>
func.func @loss(%x: tensor<8x3xf32> {dtc.input = "x", dtc.axes = ["batch", ""]},
                %w: tensor<3x2xf32> {dtc.param = "w"}) -> tensor<f32> {
  %h = dtc.einsum "bi,ij->bj" %x, %w : (tensor<8x3xf32>, tensor<3x2xf32>) -> tensor<8x2xf32>
  %g = dtc.einsum "aj,bj->ab" %h, %h : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x8xf32>
  %e = dtc.exp %g : tensor<8x8xf32>
  %s = dtc.reduce sum %e dims [0, 1] : (tensor<8x8xf32>) -> tensor<f32>
  %l = dtc.log %s : tensor<f32>
  return %l : tensor<f32>
}
