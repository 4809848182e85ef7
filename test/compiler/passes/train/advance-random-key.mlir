// RUN: dtc-opt %s --dtc-advance-random-key --split-input-file | FileCheck %s
// RUN: dtc-opt %s --dtc-advance-random-key="always" --split-input-file | FileCheck %s --check-prefix ALWAYS

// The key becomes a state; its second word counts the batches.
// CHECK-LABEL: func.func @loss(
// CHECK-SAME: %[[KEY:[^:]*]]: tensor<2xi32> {dtc.step_state = "random_key"}, %[[N:[^:]*]]: tensor<f32> {dtc.scalar = "batches"}
// CHECK-SAME: -> (tensor<4xf32>, tensor<2xi32> {dtc.updates = 1 : i64})
// CHECK: %[[Y:.*]] = dtc.dropout %{{[^,]*}}, %[[KEY]]
// CHECK-NEXT: %[[COUNT:.*]] = dtc.convert %[[N]] : (tensor<f32>) -> tensor<i32>
// CHECK-NEXT: %[[COUNTS:.*]] = dtc.broadcast %[[COUNT]] dims [] : (tensor<i32>) -> tensor<2xi32>
// CHECK-NEXT: %[[SECOND:.*]] = dtc.constant dense<[0, 1]> : tensor<2xi32>
// CHECK-NEXT: %[[STEP:.*]] = dtc.mul %[[COUNTS]], %[[SECOND]]
// CHECK-NEXT: %[[NEXT:.*]] = dtc.add %[[KEY]], %[[STEP]]
// CHECK-NEXT: return %[[Y]], %[[NEXT]]
func.func @loss(%x: tensor<4xf32> {dtc.input = "x"}, %key: tensor<2xi32> {dtc.scalar = "random_key"}) -> tensor<4xf32> {
  %0 = dtc.dropout %x, %key {number = 0, rate = 0.5} : (tensor<4xf32>, tensor<2xi32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// The number of batches that a train step has already is the one.
// CHECK-LABEL: func.func @train_step(
// CHECK-SAME: %[[N:[^:]*]]: tensor<f64> {dtc.scalar = "batches"}
// CHECK-NOT: dtc.scalar
// CHECK: dtc.convert %[[N]] : (tensor<f64>) -> tensor<i32>
func.func @train_step(%key: tensor<2xi32> {dtc.scalar = "random_key"}, %n: tensor<f64> {dtc.scalar = "batches"}) -> tensor<f64> {
  return %n : tensor<f64>
}

// -----

// Without a key there is nothing to do.
// CHECK-LABEL: func.func @other(
// CHECK-SAME: tensor<4xf32> {dtc.input = "x"}) -> tensor<4xf32>
// CHECK-NEXT: return
// With `always` it gets one, for ops that later passes insert.
// ALWAYS-LABEL: func.func @other(
// ALWAYS-SAME: %[[KEY:[^:]*]]: tensor<2xi32> {dtc.step_state = "random_key"}, %[[N:[^:]*]]: tensor<f32> {dtc.scalar = "batches"}
// ALWAYS-SAME: -> (tensor<4xf32>, tensor<2xi32> {dtc.updates = 1 : i64})
// ALWAYS: dtc.convert %[[N]] : (tensor<f32>) -> tensor<i32>
// ALWAYS: dtc.add %[[KEY]],
func.func @other(%x: tensor<4xf32> {dtc.input = "x"}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
