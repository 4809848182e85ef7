// RUN: dtc-opt %s | dtc-opt | FileCheck %s

// CHECK-LABEL: func.func @adamw
func.func @adamw(%p: tensor<4x8xf32>, %s: tensor<f32>) {
  // CHECK: dtc.adamw {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} {beta1 = 9.000000e-01 : f64, beta2 = 7.500000e-01 : f64, eps = 1.000000e-08 : f64, weight_decay = 1.000000e-01 : f64} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  %0:3 = dtc.adamw %p, %p, %p, %p, %s, %s, %s
      {beta1 = 9.000000e-01 : f64, beta2 = 7.500000e-01 : f64, eps = 1.000000e-08 : f64, weight_decay = 1.000000e-01 : f64} :
      (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<f32>)
      -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// CHECK-LABEL: func.func @sgd
func.func @sgd(%p: tensor<4x8xf32>, %s: tensor<f32>) {
  // CHECK: dtc.sgd {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} {momentum = 9.000000e-01 : f64, weight_decay = 0.000000e+00 : f64} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %0:2 = dtc.sgd %p, %p, %p, %s, %s {momentum = 9.000000e-01 : f64, weight_decay = 0.000000e+00 : f64} :
      (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>)
      -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return
}
