// A frozen parameter whose new value the model computes.
// RUN: dtc-opt %s --dtc-build-train-step="optimizer=sgd momentum=0" | FileCheck %s
// RUN: dtc-opt %s --dtc-build-train-step=optimizer=none | FileCheck %s --check-prefix=GRADIENTS
// RUN: dtc-opt %s --dtc-build-train-step="optimizer=sgd momentum=0" --dtc-mixed-precision=dtype=bf16 | FileCheck %s --check-prefix=BF16
// RUN: dtc-opt %s --dtc-compile='mesh=dp=2 optimizer=sgd' | FileCheck %s --check-prefix=EXEC
// RUN: not dtc-opt %s --dtc-compile='mesh=dp=2 microbatches=2' 2>&1 | FileCheck %s --check-prefix=MICROBATCHES

// The step writes it beside what the optimizer changes; a step that is skipped leaves it.
// CHECK: func.func @train_step(%{{[^:]*}}: tensor<4xf32> {dtc.param = "w"}, %[[MEAN:[^:]*]]: tensor<4xf32> {dtc.frozen, dtc.param = "mean"}
// CHECK-SAME: tensor<4xf32> {dtc.updates = 0 : i64}
// CHECK-SAME: tensor<4xf32> {dtc.updates = 1 : i64}
// CHECK: %[[NEW:.*]] = dtc.add
// CHECK: %[[APPLY:.*]] = dtc.compare lt
// CHECK: %[[ALL:.*]] = dtc.broadcast %[[APPLY]] dims [] : (tensor<i1>) -> tensor<4xi1>
// CHECK: %[[KEPT:.*]] = dtc.select %[[ALL]], %[[NEW]], %[[MEAN]] : tensor<4xf32>
// CHECK: return {{.*}}%[[KEPT]]

// GRADIENTS: func.func @gradients(
// GRADIENTS-SAME: -> (tensor<f32> {dtc.output = "loss"}, tensor<4xf32> {dtc.output = "grad:w"})

// It stays f32 where the parameters have 16 bits.
// BF16: func.func @train_step(%{{[^:]*}}: tensor<4xbf16> {dtc.param = "w"}, %{{[^:]*}}: tensor<4xf32> {dtc.frozen, dtc.param = "mean"}

// Devices add up the means of their samples.
// EXEC: exec.state "mean"
// EXEC: exec.update "mean"

// MICROBATCHES: error: {{.*}} computes on a microbatch and needs a sum over all microbatches
func.func @loss(%w: tensor<4xf32> {dtc.param = "w"}, %mean: tensor<4xf32> {dtc.param = "mean", dtc.frozen}, %x: tensor<8x4xf32> {dtc.input = "x", dtc.axes = ["batch", ""]})
    -> (tensor<f32>, tensor<4xf32> {dtc.updates = 1}) {
  %ws = dtc.broadcast %w dims [1] : (tensor<4xf32>) -> tensor<8x4xf32>
  %y = dtc.mul %x, %ws : tensor<8x4xf32>
  %sum = dtc.reduce sum %y dims [0] : (tensor<8x4xf32>) -> tensor<4xf32>
  %sums = dtc.broadcast %sum dims [1] : (tensor<4xf32>) -> tensor<8x4xf32>
  %d = dtc.sub %y, %sums : tensor<8x4xf32>
  %t = dtc.tanh %d : tensor<8x4xf32>
  %loss = dtc.reduce sum %t dims [0, 1] : (tensor<8x4xf32>) -> tensor<f32>
  %old = dtc.constant dense<0.9> : tensor<4xf32>
  %kept = dtc.mul %mean, %old : tensor<4xf32>
  %new = dtc.add %kept, %sum : tensor<4xf32>
  return %loss, %new : tensor<f32>, tensor<4xf32>
}
