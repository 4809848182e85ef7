// RUN: dtc-opt %s --dtc-remove-dropout --split-input-file | FileCheck %s

// Users of the result get the operand. Inputs stay, used or not.
// CHECK-LABEL: func.func @loss(
// CHECK-SAME: %[[X:[^:]*]]: tensor<4xf32> {dtc.input = "x"}, %{{[^:]*}}: tensor<4xf32> {dtc.input = "y"}) -> tensor<4xf32> {
// CHECK-NEXT: %[[Z:.*]] = dtc.neg %[[X]]
// CHECK-NEXT: return %[[Z]]
func.func @loss(%x: tensor<4xf32> {dtc.input = "x"}, %key: tensor<2xi32> {dtc.scalar = "random_key"},
                %y: tensor<4xf32> {dtc.input = "y"}) -> tensor<4xf32> {
  %0 = dtc.dropout %x, %key {number = 0, rate = 0.5} : (tensor<4xf32>, tensor<2xi32>) -> tensor<4xf32>
  %1 = dtc.neg %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// A key that the function itself reads stays.
// CHECK-LABEL: func.func @key(
// CHECK-SAME: dtc.scalar = "random_key"
func.func @key(%x: tensor<4xf32> {dtc.input = "x"}, %key: tensor<2xi32> {dtc.scalar = "random_key"})
    -> (tensor<4xf32>, tensor<2xi32>) {
  %0 = dtc.dropout %x, %key {number = 0, rate = 0.5} : (tensor<4xf32>, tensor<2xi32>) -> tensor<4xf32>
  return %0, %key : tensor<4xf32>, tensor<2xi32>
}
