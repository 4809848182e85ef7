// RUN: dtc-opt %s --dtc-build-train-step="optimizer=adam clients=true" | FileCheck %s
// RUN: dtc-opt %s --dtc-build-train-step="optimizer=adam" | FileCheck %s --check-prefix=WITHOUT --implicit-check-not inner_steps

// The number of Adam's step is counted for each parameter that trains. The step state counts a number that all replicas
// agree on.
// CHECK-LABEL: func.func @train_step(
// CHECK-SAME:    %[[W:[^:]*]]: tensor<4xf32> {dtc.param = "w"}
// CHECK-SAME:    %[[APPLIED:[^:]*]]: tensor<i32> {dtc.step_state = "applied_steps"}
// CHECK-SAME:    %[[N:[^:]*]]: tensor<i32> {dtc.state = "inner_steps", dtc.state_of = "w"})
// CHECK:         %[[APPLY:.*]] = dtc.compare lt
// CHECK:         %[[OWN:.*]] = dtc.convert %[[APPLY]] : (tensor<i1>) -> tensor<i32>
// CHECK-NEXT:    %[[NEXT:.*]] = dtc.add %[[N]], %[[OWN]]
// CHECK:         %[[STEP:.*]] = dtc.add %[[N]], %{{.*}} : tensor<i32>
// CHECK-NEXT:    %[[T:.*]] = dtc.convert %[[STEP]] : (tensor<i32>) -> tensor<f32>
// CHECK:         dtc.adam %[[W]], {{.*}}, %[[T]], %{{.*}}, %[[APPLY]]
// CHECK:         %[[ONE:.*]] = dtc.convert %[[APPLY]] {dtc.agreed} : (tensor<i1>) -> tensor<f32>
// CHECK:         %[[ANY:.*]] = dtc.compare gt %[[ONE]],
// CHECK:         %[[COUNT:.*]] = dtc.convert %[[ANY]] : (tensor<i1>) -> tensor<i32>
// CHECK:         dtc.add %[[APPLIED]], %[[COUNT]]

// WITHOUT:       func.func @train_step(

func.func @loss(%w: tensor<4xf32> {dtc.param = "w"}, %f: tensor<4xf32> {dtc.param = "f", dtc.frozen},
                %x: tensor<4xf32> {dtc.input = "x"}) -> tensor<f32> {
  %0 = dtc.mul %x, %f : tensor<4xf32>
  %1 = dtc.einsum "i,i->" %w, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
