// RUN: dtc-opt %s | dtc-opt | FileCheck %s

// CHECK-LABEL: func.func @constant
func.func @constant() {
  // CHECK: dtc.constant dense<1.000000e+00> : tensor<4xf32>
  %0 = dtc.constant dense<1.000000e+00> : tensor<4xf32>
  // CHECK: dtc.constant dense<[1.500000e+00, -2.000000e+00]> : tensor<2xf64>
  %1 = dtc.constant dense<[1.500000e+00, -2.000000e+00]> : tensor<2xf64>
  // CHECK: dtc.constant dense<7> : tensor<i32>
  %2 = dtc.constant dense<7> : tensor<i32>
  // CHECK: dtc.constant dense<[true, false]> : tensor<2xi1>
  %3 = dtc.constant dense<[true, false]> : tensor<2xi1>
  // CHECK: dtc.constant {dtc.axes = ["embed"]} dense<0.000000e+00> : tensor<64xf32>
  %4 = dtc.constant {dtc.axes = ["embed"]} dense<0.000000e+00> : tensor<64xf32>
  return
}

// CHECK-LABEL: func.func @broadcast
func.func @broadcast(%x: tensor<64xf32>, %s: tensor<f32>, %m: tensor<2x3xi1>) {
  // CHECK: dtc.broadcast {{%[^ ,]+}} dims [2] : (tensor<64xf32>) -> tensor<16x128x64xf32>
  %0 = dtc.broadcast %x dims [2] : (tensor<64xf32>) -> tensor<16x128x64xf32>
  // CHECK: dtc.broadcast {{%[^ ,]+}} dims [] : (tensor<f32>) -> tensor<4xf32>
  %1 = dtc.broadcast %s dims [] : (tensor<f32>) -> tensor<4xf32>
  // CHECK: dtc.broadcast {{%[^ ,]+}} dims [0, 2] : (tensor<2x3xi1>) -> tensor<2x5x3xi1>
  %2 = dtc.broadcast %m dims [0, 2] : (tensor<2x3xi1>) -> tensor<2x5x3xi1>
  return
}

// CHECK-LABEL: func.func @reshape
func.func @reshape(%x: tensor<16x768xf32>, %s: tensor<1x1xi32>) {
  // CHECK: dtc.reshape {{%[^ ,]+}} : (tensor<16x768xf32>) -> tensor<16x12x64xf32>
  %0 = dtc.reshape %x : (tensor<16x768xf32>) -> tensor<16x12x64xf32>
  // CHECK: dtc.reshape {{%[^ ,]+}} : (tensor<1x1xi32>) -> tensor<i32>
  %1 = dtc.reshape %s : (tensor<1x1xi32>) -> tensor<i32>
  return
}

// CHECK-LABEL: func.func @transpose
func.func @transpose(%x: tensor<2x3x4xf32>, %s: tensor<f32>) {
  // CHECK: dtc.transpose {{%[^ ,]+}} permutation [0, 2, 1] : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %0 = dtc.transpose %x permutation [0, 2, 1] : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  // CHECK: dtc.transpose {{%[^ ,]+}} permutation [] : (tensor<f32>) -> tensor<f32>
  %1 = dtc.transpose %s permutation [] : (tensor<f32>) -> tensor<f32>
  return
}

// CHECK-LABEL: func.func @zigzag
func.func @zigzag(%x: tensor<4x16xi32>, %y: tensor<2x12x3xbf16>) {
  // CHECK: dtc.zigzag {{%[^ ,]+}} {dim = 1 : i64, inverse = false, parts = 2 : i64} : tensor<4x16xi32>
  %0 = dtc.zigzag %x {dim = 1, inverse = false, parts = 2} : tensor<4x16xi32>
  // CHECK: dtc.zigzag {{%[^ ,]+}} {dim = 0 : i64, inverse = true, parts = 1 : i64} : tensor<2x12x3xbf16>
  %1 = dtc.zigzag %y {dim = 0, inverse = true, parts = 1} : tensor<2x12x3xbf16>
  // CHECK: dtc.zigzag {{%[^ ,]+}} {dim = 1 : i64, dtc.axes = ["batch", "seq", ""], inverse = true, parts = 6 : i64} : tensor<2x12x3xbf16>
  %2 = dtc.zigzag %y {dim = 1, dtc.axes = ["batch", "seq", ""], inverse = true, parts = 6} : tensor<2x12x3xbf16>
  return
}
