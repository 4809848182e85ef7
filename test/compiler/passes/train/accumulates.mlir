// RUN: dtc-opt %s --split-input-file --dtc-build-train-step='optimizer=sgd accumulates' | FileCheck %s
// RUN: dtc-opt %s --split-input-file --dtc-build-train-step=optimizer=sgd | FileCheck %s --check-prefix=ONE --implicit-check-not=batches

// Sums over several batches are divided by their number: the loss, and gradients where they are used.
// CHECK-LABEL: func.func @train_step
// CHECK-SAME: %[[N:[^:]*]]: tensor<f32> {dtc.scalar = "batches"}
// CHECK: %[[SUM:.*]] = dtc.reduce sum
// CHECK: %[[LOSS:.*]] = dtc.div %[[SUM]], %[[N]]
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

// A divisor is summed over the batches as the gradients are, so that their number is of no use.
// CHECK-LABEL: func.func @train_step
// CHECK-NOT: batches
// CHECK: return
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

// Also if the sum is multiplied by a number afterwards.
// CHECK-LABEL: func.func @train_step
// CHECK-SAME: %[[N:[^:]*]]: tensor<f32> {dtc.scalar = "batches"}
// CHECK: %[[DATA:.*]] = dtc.reduce sum
// CHECK: %[[PENALTY:.*]] = dtc.einsum "i,i->"
// CHECK: %[[ALL:.*]] = dtc.mul %[[PENALTY]], %[[N]]
// CHECK: %[[SUM:.*]] = dtc.add %[[DATA]], %[[ALL]]
// CHECK: %[[PART:.*]] = dtc.mul %[[SUM]], %{{.*}}
// CHECK: dtc.div %[[PART]], %[[N]]
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

// And where the divisor is summed over the batches too, which says how many there are.
// CHECK-LABEL: func.func @train_step
// CHECK-SAME: %[[N:[^:]*]]: tensor<f32> {dtc.scalar = "batches"}
// CHECK: %[[PENALTY:.*]] = dtc.einsum "i,i->"
// CHECK: %[[ALL:.*]] = dtc.mul %[[PENALTY]], %[[N]]
// CHECK: %[[SUM:.*]] = dtc.add %{{.*}}, %[[ALL]]
// CHECK: dtc.div %[[SUM]], %{{.*}}
// CHECK-NOT: dtc.div %{{.*}}, %[[N]]
// CHECK: return
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

// A term that depends on no data is there once, and counts once for each batch.
// CHECK-LABEL: func.func @train_step
// CHECK-SAME: %[[W:[^:]*]]: tensor<4xf32> {dtc.param = "w"}
// CHECK-SAME: %[[N:[^:]*]]: tensor<f32> {dtc.scalar = "batches"}
// CHECK: %[[DATA:.*]] = dtc.reduce sum
// CHECK: %[[PENALTY:.*]] = dtc.einsum "i,i->"
// CHECK: %[[ALL:.*]] = dtc.mul %[[PENALTY]], %[[N]]
// CHECK: %[[SUM:.*]] = dtc.sub %[[DATA]], %[[ALL]]
// CHECK: dtc.div %[[SUM]], %[[N]]
// ONE-LABEL: func.func @train_step
func.func @penalty(%x: tensor<2x4xf32> {dtc.input = "x"}, %w: tensor<4xf32> {dtc.param = "w"}) -> tensor<f32> {
  %h = dtc.einsum "bi,i->b" %x, %w : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2xf32>
  %data = dtc.reduce sum %h dims [0] : (tensor<2xf32>) -> tensor<f32>
  %penalty = dtc.einsum "i,i->" %w, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  %loss = dtc.sub %data, %penalty : tensor<f32>
  return %loss : tensor<f32>
}
