// RUN: dtc-opt %s --dtc-build-train-step="optimizer=sgd loss-scale=true" | FileCheck %s --check-prefixes=CHECK,CLIPPED
// RUN: dtc-opt %s --dtc-build-train-step="optimizer=sgd loss-scale=true clip=0.0" | FileCheck %s --check-prefixes=CHECK,FREE
// RUN: dtc-opt %s --dtc-build-train-step=optimizer=sgd | FileCheck %s --check-prefix=WITHOUT --implicit-check-not loss_scale
// RUN: dtc-opt %s --dtc-build-train-step="optimizer=none loss-scale=true" | FileCheck %s --check-prefix=NONE --implicit-check-not loss_scale

// The scale is a state, and the gradients start with it. The output loss is without it.
// CHECK-LABEL: func.func @train_step(
// CHECK-SAME: %[[SCALE:[^:]*]]: tensor<f32> {dtc.step_state = "loss_scale"}, %[[GOOD:[^:]*]]: tensor<i32> {dtc.step_state = "good_steps"}, %[[INTERVAL:[^:]*]]: tensor<i32> {dtc.step_state = "growth_interval"}, %{{[^:]*}}: tensor<8xf32> {dtc.state = "momentum_buffer", dtc.state_of = "w"}) -> (tensor<f32> {dtc.output = "loss"}
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
// It doubles after an interval of consecutive applied steps, up to 2^24, and halves after a skipped one, down to 1.
// CHECK-NEXT: %[[UNIT:.*]] = dtc.constant dense<1> : tensor<i32>
// CHECK-NEXT: %[[APPLIED:.*]] = dtc.convert %[[APPLY]] : (tensor<i1>) -> tensor<i32>
// CHECK: %[[MORE:.*]] = dtc.add %[[GOOD]], %[[UNIT]] : tensor<i32>
// CHECK-NEXT: %[[STREAK:.*]] = dtc.mul %[[MORE]], %[[APPLIED]] : tensor<i32>
// CHECK-NEXT: %[[GROWS:.*]] = dtc.compare ge %[[STREAK]], %[[INTERVAL]] : tensor<i32>
// CHECK-NEXT: %[[GROWN:.*]] = dtc.convert %[[GROWS]] : (tensor<i1>) -> tensor<i32>
// CHECK-NEXT: %[[STAYS:.*]] = dtc.sub %[[UNIT]], %[[GROWN]] : tensor<i32>
// CHECK-NEXT: %[[NEWGOOD:.*]] = dtc.mul %[[STREAK]], %[[STAYS]] : tensor<i32>
// CHECK-NEXT: %[[TWO:.*]] = dtc.constant dense<2.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[TWICE:.*]] = dtc.mul %[[SCALE]], %[[TWO]] : tensor<f32>
// CHECK-NEXT: %[[HIGHEST:.*]] = dtc.constant dense<0x4B800000> : tensor<f32>
// CHECK-NEXT: %[[LARGER:.*]] = dtc.minimum %[[TWICE]], %[[HIGHEST]] : tensor<f32>
// CHECK-NEXT: %[[HALF:.*]] = dtc.constant dense<5.000000e-01> : tensor<f32>
// CHECK-NEXT: %[[HALVED:.*]] = dtc.mul %[[SCALE]], %[[HALF]] : tensor<f32>
// CHECK-NEXT: %[[LOWEST:.*]] = dtc.constant dense<1.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[SMALLER:.*]] = dtc.maximum %[[HALVED]], %[[LOWEST]] : tensor<f32>
// CHECK-NEXT: %[[KEPT:.*]] = dtc.select %[[GROWS]], %[[LARGER]], %[[SCALE]] : tensor<f32>
// CHECK-NEXT: %[[NEWSCALE:.*]] = dtc.select %[[APPLY]], %[[KEPT]], %[[SMALLER]] : tensor<f32>
// CHECK-NEXT: return %[[LOSS]], %[[NORM]], %[[NEW]], %[[NEWM]], %{{[^,]*}}, %{{[^,]*}}, %[[NEWGOOD]], %[[NEWSCALE]] :

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
