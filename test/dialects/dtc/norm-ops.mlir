// RUN: dtc-opt %s | dtc-opt | FileCheck %s

// CHECK-LABEL: func.func @softmax
func.func @softmax(%x: tensor<2x3x8xf32>) {
  // CHECK: dtc.softmax {{%[^ ,]+}} : tensor<2x3x8xf32>
  %0 = dtc.softmax %x : tensor<2x3x8xf32>
  // CHECK: dtc.softmax_grad {{%[^ ,]+}}, {{%[^ ,]+}} : tensor<2x3x8xf32>
  %1 = dtc.softmax_grad %0, %x : tensor<2x3x8xf32>
  // CHECK: dtc.softmax {{%[^ ,]+}} {causal = true, scale = 1.250000e-01 : f64} : tensor<2x3x8xf32>
  %2 = dtc.softmax %x {causal = true, scale = 0.125} : tensor<2x3x8xf32>
  // CHECK: dtc.softmax_grad {{%[^ ,]+}}, {{%[^ ,]+}} {scale = 1.250000e-01 : f64} : tensor<2x3x8xf32>
  %3 = dtc.softmax_grad %2, %x {scale = 0.125} : tensor<2x3x8xf32>
  // Attributes with their default value are not printed.
  // CHECK: dtc.softmax {{%[^ ,]+}} : tensor<2x3x8xf32>
  %4 = dtc.softmax %x {causal = false, scale = 1.0} : tensor<2x3x8xf32>
  return
}

// CHECK-LABEL: func.func @layer_norm
func.func @layer_norm(%x: tensor<4x8xf32>, %w: tensor<8xf32>) {
  // CHECK: dtc.layer_norm {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} {eps = 1.000000e-05 : f64} : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
  %y, %mean, %rstd = dtc.layer_norm %x, %w, %w {eps = 1.000000e-05 : f64} : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
      -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
  // CHECK: dtc.layer_norm_grad {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  %dx, %dgamma, %dbeta = dtc.layer_norm_grad %x, %w, %mean, %rstd, %y :
      (tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x8xf32>)
      -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// CHECK-LABEL: func.func @rms_norm
func.func @rms_norm(%x: tensor<8xf64>, %w: tensor<8xf64>) {
  // CHECK: dtc.rms_norm {{%[^ ,]+}}, {{%[^ ,]+}} {eps = 1.000000e-05 : f64} : (tensor<8xf64>, tensor<8xf64>) -> (tensor<8xf64>, tensor<f64>)
  %y, %rstd = dtc.rms_norm %x, %w {eps = 1.000000e-05 : f64} : (tensor<8xf64>, tensor<8xf64>)
      -> (tensor<8xf64>, tensor<f64>)
  // CHECK: dtc.rms_norm_grad {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<8xf64>, tensor<8xf64>, tensor<f64>, tensor<8xf64>) -> (tensor<8xf64>, tensor<8xf64>)
  %dx, %dgamma = dtc.rms_norm_grad %x, %w, %rstd, %y :
      (tensor<8xf64>, tensor<8xf64>, tensor<f64>, tensor<8xf64>)
      -> (tensor<8xf64>, tensor<8xf64>)
  return
}
