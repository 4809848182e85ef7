// RUN: dtc-opt %s --dtc-build-train-step="optimizer=sgd accumulates=true separate-batches=true sample-clip=2 sample-noise=1" | FileCheck %s
// RUN: not dtc-opt %s --dtc-build-train-step="optimizer=sgd sample-clip=2" 2>&1 | FileCheck %s --check-prefix=ALONE

// The sum of the gradients of samples, and what stands for its noise, divided by the samples of all batches. The loss keeps its divisor.
// CHECK-LABEL: func.func @train_step(
// CHECK-SAME:    %[[W:.*]]: tensor<4xf32> {dtc.param = "w"}
// CHECK-SAME:    dist.sample_dim = 0 : i64, dtc.axes = ["batch", ""], dtc.input = "x"
// CHECK-SAME:    dist.sample_dim = 0 : i64, dtc.axes = ["batch"], dtc.input = "m"
// CHECK-SAME:    %[[BATCHES:[^:]*]]: tensor<f32> {dtc.scalar = "batches"}
// CHECK-SAME:    attributes {dist.samples = 8 : i64}
// CHECK:         dtc.div {{.*}} {dist.sample_divisor} : tensor<f32>
// CHECK:         %[[SUM:.*]] = dist.sum_batches
// CHECK:         %[[ONE:.*]] = dtc.constant dense<1.000000e+00>
// CHECK-NEXT:    %[[NOISE:.*]] = dtc.broadcast %[[ONE]]
// CHECK-NEXT:    %[[NOISY:.*]] = dtc.add %[[SUM]], %[[NOISE]] {dist.sample_noise = "w"}
// CHECK:         %[[SAMPLES:.*]] = dtc.constant dense<8.000000e+00>
// CHECK-NEXT:    dtc.mul %[[BATCHES]], %[[SAMPLES]]
// CHECK:         dtc.sgd %[[W]], %[[NOISY]],

// ALONE: error: a step that clips the gradients of samples has an optimizer, accumulates and separate-batches, and no loss-scale

func.func @loss(%w: tensor<4xf32> {dtc.param = "w"}, %x: tensor<8x4xf32> {dtc.input = "x", dtc.axes = ["batch", ""]},
                %m: tensor<8xf32> {dtc.input = "m", dtc.axes = ["batch"]}) -> tensor<f32> {
  %p = dtc.einsum "bi,i->b" %x, %w : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %t = dtc.tanh %p : tensor<8xf32>
  %s = dtc.reduce sum %t dims [0] : (tensor<8xf32>) -> tensor<f32>
  %n = dtc.reduce sum %m dims [0] : (tensor<8xf32>) -> tensor<f32>
  %l = dtc.div %s, %n : tensor<f32>
  return %l : tensor<f32>
}
