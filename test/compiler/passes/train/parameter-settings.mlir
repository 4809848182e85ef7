// RUN: dtc-opt %s --dtc-build-train-step="optimizer=sgd freeze=layers.0.*" --canonicalize | FileCheck %s --check-prefix=FREEZE
// RUN: dtc-opt %s --dtc-build-train-step="optimizer=sgd freeze={layers.1.weight,layers.1.bias}" --canonicalize | FileCheck %s --check-prefix=LAST
// RUN: dtc-opt %s --dtc-build-train-step="optimizer=none freeze=*.weight" --canonicalize | FileCheck %s --check-prefix=NONE
// RUN: dtc-opt %s --dtc-build-train-step="optimizer=adam param-group={{*.0.bias:weight_decay=0.25,lr_scale=0.5},{*.bias:lr_scale=2.0},{layers.[01].*:weight_decay=0.0}}" | FileCheck %s --check-prefix=GROUPS
// RUN: dtc-opt %s --dtc-build-train-step="optimizer=lion beta2=0.75" | FileCheck %s --check-prefix=LION

// Frozen parameters have no state and are not updated; nothing is computed for their gradients. Here they come before all that
// trains, so the backward pass ends early: there is no gradient of tanh.
// FREEZE-LABEL: func.func @train_step(
// FREEZE-SAME: tensor<8x8xf32> {dtc.param = "layers.0.weight"}, %{{[^:]*}}: tensor<8xf32> {dtc.param = "layers.0.bias"}, %[[W:[^:]*]]: tensor<8x4xf32> {dtc.param = "layers.1.weight"}, %[[B:[^:]*]]: tensor<4xf32> {dtc.param = "layers.1.bias"}, %{{[^:]*}}: tensor<4xf32> {dtc.frozen, dtc.param = "scale"}, %{{[^:]*}}: tensor<64xf32> {dtc.scalar = "learning_rates"},
// FREEZE-SAME: tensor<8x4xf32> {dtc.state = "momentum_buffer", dtc.state_of = "layers.1.weight"}, %{{[^:]*}}: tensor<4xf32> {dtc.state = "momentum_buffer", dtc.state_of = "layers.1.bias"}) ->
// FREEZE-SAME: (tensor<f32> {dtc.output = "loss"}, tensor<f32> {dtc.output = "grad_norm"}, tensor<8x4xf32> {dtc.updates = 3 : i64}, tensor<8x4xf32> {dtc.updates = 10 : i64}, tensor<4xf32> {dtc.updates = 4 : i64}, tensor<4xf32> {dtc.updates = 11 : i64}, tensor<i32> {dtc.updates = 8 : i64}, tensor<i32> {dtc.updates = 9 : i64})
// FREEZE: dtc.tanh
// FREEZE-NOT: tensor<8x8xf32>
// FREEZE-NOT: dtc.sub {{.*}}f32>
// The norm is that of the gradients that are there.
// FREEZE: dtc.concat {{.*}} -> tensor<2xf32>
// FREEZE: dtc.sgd %[[W]]
// FREEZE: dtc.sgd %[[B]]
// FREEZE-NOT: dtc.sgd
// FREEZE: return

// Where frozen parameters come last the gradient goes through them. Those that the model marks are frozen as well.
// LAST-LABEL: func.func @train_step(
// LAST-SAME: %[[W:[^:]*]]: tensor<8x8xf32> {dtc.param = "layers.0.weight"}, %[[B:[^:]*]]: tensor<8xf32> {dtc.param = "layers.0.bias"}, %[[FROZEN:[^:]*]]: tensor<8x4xf32> {dtc.param = "layers.1.weight"}
// LAST: dtc.einsum "bo,io->bi" %{{.*}}, %[[FROZEN]]
// LAST-NOT: dtc.einsum {{.*}} -> tensor<8x4xf32>
// LAST: dtc.sgd %[[W]]
// LAST: dtc.sgd %[[B]]
// LAST-NOT: dtc.sgd

// Gradients are those of the others.
// NONE-LABEL: func.func @gradients(
// NONE-SAME: -> (tensor<f32> {dtc.output = "loss"}, tensor<8xf32> {dtc.output = "grad:layers.0.bias"}, tensor<4xf32> {dtc.output = "grad:layers.1.bias"})

// The first group that matches holds, with nothing of later ones. A group's decay holds for vectors as well; one without a
// decay leaves them as they are. Its scale goes into the learning rate.
// GROUPS-LABEL: func.func @train_step(
// GROUPS-SAME: %[[W0:[^:]*]]: tensor<8x8xf32> {dtc.param = "layers.0.weight"}, %[[B0:[^:]*]]: tensor<8xf32> {dtc.param = "layers.0.bias"}, %[[W1:[^:]*]]: tensor<8x4xf32> {dtc.param = "layers.1.weight"}, %[[B1:[^:]*]]: tensor<4xf32> {dtc.param = "layers.1.bias"},
// GROUPS-SAME: tensor<8x8xf32> {dtc.state = "exp_avg", dtc.state_of = "layers.0.weight"}, %{{[^:]*}}: tensor<8x8xf32> {dtc.state = "exp_avg_sq", dtc.state_of = "layers.0.weight"}
// GROUPS: %[[RATE:.*]] = dtc.pick
// GROUPS: %[[STEP:.*]] = dtc.convert {{.*}} : (tensor<i32>) -> tensor<f32>
// GROUPS: dtc.adam %[[W0]], %{{.*}}, %[[RATE]], %[[STEP]], {{.*}} weight_decay = 0.000000e+00 : f64}
// GROUPS-NEXT: %[[HALF:.*]] = dtc.constant dense<5.000000e-01> : tensor<f32>
// GROUPS-NEXT: %[[RATE0:.*]] = dtc.mul %[[RATE]], %[[HALF]] : tensor<f32>
// GROUPS-NEXT: dtc.adam %[[B0]], %{{.*}}, %[[RATE0]], %[[STEP]], {{.*}} weight_decay = 2.500000e-01 : f64}
// GROUPS-NEXT: dtc.adam %[[W1]], %{{.*}}, %[[RATE]], %[[STEP]], {{.*}} weight_decay = 0.000000e+00 : f64}
// GROUPS-NEXT: %[[TWO:.*]] = dtc.constant dense<2.000000e+00> : tensor<f32>
// GROUPS-NEXT: %[[RATE1:.*]] = dtc.mul %[[RATE]], %[[TWO]] : tensor<f32>
// GROUPS-NEXT: dtc.adam %[[B1]], %{{.*}}, %[[RATE1]], %[[STEP]], {{.*}} weight_decay = 0.000000e+00 : f64}

// Lion has one buffer for each parameter, and does not count steps.
// LION-LABEL: func.func @train_step(
// LION-SAME: tensor<8x8xf32> {dtc.state = "exp_avg", dtc.state_of = "layers.0.weight"}
// LION-NOT: exp_avg_sq
// LION-NOT: dtc.convert {{.*}} -> tensor<f32>
// LION: dtc.lion {{.*}} {beta1 = 9.000000e-01 : f64, beta2 = 7.500000e-01 : f64, weight_decay = 1.000000e-01 : f64}
func.func @loss(%x: tensor<2x8xf32> {dtc.input = "x"}, %w0: tensor<8x8xf32> {dtc.param = "layers.0.weight"}, %b0: tensor<8xf32> {dtc.param = "layers.0.bias"},
                %w1: tensor<8x4xf32> {dtc.param = "layers.1.weight"}, %b1: tensor<4xf32> {dtc.param = "layers.1.bias"},
                %scale: tensor<4xf32> {dtc.param = "scale", dtc.frozen}) -> tensor<f32> {
  %0 = dtc.einsum "bi,io->bo" %x, %w0 : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %1 = dtc.broadcast %b0 dims [1] : (tensor<8xf32>) -> tensor<2x8xf32>
  %2 = dtc.add %0, %1 : tensor<2x8xf32>
  %3 = dtc.tanh %2 : tensor<2x8xf32>
  %4 = dtc.einsum "bi,io->bo" %3, %w1 : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %5 = dtc.broadcast %b1 dims [1] : (tensor<4xf32>) -> tensor<2x4xf32>
  %6 = dtc.add %4, %5 : tensor<2x4xf32>
  %7 = dtc.broadcast %scale dims [1] : (tensor<4xf32>) -> tensor<2x4xf32>
  %8 = dtc.mul %6, %7 : tensor<2x4xf32>
  %9 = dtc.reduce sum %8 dims [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  return %9 : tensor<f32>
}
