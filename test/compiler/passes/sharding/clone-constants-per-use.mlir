// RUN: dtc-opt %s --split-input-file --dtc-clone-constants-per-use | FileCheck %s

// Each use has its own, also two of one op; one that is used once stays.
// CHECK-LABEL: func.func @constants(
// CHECK-NEXT: %[[A:.*]] = dtc.constant dense<5.000000e-01>
// CHECK-NEXT: %[[B:.*]] = dtc.constant dense<5.000000e-01>
// CHECK-NEXT: %[[C:.*]] = dtc.constant dense<5.000000e-01>
// CHECK-NEXT: %[[ONCE:.*]] = dtc.constant dense<2.500000e-01>
// CHECK-NEXT: dtc.add %arg0, %[[C]]
// CHECK-NEXT: dtc.mul %arg1, %[[ONCE]]
// CHECK-NEXT: dtc.einsum "ij,kj->ik" %[[B]], %[[A]]
func.func @constants(%x: tensor<4x4xf32> {dtc.input = "x"}, %w: tensor<4x4xf32> {dtc.param = "w"})
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %c = dtc.constant dense<0.5> : tensor<4x4xf32>
  %once = dtc.constant dense<0.25> : tensor<4x4xf32>
  %0 = dtc.add %x, %c : tensor<4x4xf32>
  %1 = dtc.mul %w, %once : tensor<4x4xf32>
  %2 = dtc.einsum "ij,kj->ik" %c, %c : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %1, %2 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// The operands of an op on constants are cloned with it: two uses of the op, which uses one value twice.
// CHECK-LABEL: func.func @expressions(
// CHECK-COUNT-4: dtc.constant
// CHECK-NOT: dtc.constant
// CHECK-COUNT-2: dtc.transpose
// CHECK-NOT: dtc.transpose
// CHECK: %[[A:.*]] = dtc.add
// CHECK: %[[B:.*]] = dtc.add
// CHECK: dtc.mul %arg0, %[[B]]
// CHECK: dtc.mul %arg1, %[[A]]
func.func @expressions(%x: tensor<4x4xf32> {dtc.input = "x"}, %w: tensor<4x4xf32> {dtc.param = "w"})
    -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %c = dtc.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<4x4xf32>
  %0 = dtc.transpose %c permutation [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = dtc.add %c, %0 : tensor<4x4xf32>
  %2 = dtc.mul %x, %1 : tensor<4x4xf32>
  %3 = dtc.mul %w, %1 : tensor<4x4xf32>
  return %2, %3 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// Of a parameter what has new dimensions: a broadcast, the rows at constant ids, an outer product with ones. Not what has
// the dimensions of the parameter alone, nor a scalar, nor anything of data.
// CHECK-LABEL: func.func @parameters(
// CHECK-COUNT-2: dtc.broadcast %{{.*}} dims [1] : (tensor<4xf32>)
// CHECK-COUNT-2: dtc.embedding
// CHECK-COUNT-2: dtc.einsum "b,h->bh"
// CHECK-COUNT-2: dtc.dropout
// CHECK-COUNT-1: dtc.exp
// CHECK-NOT: dtc.exp
// CHECK-COUNT-1: dtc.constant dense<2.000000e+00> : tensor<f32>
// CHECK-NOT: dtc.constant dense<2.000000e+00> : tensor<f32>
// CHECK-COUNT-1: dtc.broadcast %{{.*}} dims [0] : (tensor<4xf32>)
// CHECK-NOT: dtc.broadcast
// CHECK: return
func.func @parameters(%x: tensor<4xf32> {dtc.input = "x"}, %p: tensor<4xf32> {dtc.param = "p"},
                      %s: tensor<f32> {dtc.param = "s"},
                      %t: tensor<8x4xf32> {dtc.param = "t"}, %key: tensor<2xi32> {dtc.step_state = "random_key"})
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4xf32>, tensor<f32>) {
  %ids = dtc.constant dense<1> : tensor<4xi32>
  %ones = dtc.constant dense<1.0> : tensor<4xf32>
  %0 = dtc.broadcast %p dims [1] : (tensor<4xf32>) -> tensor<4x4xf32>
  %1 = dtc.embedding %t, %ids : (tensor<8x4xf32>, tensor<4xi32>) -> tensor<4x4xf32>
  %2 = dtc.einsum "b,h->bh" %ones, %p : (tensor<4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %3 = dtc.dropout %0, %key {number = 3, rate = 0.5} : (tensor<4x4xf32>, tensor<2xi32>) -> tensor<4x4xf32>
  %4 = dtc.exp %p : tensor<4xf32>
  %two = dtc.constant dense<2.0> : tensor<f32>
  %5 = dtc.mul %s, %two : tensor<f32>
  %6 = dtc.sub %5, %two : tensor<f32>
  %7 = dtc.broadcast %x dims [0] : (tensor<4xf32>) -> tensor<4x4xf32>
  %8 = dtc.add %1, %1 : tensor<4x4xf32>
  %9 = dtc.add %2, %2 : tensor<4x4xf32>
  %10 = dtc.add %3, %3 : tensor<4x4xf32>
  %11 = dtc.add %4, %4 : tensor<4xf32>
  %12 = dtc.add %7, %7 : tensor<4x4xf32>
  return %8, %9, %10, %12, %11, %6 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4xf32>, tensor<f32>
}

// -----

// A value that a user constrains is one value.
// CHECK-LABEL: func.func @constrained(
// CHECK-COUNT-1: dist.constrain
// CHECK-NOT: dist.constrain
dist.mesh @mesh <"tp"=2>
func.func @constrained(%x: tensor<4xf32> {dtc.input = "x"}) -> (tensor<4xf32>, tensor<4xf32>) {
  %c = dtc.constant dense<0.5> : tensor<4xf32>
  %0 = dist.constrain %c to <@mesh, [{"tp"}]> : tensor<4xf32>
  %1 = dtc.add %x, %0 : tensor<4xf32>
  %2 = dtc.mul %x, %0 : tensor<4xf32>
  return %1, %2 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A sum of 64 constants is too large to be made for each use.
// CHECK-LABEL: func.func @large(
// CHECK: dtc.add %arg0, %[[SUM:.*]] :
// CHECK: dtc.mul %arg0, %[[SUM]]
func.func @large(%x: tensor<4xf32> {dtc.input = "x"}) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = dtc.constant dense<0.5> : tensor<4xf32>
  %1 = dtc.add %0, %0 : tensor<4xf32>
  %2 = dtc.add %1, %1 : tensor<4xf32>
  %3 = dtc.add %2, %2 : tensor<4xf32>
  %4 = dtc.add %3, %3 : tensor<4xf32>
  %5 = dtc.add %4, %4 : tensor<4xf32>
  %6 = dtc.add %5, %5 : tensor<4xf32>
  %7 = dtc.add %x, %6 : tensor<4xf32>
  %8 = dtc.mul %x, %6 : tensor<4xf32>
  return %7, %8 : tensor<4xf32>, tensor<4xf32>
}
