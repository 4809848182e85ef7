// RUN: dtc-opt %s --canonicalize --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @identities
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>)
// CHECK-NEXT: return %[[X]]
func.func @identities(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = dtc.reshape %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = dtc.transpose %0 permutation [0, 1] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = dtc.slice %1 offsets [0, 0] sizes [4, 8] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = dtc.broadcast %2 dims [0, 1] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = dtc.pad %3 low [0, 0] high [0, 0] value 1.0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %5 = dtc.concat %4 dim 1 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %6 = dtc.reduce sum %5 dims [] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %7 = dtc.convert %6 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %7 : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @neutral_elements
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
// CHECK-NEXT: return %[[X]]
func.func @neutral_elements(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = dtc.constant dense<0.0> : tensor<4xf32>
  %one = dtc.constant dense<1.0> : tensor<4xf32>
  %0 = dtc.add %x, %zero : tensor<4xf32>
  %1 = dtc.add %zero, %0 : tensor<4xf32>
  %2 = dtc.sub %1, %zero : tensor<4xf32>
  %3 = dtc.mul %2, %one : tensor<4xf32>
  %4 = dtc.mul %one, %3 : tensor<4xf32>
  %5 = dtc.div %4, %one : tensor<4xf32>
  return %5 : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @neutral_integers
// CHECK-SAME: (%[[X:.*]]: tensor<4xi32>)
// CHECK-NEXT: return %[[X]]
func.func @neutral_integers(%x: tensor<4xi32>) -> tensor<4xi32> {
  %zero = dtc.constant dense<0> : tensor<4xi32>
  %one = dtc.constant dense<1> : tensor<4xi32>
  %0 = dtc.add %x, %zero : tensor<4xi32>
  %1 = dtc.mul %0, %one : tensor<4xi32>
  return %1 : tensor<4xi32>
}

// -----

// CHECK-LABEL: func.func @not_neutral
func.func @not_neutral(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %zero = dtc.constant dense<0.0> : tensor<2xf32>
  %one = dtc.constant dense<1.0> : tensor<2xf32>
  %mixed = dtc.constant dense<[0.0, 1.0]> : tensor<2xf32>
  // CHECK: dtc.sub
  %0 = dtc.sub %zero, %x : tensor<2xf32>
  // CHECK: dtc.div
  %1 = dtc.div %one, %x : tensor<2xf32>
  // CHECK: dtc.mul
  %2 = dtc.mul %x, %zero : tensor<2xf32>
  // CHECK: dtc.add
  %3 = dtc.add %x, %mixed : tensor<2xf32>
  return %0, %1, %2, %3 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// CHECK-LABEL: func.func @double_negation
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
// CHECK-NEXT: return %[[X]]
func.func @double_negation(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = dtc.neg %x : tensor<4xf32>
  %1 = dtc.neg %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @reshapes
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>)
func.func @reshapes(%x: tensor<4x8xf32>) -> (tensor<2x16xf32>, tensor<4x8xf32>) {
  // CHECK-NEXT: %[[R:.*]] = dtc.reshape %[[X]] : (tensor<4x8xf32>) -> tensor<2x16xf32>
  %0 = dtc.reshape %x : (tensor<4x8xf32>) -> tensor<32xf32>
  %1 = dtc.reshape %0 : (tensor<32xf32>) -> tensor<2x16xf32>
  %2 = dtc.reshape %0 : (tensor<32xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT: return %[[R]], %[[X]]
  return %1, %2 : tensor<2x16xf32>, tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @transposes
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32>)
func.func @transposes(%x: tensor<2x3x4xf32>) -> (tensor<4x3x2xf32>, tensor<2x3x4xf32>) {
  // CHECK-NEXT: %[[T:.*]] = dtc.transpose %[[X]] permutation [2, 1, 0] : (tensor<2x3x4xf32>) -> tensor<4x3x2xf32>
  %0 = dtc.transpose %x permutation [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %1 = dtc.transpose %0 permutation [0, 2, 1] : (tensor<4x2x3xf32>) -> tensor<4x3x2xf32>
  %2 = dtc.transpose %0 permutation [1, 2, 0] : (tensor<4x2x3xf32>) -> tensor<2x3x4xf32>
  // CHECK-NEXT: return %[[T]], %[[X]]
  return %1, %2 : tensor<4x3x2xf32>, tensor<2x3x4xf32>
}

// -----

// An annotation says something about a value, so the value stays.
// CHECK-LABEL: func.func @annotated
func.func @annotated(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %zero = dtc.constant dense<0.0> : tensor<4x8xf32>
  // CHECK: dtc.reshape %{{.*}} {dtc.axes = ["batch", "embed"]}
  %0 = dtc.reshape %x {dtc.axes = ["batch", "embed"]} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: dtc.add %{{.*}}, %{{.*}} {dtc.axes = ["batch", "embed"]}
  %1 = dtc.add %x, %zero {dtc.axes = ["batch", "embed"]} : tensor<4x8xf32>
  // CHECK: dtc.transpose %{{.*}} permutation [1, 0] {dtc.axes = ["embed", "batch"]}
  // CHECK: dtc.transpose
  %2 = dtc.transpose %x permutation [1, 0] {dtc.axes = ["embed", "batch"]} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %3 = dtc.transpose %2 permutation [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  return %0, %1, %3 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @unused
// CHECK-NEXT: return
func.func @unused(%x: tensor<4x8xf32>, %w: tensor<8xf32>) {
  %0:3 = dtc.layer_norm %x, %w, %w {eps = 1.0e-5} : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}
