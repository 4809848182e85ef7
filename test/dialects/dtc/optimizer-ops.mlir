// RUN: dtc-opt %s | dtc-opt | FileCheck %s

// CHECK-LABEL: func.func @adamw
func.func @adamw(%p: tensor<4x8xf32>, %s: tensor<f32>) {
  // CHECK: dtc.adamw {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} {beta1 = 9.000000e-01 : f64, beta2 = 7.500000e-01 : f64, eps = 1.000000e-08 : f64, weight_decay = 1.000000e-01 : f64} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  %ap = dtc.constant dense<true> : tensor<i1>
  %0:3 = dtc.adamw %p, %p, %p, %p, %s, %s, %s, %ap
      {beta1 = 9.000000e-01 : f64, beta2 = 7.500000e-01 : f64, eps = 1.000000e-08 : f64, weight_decay = 1.000000e-01 : f64} :
      (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>)
      -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// CHECK-LABEL: func.func @sgd
func.func @sgd(%p: tensor<4x8xf32>, %s: tensor<f32>) {
  // CHECK: dtc.sgd {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} {momentum = 9.000000e-01 : f64, weight_decay = 0.000000e+00 : f64} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %ap = dtc.constant dense<true> : tensor<i1>
  %0:2 = dtc.sgd %p, %p, %p, %s, %s, %ap {momentum = 9.000000e-01 : f64, weight_decay = 0.000000e+00 : f64} :
      (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<i1>)
      -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// CHECK-LABEL: func.func @adam
func.func @adam(%p: tensor<4x8xf32>, %s: tensor<f32>) {
  // CHECK: dtc.adam {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} {beta1 = 9.000000e-01 : f64, beta2 = 7.500000e-01 : f64, eps = 1.000000e-08 : f64, weight_decay = 1.000000e-01 : f64} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  %ap = dtc.constant dense<true> : tensor<i1>
  %0:3 = dtc.adam %p, %p, %p, %p, %s, %s, %s, %ap
      {beta1 = 9.000000e-01 : f64, beta2 = 7.500000e-01 : f64, eps = 1.000000e-08 : f64, weight_decay = 1.000000e-01 : f64} :
      (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>)
      -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// CHECK-LABEL: func.func @lion
func.func @lion(%p: tensor<4x8xf64>, %s: tensor<f64>) {
  // CHECK: dtc.lion {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} {beta1 = 9.000000e-01 : f64, beta2 = 7.500000e-01 : f64, weight_decay = 1.000000e-01 : f64} : (tensor<4x8xf64>, tensor<4x8xf64>, tensor<4x8xf64>, tensor<f64>, tensor<f64>, tensor<i1>) -> (tensor<4x8xf64>, tensor<4x8xf64>)
  %ap = dtc.constant dense<true> : tensor<i1>
  %0:2 = dtc.lion %p, %p, %p, %s, %s, %ap {beta1 = 9.000000e-01 : f64, beta2 = 7.500000e-01 : f64, weight_decay = 1.000000e-01 : f64} :
      (tensor<4x8xf64>, tensor<4x8xf64>, tensor<4x8xf64>, tensor<f64>, tensor<f64>, tensor<i1>)
      -> (tensor<4x8xf64>, tensor<4x8xf64>)
  return
}
