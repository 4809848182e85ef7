// RUN: dtc-opt %s | dtc-opt | FileCheck %s

// CHECK-LABEL: func.func @slice
func.func @slice(%x: tensor<4x8xf32>, %s: tensor<i32>) {
  // CHECK: dtc.slice {{%[^ ,]+}} offsets [0, 2] sizes [4, 6] : (tensor<4x8xf32>) -> tensor<4x6xf32>
  %0 = dtc.slice %x offsets [0, 2] sizes [4, 6] : (tensor<4x8xf32>) -> tensor<4x6xf32>
  // CHECK: dtc.slice {{%[^ ,]+}} offsets [] sizes [] : (tensor<i32>) -> tensor<i32>
  %1 = dtc.slice %s offsets [] sizes [] : (tensor<i32>) -> tensor<i32>
  return
}

// CHECK-LABEL: func.func @pad
func.func @pad(%x: tensor<4x8xf32>) {
  // CHECK: dtc.pad {{%[^ ,]+}} low [0, 1] high [0, 3] value 0.000000e+00 : (tensor<4x8xf32>) -> tensor<4x12xf32>
  %0 = dtc.pad %x low [0, 1] high [0, 3] value 0.000000e+00 : (tensor<4x8xf32>) -> tensor<4x12xf32>
  // CHECK: dtc.pad {{%[^ ,]+}} low [1, 0] high [0, 0] value -1.500000e+00 : (tensor<4x8xf32>) -> tensor<5x8xf32>
  %1 = dtc.pad %x low [1, 0] high [0, 0] value -1.500000e+00 : (tensor<4x8xf32>) -> tensor<5x8xf32>
  return
}

// CHECK-LABEL: func.func @concat
func.func @concat(%x: tensor<4x8xf32>, %y: tensor<4x2xf32>) {
  // CHECK: dtc.concat {{%[^ ,]+}}, {{%[^ ,]+}} dim 1 : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<4x10xf32>
  %0 = dtc.concat %x, %y dim 1 : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<4x10xf32>
  // CHECK: dtc.concat {{%[^ ,]+}} dim 0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = dtc.concat %x dim 0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}
