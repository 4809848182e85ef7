// RUN: dtc-opt %s --split-input-file --dtc-join-products | FileCheck %s

// With its bias, as in GPT-2; the parts may come in any order, and their slices are in that of the parts.
// CHECK-LABEL: func.func @thirds(
// CHECK-SAME: %[[W:arg0]]: tensor<8x3x2x5xf32>, %[[B:arg1]]: tensor<3x2x5xf32>, %[[X:arg2]]
// CHECK-NEXT: %[[Y:.*]] = dtc.einsum "bsd,dahe->bsahe" %[[X]], %[[W]] : {{.*}} -> tensor<4x6x3x2x5xf32>
// CHECK-NEXT: %[[BIAS:.*]] = dtc.broadcast %[[B]] dims [2, 3, 4]
// CHECK-NEXT: %[[ALL:.*]] = dtc.add %[[Y]], %[[BIAS]]
// CHECK-NEXT: %[[S0:.*]] = dtc.slice %[[ALL]] offsets [0, 0, 0, 0, 0] sizes [4, 6, 1, 2, 5]
// CHECK-NEXT: %[[R0:.*]] = dtc.reshape %[[S0]]
// CHECK-NEXT: %[[S1:.*]] = dtc.slice %[[ALL]] offsets [0, 0, 1, 0, 0]
// CHECK-NEXT: %[[R1:.*]] = dtc.reshape %[[S1]]
// CHECK-NEXT: %[[S2:.*]] = dtc.slice %[[ALL]] offsets [0, 0, 2, 0, 0]
// CHECK-NEXT: %[[R2:.*]] = dtc.reshape %[[S2]]
// CHECK-NEXT: return %[[R0]], %[[R1]], %[[R2]]
func.func @thirds(%w: tensor<8x3x2x5xf32>, %b: tensor<3x2x5xf32>, %x: tensor<4x6x8xf32>)
    -> (tensor<4x6x2x5xf32>, tensor<4x6x2x5xf32>, tensor<4x6x2x5xf32>) {
  %w1 = dtc.slice %w offsets [0, 1, 0, 0] sizes [8, 1, 2, 5] : (tensor<8x3x2x5xf32>) -> tensor<8x1x2x5xf32>
  %r1 = dtc.reshape %w1 : (tensor<8x1x2x5xf32>) -> tensor<8x2x5xf32>
  %k = dtc.einsum "bsd,dhe->bshe" %x, %r1 : (tensor<4x6x8xf32>, tensor<8x2x5xf32>) -> tensor<4x6x2x5xf32>
  %b1 = dtc.slice %b offsets [1, 0, 0] sizes [1, 2, 5] : (tensor<3x2x5xf32>) -> tensor<1x2x5xf32>
  %c1 = dtc.reshape %b1 : (tensor<1x2x5xf32>) -> tensor<2x5xf32>
  %d1 = dtc.broadcast %c1 dims [2, 3] : (tensor<2x5xf32>) -> tensor<4x6x2x5xf32>
  %e1 = dtc.add %k, %d1 : tensor<4x6x2x5xf32>
  %w0 = dtc.slice %w offsets [0, 0, 0, 0] sizes [8, 1, 2, 5] : (tensor<8x3x2x5xf32>) -> tensor<8x1x2x5xf32>
  %r0 = dtc.reshape %w0 : (tensor<8x1x2x5xf32>) -> tensor<8x2x5xf32>
  %q = dtc.einsum "bsd,dhe->bshe" %x, %r0 : (tensor<4x6x8xf32>, tensor<8x2x5xf32>) -> tensor<4x6x2x5xf32>
  %b0 = dtc.slice %b offsets [0, 0, 0] sizes [1, 2, 5] : (tensor<3x2x5xf32>) -> tensor<1x2x5xf32>
  %c0 = dtc.reshape %b0 : (tensor<1x2x5xf32>) -> tensor<2x5xf32>
  %d0 = dtc.broadcast %c0 dims [2, 3] : (tensor<2x5xf32>) -> tensor<4x6x2x5xf32>
  %e0 = dtc.add %q, %d0 : tensor<4x6x2x5xf32>
  %w2 = dtc.slice %w offsets [0, 2, 0, 0] sizes [8, 1, 2, 5] : (tensor<8x3x2x5xf32>) -> tensor<8x1x2x5xf32>
  %r2 = dtc.reshape %w2 : (tensor<8x1x2x5xf32>) -> tensor<8x2x5xf32>
  %v = dtc.einsum "bsd,dhe->bshe" %x, %r2 : (tensor<4x6x8xf32>, tensor<8x2x5xf32>) -> tensor<4x6x2x5xf32>
  %b2 = dtc.slice %b offsets [2, 0, 0] sizes [1, 2, 5] : (tensor<3x2x5xf32>) -> tensor<1x2x5xf32>
  %c2 = dtc.reshape %b2 : (tensor<1x2x5xf32>) -> tensor<2x5xf32>
  %d2 = dtc.broadcast %c2 dims [2, 3] : (tensor<2x5xf32>) -> tensor<4x6x2x5xf32>
  %e2 = dtc.add %v, %d2 : tensor<4x6x2x5xf32>
  return %e0, %e1, %e2 : tensor<4x6x2x5xf32>, tensor<4x6x2x5xf32>, tensor<4x6x2x5xf32>
}

// -----

// Where not all products have the bias, the slices are of the product alone.
// CHECK-LABEL: func.func @some_biases(
// CHECK: %[[Y:.*]] = dtc.einsum "ds,dae->sae"
// CHECK-NEXT: dtc.slice %[[Y]] offsets [0, 0, 0]
// CHECK: dtc.slice %[[Y]] offsets [0, 1, 0]
// CHECK: dtc.add
func.func @some_biases(%w: tensor<8x2x5xf32>, %b: tensor<2x5xf32>, %x: tensor<8x6xf32>)
    -> (tensor<6x5xf32>, tensor<6x5xf32>) {
  %w0 = dtc.slice %w offsets [0, 0, 0] sizes [8, 1, 5] : (tensor<8x2x5xf32>) -> tensor<8x1x5xf32>
  %r0 = dtc.reshape %w0 : (tensor<8x1x5xf32>) -> tensor<8x5xf32>
  %y0 = dtc.einsum "ds,de->se" %x, %r0 : (tensor<8x6xf32>, tensor<8x5xf32>) -> tensor<6x5xf32>
  %w1 = dtc.slice %w offsets [0, 1, 0] sizes [8, 1, 5] : (tensor<8x2x5xf32>) -> tensor<8x1x5xf32>
  %r1 = dtc.reshape %w1 : (tensor<8x1x5xf32>) -> tensor<8x5xf32>
  %y1 = dtc.einsum "ds,de->se" %x, %r1 : (tensor<8x6xf32>, tensor<8x5xf32>) -> tensor<6x5xf32>
  %b1 = dtc.slice %b offsets [1, 0] sizes [1, 5] : (tensor<2x5xf32>) -> tensor<1x5xf32>
  %c1 = dtc.reshape %b1 : (tensor<1x5xf32>) -> tensor<5xf32>
  %d1 = dtc.broadcast %c1 dims [1] : (tensor<5xf32>) -> tensor<6x5xf32>
  %e1 = dtc.add %y1, %d1 : tensor<6x5xf32>
  return %y0, %e1 : tensor<6x5xf32>, tensor<6x5xf32>
}

// -----

// A part of the weight is not multiplied.
// CHECK-LABEL: func.func @missing(
// CHECK-COUNT-2: dtc.einsum "sd,de->se"
// CHECK-NOT: dtc.einsum
func.func @missing(%w: tensor<8x3x5xf32>, %x: tensor<6x8xf32>) -> (tensor<6x5xf32>, tensor<6x5xf32>) {
  %w0 = dtc.slice %w offsets [0, 0, 0] sizes [8, 1, 5] : (tensor<8x3x5xf32>) -> tensor<8x1x5xf32>
  %r0 = dtc.reshape %w0 : (tensor<8x1x5xf32>) -> tensor<8x5xf32>
  %y0 = dtc.einsum "sd,de->se" %x, %r0 : (tensor<6x8xf32>, tensor<8x5xf32>) -> tensor<6x5xf32>
  %w1 = dtc.slice %w offsets [0, 1, 0] sizes [8, 1, 5] : (tensor<8x3x5xf32>) -> tensor<8x1x5xf32>
  %r1 = dtc.reshape %w1 : (tensor<8x1x5xf32>) -> tensor<8x5xf32>
  %y1 = dtc.einsum "sd,de->se" %x, %r1 : (tensor<6x8xf32>, tensor<8x5xf32>) -> tensor<6x5xf32>
  return %y0, %y1 : tensor<6x5xf32>, tensor<6x5xf32>
}

// -----

// Other tensors, parts behind a dimension of the result, and ops with attributes stay as they are.
// CHECK-LABEL: func.func @others(
// CHECK-COUNT-6: dtc.einsum "sd,de->se"
// CHECK-NOT: dtc.einsum
func.func @others(%w: tensor<8x2x5xf32>, %inner: tensor<8x5x2xf32>, %x: tensor<6x8xf32>, %z: tensor<6x8xf32>)
    -> (tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>) {
  %w0 = dtc.slice %w offsets [0, 0, 0] sizes [8, 1, 5] : (tensor<8x2x5xf32>) -> tensor<8x1x5xf32>
  %r0 = dtc.reshape %w0 : (tensor<8x1x5xf32>) -> tensor<8x5xf32>
  %y0 = dtc.einsum "sd,de->se" %x, %r0 : (tensor<6x8xf32>, tensor<8x5xf32>) -> tensor<6x5xf32>
  %w1 = dtc.slice %w offsets [0, 1, 0] sizes [8, 1, 5] : (tensor<8x2x5xf32>) -> tensor<8x1x5xf32>
  %r1 = dtc.reshape %w1 : (tensor<8x1x5xf32>) -> tensor<8x5xf32>
  %y1 = dtc.einsum "sd,de->se" %z, %r1 : (tensor<6x8xf32>, tensor<8x5xf32>) -> tensor<6x5xf32>
  %i0 = dtc.slice %inner offsets [0, 0, 0] sizes [8, 5, 1] : (tensor<8x5x2xf32>) -> tensor<8x5x1xf32>
  %j0 = dtc.reshape %i0 : (tensor<8x5x1xf32>) -> tensor<8x5xf32>
  %y2 = dtc.einsum "sd,de->se" %x, %j0 : (tensor<6x8xf32>, tensor<8x5xf32>) -> tensor<6x5xf32>
  %i1 = dtc.slice %inner offsets [0, 0, 1] sizes [8, 5, 1] : (tensor<8x5x2xf32>) -> tensor<8x5x1xf32>
  %j1 = dtc.reshape %i1 : (tensor<8x5x1xf32>) -> tensor<8x5xf32>
  %y3 = dtc.einsum "sd,de->se" %x, %j1 : (tensor<6x8xf32>, tensor<8x5xf32>) -> tensor<6x5xf32>
  %y4 = dtc.einsum "sd,de->se" %z, %r0 {dtc.axes = ["", "heads"]} : (tensor<6x8xf32>, tensor<8x5xf32>) -> tensor<6x5xf32>
  %y5 = dtc.einsum "sd,de->se" %z, %r1 {dtc.axes = ["", "heads"]} : (tensor<6x8xf32>, tensor<8x5xf32>) -> tensor<6x5xf32>
  return %y0, %y1, %y2, %y3, %y4, %y5 : tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>
}
