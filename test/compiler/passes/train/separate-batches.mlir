// RUN: dtc-opt %s --split-input-file --dtc-build-train-step='optimizer=sgd separate-batches' | FileCheck %s

// In a step of one batch, the loss and the gradients are marked: the ops up to them are in the loop over one
// microbatch.
// CHECK-LABEL: func.func @train_step
// CHECK: %[[LOG:.*]] = dtc.log
// CHECK: %[[GRADIENT:.*]] = dist.sum_batches %{{.*}} : tensor<4xf32>
// CHECK: %[[SUM:.*]] = dist.sum_batches %[[LOG]] : tensor<f32>
// CHECK: dtc.einsum "a,a->" %[[GRADIENT]], %[[GRADIENT]]
// CHECK: dtc.sgd %{{[^,]*}}, %[[GRADIENT]],
// CHECK: return %[[SUM]],
func.func @loss(%w: tensor<4xf32> {dtc.param = "w"}, %x: tensor<4xf32> {dtc.input = "x"}) -> tensor<f32> {
  %y = dtc.mul %w, %x : tensor<4xf32>
  %sum = dtc.reduce sum %y dims [0] : (tensor<4xf32>) -> tensor<f32>
  %loss = dtc.log %sum : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Of a quotient, both sums are.
// CHECK-LABEL: func.func @train_step
// CHECK-DAG: %[[SUM:.*]] = dist.sum_batches %{{.*}} : tensor<f32>
// CHECK-DAG: %[[COUNT:.*]] = dist.sum_batches %{{.*}} : tensor<f32>
// CHECK: %[[LOSS:.*]] = dtc.div %{{.*}}, %{{.*}} : tensor<f32>
// CHECK: return
func.func @count(%x: tensor<4x8xf32> {dtc.input = "x"}, %n: tensor<4xi32> {dtc.input = "n"}, %w: tensor<8xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,i->b" %x, %w : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4xf32>
  %sum = dtc.reduce sum %0 dims [0] : (tensor<4xf32>) -> tensor<f32>
  %1 = dtc.convert %n : (tensor<4xi32>) -> tensor<4xf32>
  %count = dtc.reduce sum %1 dims [0] : (tensor<4xf32>) -> tensor<f32>
  %loss = dtc.div %sum, %count : tensor<f32>
  return %loss : tensor<f32>
}
