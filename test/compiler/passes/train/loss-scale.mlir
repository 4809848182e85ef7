// RUN: dtc-opt %s --dtc-build-train-step="optimizer=sgd loss-scale=true" | FileCheck %s --check-prefixes=CHECK,CLIPPED
// RUN: dtc-opt %s --dtc-build-train-step="optimizer=sgd loss-scale=true clip=0.0" | FileCheck %s --check-prefixes=CHECK,FREE
// RUN: dtc-opt %s --dtc-build-train-step=optimizer=sgd | FileCheck %s --check-prefix=WITHOUT --implicit-check-not loss_scale
// RUN: dtc-opt %s --dtc-build-train-step="optimizer=none loss-scale=true" | FileCheck %s --check-prefix=NONE --implicit-check-not loss_scale

// The scale is one more argument, and what the gradients start with. The loss that is given out is without it.
// CHECK-LABEL: func.func @train_step(
// CHECK-SAME: %{{[^:]*}}: tensor<f32> {dtc.scalar = "learning_rate"}, %[[SCALE:[^:]*]]: tensor<f32> {dtc.scalar = "loss_scale"}, %{{[^:]*}}: tensor<8xf32> {dtc.slot = "momentum_buffer", dtc.slot_of = "w"}) -> (tensor<f32> {dtc.output = "loss"}
// CHECK: %[[LOSS:.*]] = dtc.reduce sum
// CHECK: dtc.broadcast %[[SCALE]] dims []
// CHECK: %[[G:.*]] = dtc.einsum "bi,b->i"
// The norm is that of the gradient without the scale, and decides whether the step applies: not, where it is infinite or NaN.
// CHECK: %[[SCALEDNORM:.*]] = dtc.sqrt
// CHECK-NEXT: %[[NORM:.*]] = dtc.div %[[SCALEDNORM]], %[[SCALE]]
// CHECK-NEXT: %[[INF:.*]] = dtc.constant dense<0x7F800000> : tensor<f32>
// CHECK-NEXT: %[[APPLY:.*]] = dtc.compare lt %[[NORM]], %[[INF]]
// The gradient is divided by the scale where it is clipped.
// CLIPPED: dtc.add %[[NORM]],
// CLIPPED: %[[CLIP:.*]] = dtc.minimum
// CLIPPED-NEXT: %[[FACTOR:.*]] = dtc.div %[[CLIP]], %[[SCALE]]
// FREE-NEXT: %[[ONE:.*]] = dtc.constant dense<1.000000e+00> : tensor<f32>
// FREE-NEXT: %[[FACTOR:.*]] = dtc.div %[[ONE]], %[[SCALE]]
// CHECK-NEXT: %[[NEW:[^,]*]], %[[NEWM:.*]] = dtc.sgd %{{[^,]*}}, %[[G]], %{{[^,]*}}, %{{[^,]*}}, %[[FACTOR]], %[[APPLY]]
// CHECK-NEXT: return %[[LOSS]], %[[NORM]], %[[NEW]], %[[NEWM]]

// Without a scale a step applies on the same condition.
// WITHOUT-LABEL: func.func @train_step(
// WITHOUT: %[[NORM:.*]] = dtc.sqrt
// WITHOUT-NEXT: %[[INF:.*]] = dtc.constant dense<0x7F800000> : tensor<f32>
// WITHOUT-NEXT: %[[APPLY:.*]] = dtc.compare lt %[[NORM]], %[[INF]]
// WITHOUT: %[[CLIP:.*]] = dtc.minimum
// WITHOUT-NEXT: dtc.sgd {{.*}}, %[[CLIP]], %[[APPLY]]

// Gradients that are given out are not scaled.
// NONE-LABEL: func.func @gradients(
// NONE: dtc.broadcast
func.func @loss(%x: tensor<4x8xf32> {dtc.input = "x"}, %w: tensor<8xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,i->b" %x, %w : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4xf32>
  %1 = dtc.reduce sum %0 dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
