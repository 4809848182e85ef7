// RUN: dtc-opt %s --dtc-chunk-loss=chunks=2 | FileCheck %s
// RUN: dtc-opt %s --dtc-chunk-loss=chunks=2 --dtc-build-train-step=optimizer=none --dtc-delay-loss-chunks | FileCheck %s --check-prefix=STEP
// RUN: dtc-opt %s --dtc-chunk-loss | FileCheck %s --check-prefix=ONE

// Tensors as large as the logits, the product that makes them, and the ops up to a sum, are made for each chunk; ops
// that do not depend on them are before the chunks.
// CHECK-LABEL: func.func @loss(
// CHECK-SAME: %[[W:[^ ,:)]+]]: tensor<6x3xf32>
// CHECK: dtc.compare {{.*}}tensor<2x4xi32>
// CHECK: dtc.einsum "bsd,vd->bsv" %{{.*}}, %[[W]] {dtc.loss_chunk} : (tensor<2x2x3xf32>, tensor<6x3xf32>) -> tensor<2x2x6xf32>
// CHECK: dtc.tanh {{.*}} {dtc.loss_chunk} : tensor<2x2x6xf32>
// CHECK: dtc.cross_entropy {{.*}} {dtc.loss_chunk, label_smoothing = 1.000000e-01 : f64}
// CHECK: dtc.select {{.*}} {dtc.loss_chunk}
// CHECK: %[[SUM0:.*]] = dtc.reduce sum {{.*}} dims [0, 1] {dtc.loss_chunk} : (tensor<2x2xf32>) -> tensor<f32>
// CHECK: dtc.einsum "bsd,vd->bsv" %{{.*}}, %[[W]] {dtc.loss_chunk} : (tensor<2x2x3xf32>, tensor<6x3xf32>) -> tensor<2x2x6xf32>
// CHECK: dtc.tanh
// CHECK: dtc.cross_entropy
// CHECK: dtc.select
// CHECK: %[[SUM1:.*]] = dtc.reduce sum
// CHECK: %[[SUM:.*]] = dtc.add %[[SUM0]], %[[SUM1]] {dtc.loss_chunk}
// CHECK: %[[LOSS:.*]] = dtc.mul %[[SUM]], %{{.*}} {dtc.loss_chunk}
// CHECK-NOT: tensor<2x4x6xf32>
// CHECK: return %[[LOSS]]

// The step has the logits of one chunk at a time: its gradients follow its loss.
// STEP-LABEL: func.func @gradients(
// STEP-NOT: dtc.loss_chunk
// STEP: dtc.einsum "bsd,vd->bsv"
// STEP: dtc.cross_entropy %
// STEP: dtc.cross_entropy_grad
// STEP: dtc.einsum "bsd,bsv->vd"
// STEP: dtc.einsum "bsd,vd->bsv"
// STEP: dtc.cross_entropy %
// STEP: dtc.cross_entropy_grad
// STEP: dtc.einsum "bsd,bsv->vd"
// STEP: dtc.add {{.*}}tensor<6x3xf32>

// One chunk changes nothing.
// ONE-NOT: dtc.loss_chunk
// ONE: dtc.einsum "bsd,vd->bsv" {{.*}} -> tensor<2x4x6xf32>
func.func @loss(%w: tensor<6x3xf32> {dtc.param = "w"}, %h: tensor<2x4x3xf32> {dtc.input = "h"},
                %labels: tensor<2x4xi32> {dtc.input = "labels"}) -> tensor<f32> {
  %product = dtc.einsum "bsd,vd->bsv" %h, %w : (tensor<2x4x3xf32>, tensor<6x3xf32>) -> tensor<2x4x6xf32>
  %logits = dtc.tanh %product : tensor<2x4x6xf32>
  %each, %lse = dtc.cross_entropy %logits, %labels {label_smoothing = 0.1} : (tensor<2x4x6xf32>, tensor<2x4xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  %ignored = dtc.constant dense<-100> : tensor<2x4xi32>
  %counts = dtc.compare ne %labels, %ignored : tensor<2x4xi32>
  %zero = dtc.constant dense<0.0> : tensor<2x4xf32>
  %kept = dtc.select %counts, %each, %zero : tensor<2x4xf32>
  %sum = dtc.reduce sum %kept dims [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  %part = dtc.constant dense<0.125> : tensor<f32>
  %loss = dtc.mul %sum, %part : tensor<f32>
  return %loss : tensor<f32>
}
