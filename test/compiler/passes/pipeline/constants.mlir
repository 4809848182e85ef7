// RUN: dtc-opt %s --dtc-build-train-step="optimizer=none number-ops=true" --canonicalize --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages --dtc-insert-reshards --dtc-spmd-partition --cse --dtc-schedule-pipeline | FileCheck %s

// The gradients of both ReLUs need zeros, which canonicalization makes once: each stage makes its own.
// CHECK-LABEL: func.func @gradients.0(
// CHECK: %[[GRADIENT:.*]] = dist.receive from 1 channel 1 : tensor<32x64xf32>
// CHECK: dist.fragment backward 0
// CHECK: dtc.constant dense<0.000000e+00> : tensor<32x64xf32>
// CHECK: dtc.select %{{.*}}, %[[GRADIENT]], %{{.*}} : tensor<32x64xf32>
// CHECK-LABEL: func.func @gradients.1(
// CHECK: dist.fragment backward 1
// CHECK: dtc.constant dense<0.000000e+00> : tensor<32x64xf32>
// CHECK: dist.send %{{[^,]*}} to 0 channel 1 : tensor<32x64xf32>
dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
func.func @loss(%x: tensor<64x64xf32> {dtc.input = "x", dtc.axes = ["batch", ""]}, %v: tensor<64x64xf32> {dtc.param = "v"}, %w: tensor<64x64xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,io->bo" %x, %v : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = dtc.relu %0 : tensor<64x64xf32>
  %2 = dtc.einsum "bi,io->bo" %1, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = dtc.relu %2 : tensor<64x64xf32>
  %4 = dtc.reduce sum %3 dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
  return %4 : tensor<f32>
}
