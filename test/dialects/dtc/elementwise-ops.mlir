// RUN: dtc-opt %s | dtc-opt | FileCheck %s

// CHECK-LABEL: func.func @unary
func.func @unary(%x: tensor<4x8xf32>, %d: tensor<4x8xf64>, %s: tensor<f32>) {
  // CHECK: dtc.neg {{%[^ ,]+}} : tensor<4x8xf32>
  %0 = dtc.neg %x : tensor<4x8xf32>
  // CHECK: dtc.abs {{%[^ ,]+}} : tensor<4x8xf32>
  %1 = dtc.abs %x : tensor<4x8xf32>
  // CHECK: dtc.exp {{%[^ ,]+}} : tensor<4x8xf64>
  %2 = dtc.exp %d : tensor<4x8xf64>
  // CHECK: dtc.log {{%[^ ,]+}} : tensor<4x8xf32>
  %3 = dtc.log %x : tensor<4x8xf32>
  // CHECK: dtc.sqrt {{%[^ ,]+}} : tensor<4x8xf32>
  %4 = dtc.sqrt %x : tensor<4x8xf32>
  // CHECK: dtc.rsqrt {{%[^ ,]+}} : tensor<f32>
  %5 = dtc.rsqrt %s : tensor<f32>
  // CHECK: dtc.tanh {{%[^ ,]+}} : tensor<4x8xf32>
  %6 = dtc.tanh %x : tensor<4x8xf32>
  // CHECK: dtc.sigmoid {{%[^ ,]+}} : tensor<4x8xf32>
  %7 = dtc.sigmoid %x : tensor<4x8xf32>
  // CHECK: dtc.relu {{%[^ ,]+}} : tensor<4x8xf32>
  %8 = dtc.relu %x : tensor<4x8xf32>
  // CHECK: dtc.silu {{%[^ ,]+}} : tensor<4x8xf32>
  %9 = dtc.silu %x : tensor<4x8xf32>
  // CHECK: dtc.gelu tanh {{%[^ ,]+}} : tensor<4x8xf32>
  %10 = dtc.gelu tanh %x : tensor<4x8xf32>
  // CHECK: dtc.gelu none {{%[^ ,]+}} : tensor<4x8xf32>
  %11 = dtc.gelu none %x : tensor<4x8xf32>
  // CHECK: dtc.softplus {{%[^ ,]+}} : tensor<4x8xf32>
  %12 = dtc.softplus %x : tensor<4x8xf32>
  return
}

// CHECK-LABEL: func.func @convert
func.func @convert(%x: tensor<4x8xf32>, %i: tensor<4xi32>) {
  // CHECK: dtc.convert {{%[^ ,]+}} : (tensor<4x8xf32>) -> tensor<4x8xf64>
  %0 = dtc.convert %x : (tensor<4x8xf32>) -> tensor<4x8xf64>
  // CHECK: dtc.convert {{%[^ ,]+}} : (tensor<4x8xf32>) -> tensor<4x8xi32>
  %1 = dtc.convert %x : (tensor<4x8xf32>) -> tensor<4x8xi32>
  // CHECK: dtc.convert {{%[^ ,]+}} : (tensor<4xi32>) -> tensor<4xi1>
  %2 = dtc.convert %i : (tensor<4xi32>) -> tensor<4xi1>
  return
}

// CHECK-LABEL: func.func @binary
func.func @binary(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %i: tensor<4xi32>) {
  // CHECK: dtc.add {{%[^ ,]+}}, {{%[^ ,]+}} : tensor<4x8xf32>
  %0 = dtc.add %x, %y : tensor<4x8xf32>
  // CHECK: dtc.add {{%[^ ,]+}}, {{%[^ ,]+}} : tensor<4xi32>
  %1 = dtc.add %i, %i : tensor<4xi32>
  // CHECK: dtc.sub {{%[^ ,]+}}, {{%[^ ,]+}} : tensor<4x8xf32>
  %2 = dtc.sub %x, %y : tensor<4x8xf32>
  // CHECK: dtc.mul {{%[^ ,]+}}, {{%[^ ,]+}} : tensor<4x8xf32>
  %3 = dtc.mul %x, %y : tensor<4x8xf32>
  // CHECK: dtc.div {{%[^ ,]+}}, {{%[^ ,]+}} : tensor<4x8xf32>
  %4 = dtc.div %x, %y : tensor<4x8xf32>
  // CHECK: dtc.maximum {{%[^ ,]+}}, {{%[^ ,]+}} : tensor<4x8xf32>
  %5 = dtc.maximum %x, %y : tensor<4x8xf32>
  // CHECK: dtc.minimum {{%[^ ,]+}}, {{%[^ ,]+}} : tensor<4xi32>
  %6 = dtc.minimum %i, %i : tensor<4xi32>
  return
}

// CHECK-LABEL: func.func @compare
func.func @compare(%x: tensor<4x8xf32>, %i: tensor<4xi32>) {
  // CHECK: dtc.compare eq {{%[^ ,]+}}, {{%[^ ,]+}} : tensor<4x8xf32>
  %0 = dtc.compare eq %x, %x : tensor<4x8xf32>
  // CHECK: dtc.compare ne {{%[^ ,]+}}, {{%[^ ,]+}} : tensor<4x8xf32>
  %1 = dtc.compare ne %x, %x : tensor<4x8xf32>
  // CHECK: dtc.compare lt {{%[^ ,]+}}, {{%[^ ,]+}} : tensor<4x8xf32>
  %2 = dtc.compare lt %x, %x : tensor<4x8xf32>
  // CHECK: dtc.compare le {{%[^ ,]+}}, {{%[^ ,]+}} : tensor<4x8xf32>
  %3 = dtc.compare le %x, %x : tensor<4x8xf32>
  // CHECK: dtc.compare gt {{%[^ ,]+}}, {{%[^ ,]+}} : tensor<4xi32>
  %4 = dtc.compare gt %i, %i : tensor<4xi32>
  // CHECK: dtc.compare ge {{%[^ ,]+}}, {{%[^ ,]+}} : tensor<4xi32>
  %5 = dtc.compare ge %i, %i : tensor<4xi32>
  // CHECK: dtc.convert {{%[^ ,]+}} : (tensor<4xi1>) -> tensor<4xf32>
  %6 = dtc.convert %5 : (tensor<4xi1>) -> tensor<4xf32>
  return
}

// CHECK-LABEL: func.func @select
func.func @select(%c: tensor<4x8xi1>, %x: tensor<4x8xf64>) {
  // CHECK: dtc.select {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} : tensor<4x8xf64>
  %0 = dtc.select %c, %x, %x : tensor<4x8xf64>
  return
}

// CHECK-LABEL: func.func @activation_gradients
func.func @activation_gradients(%x: tensor<4x8xf32>, %dy: tensor<4x8xf32>) {
  // CHECK: dtc.silu_grad {{%[^ ,]+}}, {{%[^ ,]+}} : tensor<4x8xf32>
  %0 = dtc.silu_grad %x, %dy : tensor<4x8xf32>
  // CHECK: dtc.gelu_grad none {{%[^ ,]+}}, {{%[^ ,]+}} : tensor<4x8xf32>
  %1 = dtc.gelu_grad none %x, %dy : tensor<4x8xf32>
  // CHECK: dtc.gelu_grad tanh {{%[^ ,]+}}, {{%[^ ,]+}} : tensor<4x8xf32>
  %2 = dtc.gelu_grad tanh %x, %dy : tensor<4x8xf32>
  return
}
