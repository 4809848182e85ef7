// RUN: dtc-opt %s --dtc-build-train-step="optimizer=sgd proximal=0.25" | FileCheck %s
// RUN: dtc-opt %s --dtc-build-train-step="optimizer=sgd proximal=0.25 loss-scale=true" | FileCheck %s --check-prefix=SCALED
// RUN: dtc-opt %s --dtc-build-train-step="optimizer=sgd proximal=0.25" --dtc-mixed-precision=dtype=bf16 | FileCheck %s --check-prefix=BF16
// RUN: dtc-opt %s --dtc-build-train-step=optimizer=sgd | FileCheck %s --check-prefix=WITHOUT --implicit-check-not outer_params

// The gradient, and its norm, have 0.25 (w - s). A parameter that does not train has no s.
// CHECK-LABEL: func.func @train_step(
// CHECK-SAME:    %[[W:.*]]: tensor<4xf32> {dtc.param = "w"}
// CHECK-SAME:    %[[S:[^:]*]]: tensor<4xf32> {dtc.state = "outer_params", dtc.state_of = "w"})
// CHECK:         %[[G:.*]] = dtc.einsum ",i->i"
// CHECK:         %[[MU:.*]] = dtc.constant dense<2.500000e-01>
// CHECK-NEXT:    %[[MUS:.*]] = dtc.broadcast %[[MU]]
// CHECK-NEXT:    %[[MOVED:.*]] = dtc.sub %[[W]], %[[S]] {dtc.reads_master}
// CHECK-NEXT:    %[[TERM:.*]] = dtc.mul %[[MOVED]], %[[MUS]]
// CHECK-NEXT:    %[[SUM:.*]] = dtc.add %[[G]], %[[TERM]]
// CHECK-NEXT:    dtc.einsum "a,a->" %[[SUM]], %[[SUM]]
// CHECK:         dtc.sgd %[[W]], %[[SUM]],

// The scale of the loss is in the gradient, and is taken out later.
// SCALED:        %[[SCALE:[^:]*]]: tensor<f32> {dtc.step_state = "loss_scale"}
// SCALED:        %[[MU:.*]] = dtc.constant dense<2.500000e-01>
// SCALED-NEXT:   %[[FACTOR:.*]] = dtc.mul %[[MU]], %[[SCALE]]
// SCALED-NEXT:   dtc.broadcast %[[FACTOR]]

// In 16 bits w are the master weights.
// BF16:          %[[S:[^:]*]]: tensor<4xf32> {dtc.state = "outer_params", dtc.state_of = "w"}
// BF16-SAME:     %[[MASTER:[^:]*]]: tensor<4xf32> {dtc.state = "master", dtc.state_of = "w"}
// BF16:          dtc.sub %[[MASTER]], %[[S]] {dtc.reads_master} : tensor<4xf32>
// BF16:          dtc.sgd %[[MASTER]],

// WITHOUT:       func.func @train_step(

func.func @loss(%w: tensor<4xf32> {dtc.param = "w"}, %f: tensor<4xf32> {dtc.param = "f", dtc.frozen},
                %x: tensor<4xf32> {dtc.input = "x"}) -> tensor<f32> {
  %0 = dtc.mul %x, %f : tensor<4xf32>
  %1 = dtc.einsum "i,i->" %w, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
