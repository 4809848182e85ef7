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

// One zigzag undoes the other, if it is of the same dimension and has as many parts.
// CHECK-LABEL: func.func @zigzags
// CHECK-SAME: (%[[X:.*]]: tensor<4x12xf32>)
func.func @zigzags(%x: tensor<4x12xf32>) -> (tensor<4x12xf32>, tensor<4x12xf32>, tensor<4x12xf32>, tensor<4x12xf32>, tensor<4x12xf32>) {
  // CHECK-NEXT: %[[Z:.*]] = dtc.zigzag %[[X]] {dim = 1 : i64, inverse = false, parts = 2 : i64}
  %0 = dtc.zigzag %x {dim = 1, inverse = false, parts = 2} : tensor<4x12xf32>
  %1 = dtc.zigzag %0 {dim = 1, inverse = true, parts = 2} : tensor<4x12xf32>
  %2 = dtc.zigzag %x {dim = 1, inverse = true, parts = 3} : tensor<4x12xf32>
  %3 = dtc.zigzag %2 {dim = 1, inverse = false, parts = 3} : tensor<4x12xf32>
  // CHECK-NEXT: %[[TWICE:.*]] = dtc.zigzag %[[Z]] {dim = 1 : i64, inverse = false, parts = 2 : i64}
  %4 = dtc.zigzag %0 {dim = 1, inverse = false, parts = 2} : tensor<4x12xf32>
  // CHECK-NEXT: %[[PARTS:.*]] = dtc.zigzag %[[Z]] {dim = 1 : i64, inverse = true, parts = 3 : i64}
  %5 = dtc.zigzag %0 {dim = 1, inverse = true, parts = 3} : tensor<4x12xf32>
  // CHECK-NEXT: %[[DIM:.*]] = dtc.zigzag %[[Z]] {dim = 0 : i64, inverse = true, parts = 2 : i64}
  %6 = dtc.zigzag %0 {dim = 0, inverse = true, parts = 2} : tensor<4x12xf32>
  // CHECK-NEXT: return %[[X]], %[[X]], %[[TWICE]], %[[PARTS]], %[[DIM]]
  return %1, %3, %4, %5, %6 : tensor<4x12xf32>, tensor<4x12xf32>, tensor<4x12xf32>, tensor<4x12xf32>, tensor<4x12xf32>
}

// -----

// CHECK-LABEL: func.func @annotated_zigzag
func.func @annotated_zigzag(%x: tensor<4x12xf32>) -> tensor<4x12xf32> {
  // CHECK-NEXT: dtc.zigzag
  // CHECK-NEXT: dtc.zigzag
  %0 = dtc.zigzag %x {dim = 1, inverse = false, parts = 2} : tensor<4x12xf32>
  %1 = dtc.zigzag %0 {dim = 1, dtc.axes = ["batch", "seq"], inverse = true, parts = 2} : tensor<4x12xf32>
  return %1 : tensor<4x12xf32>
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

// -----

// The sum of padded parts that touch is the parts joined: the gradient of a tensor that was split.
// CHECK-LABEL: func.func @add_of_pads
// CHECK-SAME: (%[[X:.*]]: tensor<2x3xf32>, %[[Y:.*]]: tensor<2x5xf32>)
// CHECK-NEXT: %[[C:.*]] = dtc.concat %[[X]], %[[Y]] dim 1
// CHECK-NEXT: return %[[C]]
func.func @add_of_pads(%x: tensor<2x3xf32>, %y: tensor<2x5xf32>) -> tensor<2x8xf32> {
  %0 = dtc.pad %x low [0, 0] high [0, 5] value 0.0 : (tensor<2x3xf32>) -> tensor<2x8xf32>
  %1 = dtc.pad %y low [0, 3] high [0, 0] value 0.0 : (tensor<2x5xf32>) -> tensor<2x8xf32>
  %2 = dtc.add %0, %1 : tensor<2x8xf32>
  return %2 : tensor<2x8xf32>
}

// -----

// In the other order, with padding left at both ends, along the first dimension.
// CHECK-LABEL: func.func @add_of_inner_pads
// CHECK-SAME: (%[[X:.*]]: tensor<3x2xf32>, %[[Y:.*]]: tensor<5x2xf32>)
// CHECK-NEXT: %[[C:.*]] = dtc.concat %[[X]], %[[Y]] dim 0 : (tensor<3x2xf32>, tensor<5x2xf32>) -> tensor<8x2xf32>
// CHECK-NEXT: %[[P:.*]] = dtc.pad %[[C]] low [1, 0] high [4, 0] value 0.000000e+00 : (tensor<8x2xf32>) -> tensor<13x2xf32>
// CHECK-NEXT: return %[[P]]
func.func @add_of_inner_pads(%x: tensor<3x2xf32>, %y: tensor<5x2xf32>) -> tensor<13x2xf32> {
  %0 = dtc.pad %y low [4, 0] high [4, 0] value 0.0 : (tensor<5x2xf32>) -> tensor<13x2xf32>
  %1 = dtc.pad %x low [1, 0] high [9, 0] value 0.0 : (tensor<3x2xf32>) -> tensor<13x2xf32>
  %2 = dtc.add %0, %1 : tensor<13x2xf32>
  return %2 : tensor<13x2xf32>
}

// -----

// Three parts, such as queries, keys and values, are one list; here the middle one is added last but one.
// CHECK-LABEL: func.func @add_of_three_pads
// CHECK-SAME: (%[[X:.*]]: tensor<2xf32>, %[[Y:.*]]: tensor<3xf32>, %[[Z:.*]]: tensor<4xf32>)
// CHECK-NEXT: %[[C:.*]] = dtc.concat %[[X]], %[[Y]], %[[Z]] dim 0
// CHECK-NEXT: return %[[C]]
func.func @add_of_three_pads(%x: tensor<2xf32>, %y: tensor<3xf32>, %z: tensor<4xf32>) -> tensor<9xf32> {
  %0 = dtc.pad %x low [0] high [7] value 0.0 : (tensor<2xf32>) -> tensor<9xf32>
  %1 = dtc.pad %y low [2] high [4] value 0.0 : (tensor<3xf32>) -> tensor<9xf32>
  %2 = dtc.pad %z low [5] high [0] value 0.0 : (tensor<4xf32>) -> tensor<9xf32>
  %3 = dtc.add %2, %1 : tensor<9xf32>
  %4 = dtc.add %3, %0 : tensor<9xf32>
  return %4 : tensor<9xf32>
}

// -----

// A list of parts that somebody else reads too, or that is joined along another dimension, stays a part.
// CHECK-LABEL: func.func @add_of_pads_of_lists
// CHECK-SAME: (%[[X:.*]]: tensor<2x2xf32>, %[[Y:.*]]: tensor<4x2xf32>)
// CHECK: %[[A:.*]] = dtc.concat %[[X]], %[[X]] dim 0
// CHECK: %[[B:.*]] = dtc.concat %[[X]], %[[X]] dim 1
// CHECK: %[[C:.*]] = dtc.concat %[[A]], %[[Y]] dim 0
// CHECK: %[[E:.*]] = dtc.concat %[[B]], %{{.*}} dim 0
// CHECK: %[[D:.*]] = dtc.pad %[[E]] low [0, 0] high [2, 0]
// CHECK: return %[[A]], %[[C]], %[[D]]
func.func @add_of_pads_of_lists(%x: tensor<2x2xf32>, %y: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<8x2xf32>, tensor<6x4xf32>) {
  %a = dtc.concat %x, %x dim 0 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %b = dtc.concat %x, %x dim 1 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x4xf32>
  %y2 = dtc.reshape %y : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %0 = dtc.pad %a low [0, 0] high [4, 0] value 0.0 : (tensor<4x2xf32>) -> tensor<8x2xf32>
  %1 = dtc.pad %y low [4, 0] high [0, 0] value 0.0 : (tensor<4x2xf32>) -> tensor<8x2xf32>
  %2 = dtc.add %0, %1 : tensor<8x2xf32>
  %3 = dtc.pad %b low [0, 0] high [4, 0] value 0.0 : (tensor<2x4xf32>) -> tensor<6x4xf32>
  %4 = dtc.pad %y2 low [2, 0] high [2, 0] value 0.0 : (tensor<2x4xf32>) -> tensor<6x4xf32>
  %5 = dtc.add %3, %4 : tensor<6x4xf32>
  return %a, %2, %5 : tensor<4x2xf32>, tensor<8x2xf32>, tensor<6x4xf32>
}

// -----

// Not where the parts overlap, leave a gap, are padded in two dimensions or in different ones, have other padding than
// zeros, are read by others too, or carry annotations.
// CHECK-LABEL: func.func @other_pads
// CHECK-NOT: dtc.concat
// CHECK-COUNT-8: dtc.add
// CHECK-NOT: dtc.add
func.func @other_pads(%x: tensor<2x2xf32>, %y: tensor<2x2xf32>)
    -> (tensor<2x3xf32>, tensor<2x5xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %o0 = dtc.pad %x low [0, 0] high [0, 1] value 0.0 : (tensor<2x2xf32>) -> tensor<2x3xf32>
  %o1 = dtc.pad %y low [0, 1] high [0, 0] value 0.0 : (tensor<2x2xf32>) -> tensor<2x3xf32>
  %overlap = dtc.add %o0, %o1 : tensor<2x3xf32>
  %g0 = dtc.pad %x low [0, 0] high [0, 3] value 0.0 : (tensor<2x2xf32>) -> tensor<2x5xf32>
  %g1 = dtc.pad %y low [0, 3] high [0, 0] value 0.0 : (tensor<2x2xf32>) -> tensor<2x5xf32>
  %gap = dtc.add %g0, %g1 : tensor<2x5xf32>
  %t0 = dtc.pad %x low [0, 0] high [2, 2] value 0.0 : (tensor<2x2xf32>) -> tensor<4x4xf32>
  %t1 = dtc.pad %y low [2, 2] high [0, 0] value 0.0 : (tensor<2x2xf32>) -> tensor<4x4xf32>
  %two = dtc.add %t0, %t1 : tensor<4x4xf32>
  %d0 = dtc.pad %x low [0, 0] high [2, 2] value 0.0 : (tensor<2x2xf32>) -> tensor<4x4xf32>
  %d1 = dtc.pad %y low [0, 2] high [2, 0] value 0.0 : (tensor<2x2xf32>) -> tensor<4x4xf32>
  %other = dtc.add %d0, %d1 : tensor<4x4xf32>
  %v0 = dtc.pad %x low [0, 0] high [0, 2] value 1.0 : (tensor<2x2xf32>) -> tensor<2x4xf32>
  %v1 = dtc.pad %y low [0, 2] high [0, 0] value 0.0 : (tensor<2x2xf32>) -> tensor<2x4xf32>
  %value = dtc.add %v0, %v1 : tensor<2x4xf32>
  %w1 = dtc.pad %y low [0, 2] high [0, 0] value -1.0 : (tensor<2x2xf32>) -> tensor<2x4xf32>
  %w0 = dtc.pad %y low [0, 0] high [0, 2] value 0.0 : (tensor<2x2xf32>) -> tensor<2x4xf32>
  %second = dtc.add %w0, %w1 : tensor<2x4xf32>
  %r0 = dtc.pad %x low [0, 0] high [0, 2] value 0.0 : (tensor<2x2xf32>) -> tensor<2x4xf32>
  %r1 = dtc.pad %x low [0, 2] high [0, 0] value 0.0 : (tensor<2x2xf32>) -> tensor<2x4xf32>
  %read = dtc.add %r0, %r1 : tensor<2x4xf32>
  %a0 = dtc.pad %x low [0, 0] high [0, 2] value 0.0 : (tensor<2x2xf32>) -> tensor<2x4xf32>
  %a1 = dtc.pad %x low [0, 2] high [0, 0] value 0.0 : (tensor<2x2xf32>) -> tensor<2x4xf32>
  %annotated = dtc.add %a0, %a1 {dtc.axes = ["batch", "embed"]} : tensor<2x4xf32>
  return %overlap, %gap, %two, %other, %value, %second, %read, %r0, %annotated
    : tensor<2x3xf32>, tensor<2x5xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}
