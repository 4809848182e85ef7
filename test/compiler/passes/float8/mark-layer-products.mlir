// RUN: dtc-opt %s --dtc-mark-layer-products | FileCheck %s
// RUN: dtc-opt %s --dtc-mark-layer-products --dtc-build-train-step | FileCheck %s --check-prefix STEP

// Two layers are marked; the logits, which lead to a loss through a bias, are not.
// CHECK-LABEL: func.func @loss
// CHECK: dtc.einsum "bi,ij->bj" {{.*}} {dtc.float8 = [f8E4M3FN, f8E4M3FN]}
// A weight that is a part of a parameter, on the left.
// CHECK: dtc.einsum "kj,bj->bk" {{.*}} {dtc.float8 = [f8E4M3FN, f8E4M3FN]}
// CHECK: dtc.einsum "bk,kv->bv" %{{[^{]*}} : (

// Gradients are marked, with e5m2 for the gradient that they multiply.
// STEP-LABEL: func.func @train_step
// STEP: dtc.einsum "bv,kv->bk" %{{[^{]*}} : (
// STEP: dtc.einsum "bk,bv->kv" %{{[^{]*}} : (
// STEP: dtc.einsum "bk,bj->kj" {{.*}} {dtc.float8 = [f8E5M2, f8E4M3FN]}
// STEP: dtc.einsum "kj,bk->bj" {{.*}} {dtc.float8 = [f8E4M3FN, f8E5M2]}
// STEP: dtc.einsum "bi,bj->ij" {{.*}} {dtc.float8 = [f8E4M3FN, f8E5M2]}
func.func @loss(%x: tensor<16x32xf32> {dtc.input = "x"}, %labels: tensor<16xi32> {dtc.input = "labels"},
                %w: tensor<32x48xf32> {dtc.param = "w"}, %u: tensor<2x16x48xf32> {dtc.param = "u"},
                %head: tensor<16x64xf32> {dtc.param = "head"}, %bias: tensor<64xf32> {dtc.param = "bias"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,ij->bj" %x, %w : (tensor<16x32xf32>, tensor<32x48xf32>) -> tensor<16x48xf32>
  %1 = dtc.relu %0 : tensor<16x48xf32>
  %2 = dtc.slice %u offsets [1, 0, 0] sizes [1, 16, 48] : (tensor<2x16x48xf32>) -> tensor<1x16x48xf32>
  %3 = dtc.reshape %2 : (tensor<1x16x48xf32>) -> tensor<16x48xf32>
  %4 = dtc.einsum "kj,bj->bk" %3, %1 : (tensor<16x48xf32>, tensor<16x48xf32>) -> tensor<16x16xf32>
  %5 = dtc.relu %4 : tensor<16x16xf32>
  %6 = dtc.einsum "bk,kv->bv" %5, %head : (tensor<16x16xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %7 = dtc.broadcast %bias dims [1] : (tensor<64xf32>) -> tensor<16x64xf32>
  %8 = dtc.add %6, %7 : tensor<16x64xf32>
  %losses, %lse = dtc.cross_entropy %8, %labels : (tensor<16x64xf32>, tensor<16xi32>) -> (tensor<16xf32>, tensor<16xf32>)
  %loss = dtc.reduce sum %losses dims [0] : (tensor<16xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
