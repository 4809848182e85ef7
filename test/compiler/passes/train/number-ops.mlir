// RUN: dtc-opt %s --dtc-build-train-step="number-ops=true optimizer=none" | FileCheck %s
// RUN: dtc-opt %s --dtc-build-train-step="number-ops=true optimizer=sgd" | FileCheck %s --check-prefixes=CHECK,STEP
// RUN: dtc-opt %s --dtc-build-train-step=optimizer=sgd | FileCheck %s --check-prefix=PLAIN

// Each op of the loss has a number, and what computes its gradients, or adds them to those of other uses, has the number
// as well. The seed of the backward pass, the norm and the optimizer belong to no op.
// CHECK: dtc.broadcast %{{.*}} dims [1] {dtc.op = 0 : i64}
// CHECK: dtc.einsum "bi,io->bo" %{{.*}} {dtc.op = 1 : i64}
// CHECK: %[[EXP:.*]] = dtc.exp %{{.*}} {dtc.op = 2 : i64}
// CHECK: dtc.einsum "bi,io->bo" %[[EXP]], %{{.*}} {dtc.op = 3 : i64}
// CHECK: dtc.add %{{.*}} {dtc.op = 4 : i64}
// CHECK: %[[EACH:.*]], %{{.*}} = dtc.cross_entropy %{{.*}} {dtc.op = 5 : i64}
// CHECK: dtc.reduce sum %[[EACH]] dims [0] {dtc.op = 6 : i64}
// CHECK-NOT: dtc.op
// CHECK: dtc.constant dense<1.000000e+00> : tensor<f32>
// CHECK: dtc.broadcast %{{.*}} {dtc.gradient_of = 6 : i64}
// The gradient of the logits.
// CHECK: {dtc.gradient_of = 5 : i64}
// CHECK-NOT: {dtc.gradient_of = {{[0124]}} : i64}
// CHECK: dtc.einsum {{.*}} {dtc.gradient_of = 3 : i64}
// CHECK: dtc.einsum {{.*}} {dtc.gradient_of = 3 : i64}
// CHECK: dtc.mul {{.*}} {dtc.gradient_of = 2 : i64}
// The second use of the weight: its gradient and their sum.
// CHECK: dtc.einsum {{.*}} {dtc.gradient_of = 1 : i64}
// CHECK: dtc.add {{.*}} {dtc.gradient_of = 1 : i64} : tensor<8x8xf32>
// CHECK: dtc.reduce sum {{.*}} {dtc.gradient_of = 0 : i64} : (tensor<4x8xf32>) -> tensor<8xf32>
// STEP-NOT: dtc.gradient_of
// STEP: dtc.sqrt
// STEP-NOT: dtc.gradient_of
// STEP: dtc.sgd
// CHECK-NOT: dtc.{{op|gradient_of}}
// CHECK: return

// PLAIN-NOT: dtc.op
// PLAIN-NOT: dtc.gradient_of
func.func @loss(%w: tensor<8x8xf32> {dtc.param = "w"}, %b: tensor<8xf32> {dtc.param = "b"}, %x: tensor<4x8xf32> {dtc.input = "x"},
                %labels: tensor<4xi32> {dtc.input = "labels"}) -> tensor<f32> {
  // Its gradient comes last, that of the op after it before.
  %0 = dtc.broadcast %b dims [1] : (tensor<8xf32>) -> tensor<4x8xf32>
  %1 = dtc.einsum "bi,io->bo" %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %2 = dtc.exp %1 : tensor<4x8xf32>
  %3 = dtc.einsum "bi,io->bo" %2, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %4 = dtc.add %3, %0 : tensor<4x8xf32>
  %5:2 = dtc.cross_entropy %4, %labels : (tensor<4x8xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %6 = dtc.reduce sum %5#0 dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %6 : tensor<f32>
}
