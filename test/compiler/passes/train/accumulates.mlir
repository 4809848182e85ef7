// RUN: dtc-opt %s --split-input-file --dtc-build-train-step='optimizer=sgd accumulates separate-batches' | FileCheck %s
// RUN: dtc-opt %s --split-input-file --dtc-build-train-step=optimizer=sgd | FileCheck %s --check-prefix=ONE --implicit-check-not=batches

// Sums over several batches are divided by their number: the loss, and gradients where they are used.
// CHECK-LABEL: func.func @train_step
// CHECK-SAME: %[[N:[^:]*]]: tensor<f32> {dtc.scalar = "batches"}
// CHECK: %[[BATCH:.*]] = dtc.reduce sum
// CHECK: %[[GRADIENT:.*]] = dist.sum_batches %{{.*}} : tensor<4xf32>
// CHECK: %[[SUM:.*]] = dist.sum_batches %[[BATCH]] : tensor<f32>
// CHECK: %[[LOSS:.*]] = dtc.div %[[SUM]], %[[N]]
// CHECK: dtc.einsum "a,a->" %[[GRADIENT]], %[[GRADIENT]]
// CHECK: %[[SUMNORM:.*]] = dtc.sqrt
// CHECK-NEXT: %[[NORM:.*]] = dtc.div %[[SUMNORM]], %[[N]]
// CHECK: %[[CLIP:.*]] = dtc.minimum
// CHECK-NEXT: %[[FACTOR:.*]] = dtc.div %[[CLIP]], %[[N]]
// CHECK-NEXT: dtc.sgd %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %[[FACTOR]],
// CHECK: return %[[LOSS]], %[[NORM]],
// ONE-LABEL: func.func @train_step
func.func @loss(%w: tensor<4xf32> {dtc.param = "w"}, %x: tensor<4xf32> {dtc.input = "x"}) -> tensor<f32> {
  %y = dtc.mul %w, %x : tensor<4xf32>
  %loss = dtc.reduce sum %y dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A divisor is computed from sums over all batches, so that their number is of no use.
// CHECK-LABEL: func.func @train_step
// CHECK-NOT: "batches"
// CHECK: %[[SUM:.*]] = dtc.reduce sum
// CHECK: %[[COUNT:.*]] = dtc.reduce sum
// CHECK: %[[ALL:.*]] = dist.sum_batches %[[SUM]] over_samples : tensor<f32>
// CHECK: %[[LOSS:.*]] = dtc.div %[[ALL]], %[[COUNT]]
// CHECK: dist.sum_batches %{{.*}} : tensor<8xf32>
// CHECK: return %[[LOSS]],
// ONE-LABEL: func.func @train_step
func.func @count(%x: tensor<4x8xf32> {dtc.input = "x"}, %n: tensor<4xi32> {dtc.input = "n"}, %w: tensor<8xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,i->b" %x, %w : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4xf32>
  %sum = dtc.reduce sum %0 dims [0] : (tensor<4xf32>) -> tensor<f32>
  %1 = dtc.convert %n : (tensor<4xi32>) -> tensor<4xf32>
  %count = dtc.reduce sum %1 dims [0] : (tensor<4xf32>) -> tensor<f32>
  %loss = dtc.div %sum, %count : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The loss of the step is the mean of those of the batches, whatever it is made of.
// CHECK-LABEL: func.func @train_step
// CHECK-SAME: %[[N:[^:]*]]: tensor<f32> {dtc.scalar = "batches"}
// CHECK: %[[PENALTY:.*]] = dtc.einsum "i,i->"
// CHECK: %[[SUM:.*]] = dtc.add %{{.*}}, %[[PENALTY]]
// CHECK: %[[PART:.*]] = dtc.mul %[[SUM]], %{{.*}}
// CHECK: %[[ALL:.*]] = dist.sum_batches %[[PART]] : tensor<f32>
// CHECK: dtc.div %[[ALL]], %[[N]]
// ONE-LABEL: func.func @train_step
func.func @part(%x: tensor<2x4xf32> {dtc.input = "x"}, %w: tensor<4xf32> {dtc.param = "w"}) -> tensor<f32> {
  %h = dtc.einsum "bi,i->b" %x, %w : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2xf32>
  %data = dtc.reduce sum %h dims [0] : (tensor<2xf32>) -> tensor<f32>
  %penalty = dtc.einsum "i,i->" %w, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  %sum = dtc.add %data, %penalty : tensor<f32>
  %half = dtc.constant dense<5.000000e-01> : tensor<f32>
  %loss = dtc.mul %sum, %half : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A term that is added before such a division counts once, and so does its gradient.
// CHECK-LABEL: func.func @train_step
// CHECK-NOT: "batches"
// CHECK: %[[DATA:.*]] = dtc.reduce sum %{{.*}} dims [0] :
// CHECK: %[[PENALTY:.*]] = dtc.einsum "i,i->"
// CHECK: %[[COUNT:.*]] = dtc.reduce sum %{{.*}} dims [0, 1]
// CHECK: %[[ALL:.*]] = dist.sum_batches %[[DATA]] over_samples : tensor<f32>
// CHECK: %[[SUM:.*]] = dtc.add %[[ALL]], %[[PENALTY]]
// CHECK: %[[LOSS:.*]] = dtc.div %[[SUM]], %[[COUNT]]
// CHECK: %[[OFDATA:.*]] = dist.sum_batches %{{.*}} : tensor<4xf32>
// CHECK: %[[GRADIENT:.*]] = dtc.add %[[OFDATA]], %{{.*}} : tensor<4xf32>
// CHECK: dtc.einsum "a,a->" %[[GRADIENT]], %[[GRADIENT]]
// CHECK: return %[[LOSS]],
// ONE-LABEL: func.func @train_step
func.func @mean(%x: tensor<2x4xf32> {dtc.input = "x"}, %w: tensor<4xf32> {dtc.param = "w"}) -> tensor<f32> {
  %h = dtc.einsum "bi,i->b" %x, %w : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2xf32>
  %data = dtc.reduce sum %h dims [0] : (tensor<2xf32>) -> tensor<f32>
  %penalty = dtc.einsum "i,i->" %w, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  %sum = dtc.add %data, %penalty : tensor<f32>
  %count = dtc.reduce sum %x dims [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  %loss = dtc.div %sum, %count : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A term that is added after such a division has gradients that are multiplied by the divisor, as all are divided by
// it.
// CHECK-LABEL: func.func @train_step
// CHECK-NOT: "batches"
// CHECK: %[[DATA:.*]] = dtc.reduce sum %{{.*}} dims [0] :
// CHECK: %[[PENALTY:.*]] = dtc.einsum "i,i->"
// CHECK: %[[COUNT:.*]] = dtc.reduce sum %{{.*}} dims [0, 1]
// CHECK: %[[REST:.*]] = dtc.neg %[[PENALTY]]
// CHECK: %[[ALL:.*]] = dist.sum_batches %[[DATA]] over_samples : tensor<f32>
// CHECK: %[[MEAN:.*]] = dtc.div %[[ALL]], %[[COUNT]]
// CHECK: %[[LOSS:.*]] = dtc.add %[[MEAN]], %[[REST]]
// CHECK: %[[OFDATA:.*]] = dist.sum_batches %{{.*}} : tensor<4xf32>
// CHECK: %[[BY:.*]] = dtc.broadcast %[[COUNT]]
// CHECK: %[[OFREST:.*]] = dtc.mul %{{.*}}, %[[BY]]
// CHECK: %[[GRADIENT:.*]] = dtc.add %[[OFDATA]], %[[OFREST]]
// CHECK: dtc.einsum "a,a->" %[[GRADIENT]], %[[GRADIENT]]
// CHECK: return %[[LOSS]],
// ONE-LABEL: func.func @train_step
func.func @penalty(%x: tensor<2x4xf32> {dtc.input = "x"}, %w: tensor<4xf32> {dtc.param = "w"}) -> tensor<f32> {
  %h = dtc.einsum "bi,i->b" %x, %w : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2xf32>
  %data = dtc.reduce sum %h dims [0] : (tensor<2xf32>) -> tensor<f32>
  %penalty = dtc.einsum "i,i->" %w, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  %count = dtc.reduce sum %x dims [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  %mean = dtc.div %data, %count : tensor<f32>
  %loss = dtc.sub %mean, %penalty : tensor<f32>
  return %loss : tensor<f32>
}
