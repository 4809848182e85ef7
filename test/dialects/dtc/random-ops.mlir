// RUN: dtc-opt %s | dtc-opt | FileCheck %s

// An op on a whole tensor has no shape and no sharding, and the rate may be 0.
// CHECK-LABEL: func.func @dropout
func.func @dropout(%x: tensor<4x8xf32>, %s: tensor<f32>, %key: tensor<2xi32>) {
  // CHECK: dtc.dropout {{%[^ ,]+}}, {{%[^ ,]+}} {number = 3 : i64, rate = 1.000000e-01 : f64} : (tensor<4x8xf32>, tensor<2xi32>) -> tensor<4x8xf32>
  %0 = dtc.dropout %x, %key {number = 3, rate = 1.000000e-01 : f64} : (tensor<4x8xf32>, tensor<2xi32>) -> tensor<4x8xf32>
  // CHECK: dtc.dropout {{%[^ ,]+}}, {{%[^ ,]+}} {number = 0 : i64, rate = 0.000000e+00 : f64} : (tensor<f32>, tensor<2xi32>) -> tensor<f32>
  %1 = dtc.dropout %s, %key {number = 0, rate = 0.000000e+00 : f64} : (tensor<f32>, tensor<2xi32>) -> tensor<f32>
  return
}

// Each type of floats keeps its own.
// CHECK-LABEL: func.func @dropout_types
func.func @dropout_types(%d: tensor<4xf64>, %b: tensor<4xbf16>, %h: tensor<4xf16>, %key: tensor<2xi32>) {
  // CHECK: dtc.dropout {{.*}} : (tensor<4xf64>, tensor<2xi32>) -> tensor<4xf64>
  %0 = dtc.dropout %d, %key {number = 0, rate = 0.5} : (tensor<4xf64>, tensor<2xi32>) -> tensor<4xf64>
  // CHECK: dtc.dropout {{.*}} : (tensor<4xbf16>, tensor<2xi32>) -> tensor<4xbf16>
  %1 = dtc.dropout %b, %key {number = 1, rate = 0.5} : (tensor<4xbf16>, tensor<2xi32>) -> tensor<4xbf16>
  // CHECK: dtc.dropout {{.*}} : (tensor<4xf16>, tensor<2xi32>) -> tensor<4xf16>
  %2 = dtc.dropout %h, %key {number = 2, rate = 0.5} : (tensor<4xf16>, tensor<2xi32>) -> tensor<4xf16>
  return
}

// A shard names the shape of its whole tensor, and the axes that split it.
// CHECK-LABEL: func.func @dropout_shard
func.func @dropout_shard(%x: tensor<4x8xf32>, %key: tensor<2xi32>) {
  // CHECK: dtc.dropout {{%[^ ,]+}}, {{%[^ ,]+}} {number = 3 : i64, rate = 5.000000e-01 : f64, shape = array<i64: 16, 8>, sharding = ["dp,micro", ""]} : (tensor<4x8xf32>, tensor<2xi32>) -> tensor<4x8xf32>
  %0 = dtc.dropout %x, %key {number = 3, rate = 0.5, shape = array<i64: 16, 8>, sharding = ["dp,micro", ""]} : (tensor<4x8xf32>, tensor<2xi32>) -> tensor<4x8xf32>
  return
}
