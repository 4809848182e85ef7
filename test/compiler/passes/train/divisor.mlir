// RUN: dtc-opt %s --split-input-file --dtc-build-train-step=optimizer=sgd | FileCheck %s
// RUN: dtc-opt %s --split-input-file --dtc-build-train-step="optimizer=sgd loss-scale=true" | FileCheck %s --check-prefix=SCALE
// RUN: dtc-opt %s --split-input-file --dtc-build-train-step=optimizer=none | FileCheck %s --check-prefix=NONE

// A count over the input is known only after all microbatches: the gradient is made without it, and its norm and the
// optimizer's input are divided by it in the end. The loss is the quotient.
// CHECK-LABEL: func.func @train_step(
// CHECK: %[[SUM:.*]] = dtc.reduce sum {{.*}} dims [0] : (tensor<4xf32>) -> tensor<f32>
// CHECK: %[[COUNT:.*]] = dtc.reduce sum {{.*}} dims [0] : (tensor<4xf32>) -> tensor<f32>
// CHECK-NEXT: %[[LOSS:.*]] = dtc.div %[[SUM]], %[[COUNT]]
// CHECK-NEXT: %[[ONE:.*]] = dtc.constant dense<1.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[ONES:.*]] = dtc.broadcast %[[ONE]] dims [] : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: %[[G:.*]] = dtc.einsum "bi,b->i" %{{.*}}, %[[ONES]]
// CHECK: %[[SUMNORM:.*]] = dtc.sqrt
// CHECK-NEXT: %[[MAGNITUDE:.*]] = dtc.abs %[[COUNT]]
// CHECK-NEXT: %[[NORM:.*]] = dtc.div %[[SUMNORM]], %[[MAGNITUDE]]
// CHECK: dtc.compare lt %[[NORM]],
// CHECK: dtc.add %[[NORM]],
// CHECK: %[[CLIP:.*]] = dtc.minimum
// CHECK-NEXT: %[[FACTOR:.*]] = dtc.div %[[CLIP]], %[[COUNT]]
// CHECK-NEXT: dtc.sgd %{{[^,]*}}, %[[G]], %{{[^,]*}}, %{{[^,]*}}, %[[FACTOR]],
// CHECK: return %[[LOSS]], %[[NORM]],

// With a scale of the loss the two are one factor.
// SCALE-LABEL: func.func @train_step(
// SCALE-SAME: %[[SCALE:[^:]*]]: tensor<f32> {dtc.step_state = "loss_scale"}
// SCALE: %[[LOSS:.*]] = dtc.div %{{.*}}, %[[COUNT:.*]] : tensor<f32>
// SCALE: dtc.broadcast %[[SCALE]] dims []
// SCALE: %[[BOTH:.*]] = dtc.mul %[[COUNT]], %[[SCALE]]
// SCALE: %[[SUMNORM:.*]] = dtc.sqrt
// SCALE-NEXT: %[[MAGNITUDE:.*]] = dtc.abs %[[BOTH]]
// SCALE-NEXT: %[[NORM:.*]] = dtc.div %[[SUMNORM]], %[[MAGNITUDE]]
// SCALE: %[[CLIP:.*]] = dtc.minimum
// SCALE-NEXT: dtc.div %[[CLIP]], %[[BOTH]]
// SCALE: return %[[LOSS]], %[[NORM]],

// A gradient that is given out is divided, too.
// NONE-LABEL: func.func @gradients(
// NONE: dtc.div %{{.*}}, %[[COUNT:.*]] : tensor<f32>
// NONE: %[[G:.*]] = dtc.einsum "bi,b->i"
// NONE-NEXT: %[[COUNTS:.*]] = dtc.broadcast %[[COUNT]] dims [] : (tensor<f32>) -> tensor<8xf32>
// NONE-NEXT: %[[MEAN:.*]] = dtc.div %[[G]], %[[COUNTS]] : tensor<8xf32>
// NONE-NEXT: return %{{.*}}, %[[MEAN]]
func.func @count(%x: tensor<4x8xf32> {dtc.input = "x"}, %n: tensor<4xi32> {dtc.input = "n"}, %w: tensor<8xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,i->b" %x, %w : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4xf32>
  %sum = dtc.reduce sum %0 dims [0] : (tensor<4xf32>) -> tensor<f32>
  %1 = dtc.convert %n : (tensor<4xi32>) -> tensor<4xf32>
  %count = dtc.reduce sum %1 dims [0] : (tensor<4xf32>) -> tensor<f32>
  %loss = dtc.div %sum, %count : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A divisor that depends on a parameter has a gradient: the quotient is differentiated.
// CHECK-LABEL: func.func @train_step(
// CHECK: %[[NORM:.*]] = dtc.sqrt
// CHECK-NEXT: dtc.constant dense<0x7F800000>
// CHECK-NEXT: dtc.compare lt %[[NORM]],
func.func @of_parameter(%x: tensor<4xf32> {dtc.input = "x"}, %w: tensor<4xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.mul %x, %w : tensor<4xf32>
  %sum = dtc.reduce sum %0 dims [0] : (tensor<4xf32>) -> tensor<f32>
  %total = dtc.reduce sum %w dims [0] : (tensor<4xf32>) -> tensor<f32>
  %loss = dtc.div %sum, %total : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// One of a frozen parameter has none.
// CHECK-LABEL: func.func @train_step(
// CHECK: dtc.reduce sum %{{.*}} dims [0]
// CHECK-NEXT: %[[TOTAL:.*]] = dtc.reduce sum %{{.*}} dims [0]
// CHECK-NEXT: dtc.div %{{.*}}, %[[TOTAL]]
// CHECK: %[[NORM:.*]] = dtc.sqrt
// CHECK-NEXT: %[[MAGNITUDE:.*]] = dtc.abs %[[TOTAL]]
// CHECK-NEXT: dtc.div %[[NORM]], %[[MAGNITUDE]]
func.func @of_frozen(%x: tensor<4xf32> {dtc.input = "x"}, %w: tensor<4xf32> {dtc.param = "w"}, %f: tensor<4xf32> {dtc.param = "f", dtc.frozen}) -> tensor<f32> {
  %0 = dtc.mul %x, %w : tensor<4xf32>
  %sum = dtc.reduce sum %0 dims [0] : (tensor<4xf32>) -> tensor<f32>
  %total = dtc.reduce sum %f dims [0] : (tensor<4xf32>) -> tensor<f32>
  %loss = dtc.div %sum, %total : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A constant is known in time.
// CHECK-LABEL: func.func @train_step(
// CHECK: %[[NORM:.*]] = dtc.sqrt
// CHECK-NEXT: dtc.constant dense<0x7F800000>
// CHECK-NEXT: dtc.compare lt %[[NORM]],
func.func @constant(%x: tensor<4xf32> {dtc.input = "x"}, %w: tensor<4xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.mul %x, %w : tensor<4xf32>
  %sum = dtc.reduce sum %0 dims [0] : (tensor<4xf32>) -> tensor<f32>
  %four = dtc.constant dense<4.0> : tensor<f32>
  %loss = dtc.div %sum, %four : tensor<f32>
  return %loss : tensor<f32>
}
